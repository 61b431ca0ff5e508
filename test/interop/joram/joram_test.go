package joram

import (
	"bytes"
	"context"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

//go:embed java
var sources embed.FS

// conforming is the number of the tests; a real ActiveMQ 5.17.2 passes all.
const conforming = 196

// patience bounds one run of all tests, which takes half a minute.
const patience = 5 * time.Minute

func TestTheJMSConformanceTestsPass(t *testing.T) {
	tests := need.Joram(t)
	libraries := strings.Join([]string{filepath.Join(tests, "*"),
		filepath.Join(need.ActiveMQ(t), "lib", "*")}, string(filepath.ListSeparator))
	classes := compile(t, libraries)
	jars, err := filepath.Glob(filepath.Join(tests, "joram-jms-tests-*.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatalf("the tests' jar in %s: %q, %v", tests, jars, err)
	}
	for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire} {
		t.Run(k.String(), func(t *testing.T) {
			b := broker.Start(t, k, broker.Options{Persistent: true})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var said, trouble bytes.Buffer
			cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-XX:+UseSerialGC",
				"-cp", classes+string(filepath.ListSeparator)+libraries, "Conformance", b.URL(), jars[0])
			cmd.Stdout, cmd.Stderr = &said, &trouble
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, last(&said), last(&trouble))
			}
			run := 0
			for line := range strings.Lines(said.String()) {
				switch word, _, _ := strings.Cut(line, " "); word {
				case "run":
					run++
				case "failed":
					t.Error(strings.TrimSpace(line))
				}
			}
			if run != conforming {
				t.Errorf("%d tests were run, not %d", run, conforming)
			}
		})
	}
}

// last gives the end of what a program wrote.
func last(b *bytes.Buffer) string {
	lines := strings.Split(b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// compile gives the folder of the program that runs the tests.
func compile(t *testing.T, classpath string) string {
	t.Helper()
	folder := t.TempDir()
	must(t, os.CopyFS(folder, sources))
	java := filepath.Join(folder, "java")
	files, err := filepath.Glob(filepath.Join(java, "*.java"))
	must(t, err)
	args := slices.Concat([]string{"-nowarn", "-d", java, "-cp", classpath}, files)
	if text, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return java
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
