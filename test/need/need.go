// Package need states what a test needs from the machine: a JDK, a real ActiveMQ, root, hours. A
// developer's run skips the test and says by name what is missing; with CI=true a missing thing is
// a failure, so that no test can fall silent there. `make deps` installs all of it.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// home is where Debian's package activemq puts its jars.
const home = "/usr/share/activemq"

// java says why there is no JDK, "" when there is one.
func java() string {
	for _, program := range []string{"java", "javac"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not in the PATH"
		}
	}
	return ""
}

// activeMQ gives the folder of a real ActiveMQ, or says why there is none.
func activeMQ() (folder, why string) {
	if why := java(); why != "" {
		return "", why
	}
	folder = os.Getenv("ACTIVEMQ_HOME")
	if folder == "" {
		folder = home
	}
	if _, err := os.Stat(filepath.Join(folder, "bin", "activemq.jar")); err != nil {
		return "", err.Error()
	}
	return folder, ""
}

// jars gives a folder of jars that scripts/deps.sh makes, or says why there is none.
func jars(name string) (folder, why string) {
	if why := java(); why != "" {
		return "", why
	}
	folder = filepath.Join(Cache(), name)
	if _, err := os.Stat(filepath.Join(folder, ".stamp")); err != nil {
		return "", err.Error()
	}
	return folder, ""
}

// root says why this is not the superuser.
func root() string {
	if os.Geteuid() != 0 {
		return "this process does not run as root"
	}
	return ""
}

// Missing gives a line for each thing that tests need and the machine lacks.
func Missing() (lines []string) {
	_, activemq := activeMQ()
	_, jms6 := jars("jms6")
	_, activemq6 := jars("activemq6")
	_, joram := jars("joram")
	for _, x := range [][2]string{{"Java", java()}, {"ActiveMQ", activemq}, {"JMS6", jms6},
		{"ActiveMQ6", activemq6}, {"Joram", joram}, {"Root", root()}} {
		if x[1] != "" {
			lines = append(lines, "need."+x[0]+": "+x[1])
		}
	}
	return lines
}

// Java asks for a JDK: java and javac in the PATH.
func Java(t testing.TB) {
	t.Helper()
	require(t, "Java", java())
}

// ActiveMQ asks for Java and the jars of a real ActiveMQ 5.17 and returns their folder:
// $ACTIVEMQ_HOME if set, else Debian's.
func ActiveMQ(t testing.TB) string {
	t.Helper()
	folder, why := activeMQ()
	require(t, "ActiveMQ", why)
	return folder
}

// JMS6 asks for Java and the jars of the Jakarta generation of the JMS client and returns their
// folder.
func JMS6(t testing.TB) string {
	t.Helper()
	folder, why := jars("jms6")
	require(t, "JMS6", why)
	return folder
}

// ActiveMQ6 asks for Java and the jars of a real ActiveMQ 6.3 and returns their folder.
func ActiveMQ6(t testing.TB) string {
	t.Helper()
	folder, why := jars("activemq6")
	require(t, "ActiveMQ6", why)
	return folder
}

// Joram asks for Java and the jars of the JMS conformance tests and returns their folder.
func Joram(t testing.TB) string {
	t.Helper()
	folder, why := jars("joram")
	require(t, "Joram", why)
	return folder
}

// Sources asks for a checkout of ActiveMQ's own sources, which $ACTIVEMQ_SOURCES names. Nothing
// here fetches it, so that a run without it is skipped, in CI too.
func Sources(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("ACTIVEMQ_SOURCES")
	if folder == "" {
		t.Skipf("need.Sources: ACTIVEMQ_SOURCES names no checkout; docs/compatibility.md says which")
	}
	if _, err := os.Stat(filepath.Join(folder, "activemq-unit-tests")); err != nil {
		t.Fatalf("need.Sources: ACTIVEMQ_SOURCES: %v", err)
	}
	return folder
}

// Root asks for the rights of the superuser, for network namespaces and small file systems.
func Root(t testing.TB) {
	t.Helper()
	require(t, "Root", root())
}

// ShortDir gives a folder for sockets, whatever TMPDIR is: their paths have a limit of about 100
// bytes.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Soaks reports whether this is a long run: HOPWIRE_SOAK is set, as `make soak` does.
func Soaks() bool { return os.Getenv("HOPWIRE_SOAK") != "" }

// Soak asks for a long run: it skips, in CI too, unless HOPWIRE_SOAK is set, as `make soak` does.
func Soak(t testing.TB) {
	t.Helper()
	if !Soaks() {
		t.Skip("need.Soak: a long test; run it by: make soak")
	}
}

// SoakTime is for how long a test goes on that can: 0, or in a long run HOPWIRE_SOAK_TIME, as
// `make soak TIME=8h` sets it.
func SoakTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("HOPWIRE_SOAK_TIME")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOPWIRE_SOAK_TIME: %v", err)
	}
	return d
}

// Cache is the folder in which scripts/deps.sh keeps what it fetched: $HOPWIRE_CACHE, or the
// folder hopwire in the user's cache.
func Cache() string {
	if folder := os.Getenv("HOPWIRE_CACHE"); folder != "" {
		return folder
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		folder = os.TempDir()
	}
	return filepath.Join(folder, "hopwire")
}

// require ends a test when there is a reason why something is missing.
func require(t testing.TB, what, why string) {
	t.Helper()
	switch {
	case why == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("need.%s: %s; with CI=true this is a failure; run: make deps", what, why)
	default:
		t.Skipf("need.%s: %s; to install it run: make deps", what, why)
	}
}
