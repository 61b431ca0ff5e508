package unittests

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

//go:embed java
var glue embed.FS

// perMethod bounds one method, and perClass all of one class.
const (
	perMethod = time.Minute
	perClass  = 5 * time.Minute
)

// folders are where the checkout has tests, and packages that tests share.
var folders = []string{"activemq-unit-tests", "activemq-client", "activemq-broker", "activemq-ra"}

func TestActiveMQsOwnTestsPass(t *testing.T) {
	sources := need.Sources(t)
	classes := readList(t)
	classpath := compile(t, sources, standIns(t), classes...)
	for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire} {
		t.Run(k.String(), func(t *testing.T) {
			for _, c := range classes {
				t.Run(strings.TrimPrefix(c.name, "org.apache.activemq."), func(t *testing.T) {
					c.check(t, k, c.play(t, k, classpath))
				})
			}
		})
	}
}

// play runs the class against a fresh broker, or each of its methods against one.
func (c class) play(t *testing.T, k broker.Kind, classpath string) []result {
	t.Helper()
	if !c.each {
		return run(t, k, classpath, c.name, c.choice(k)...)
	}
	var all []result
	for _, name := range c.methods(t, k, classpath) {
		t.Run(name, func(t *testing.T) {
			all = append(all, run(t, k, classpath, c.name, "+"+name)...)
		})
	}
	return all
}

// methods asks for the names of what would be run, with their parameters.
func (c class) methods(t *testing.T, k broker.Kind, classpath string) []string {
	t.Helper()
	lines := filepath.Join(t.TempDir(), "names")
	args := append([]string{"-Dbasedir=" + t.TempDir(), "-cp", classpath, "hopwire.Run", c.name,
		lines, "0"}, c.choice(k)...)
	if text, err := exec.Command("java", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	names, err := os.ReadFile(lines)
	must(t, err)
	return strings.Fields(string(names))
}

// check compares what came of a class with what the list says.
func (c class) check(t *testing.T, k broker.Kind, results []result) {
	t.Helper()
	passed := 0
	for _, r := range results {
		switch {
		case r.word != "passed":
			t.Errorf("%s %s: %s", r.word, r.name, r.text)
		case r.dialled == 0:
			t.Errorf("%s did not connect to the broker", r.name)
		default:
			passed++
		}
	}
	want := c.both
	if k == broker.ActiveMQ {
		want += c.differing()
	}
	if passed != want {
		t.Errorf("%d methods passed, not %d", passed, want)
	}
}

// result is what came of one method.
type result struct {
	word    string // passed, failed, hung or ignored
	dialled int    // how many connections to the broker it made
	started int    // how many brokers it believes to have started
	name    string
	text    string // what went wrong
}

// run runs methods of a class against a fresh broker, and wants the program to come to its end.
func run(t *testing.T, k broker.Kind, classpath, class string, methods ...string) []result {
	t.Helper()
	results, cut := attempt(t, k, classpath, class, methods...)
	if cut != "" {
		t.Error(cut)
	}
	return results
}

// attempt runs methods of a class against a fresh broker, and says why that was cut short, if so.
func attempt(t *testing.T, k broker.Kind, classpath, class string, methods ...string) (
	results []result, cut string,
) {
	t.Helper()
	// As a stock configuration: a store, advisories, no policies.
	b := broker.Start(t, k, broker.Options{Name: "localhost", Persistent: true})
	ctx, cancel := context.WithTimeout(t.Context(), perClass)
	defer cancel()
	folder := t.TempDir()
	lines, out := filepath.Join(folder, "results"), filepath.Join(folder, "out")
	said, err := os.Create(out)
	must(t, err)
	defer said.Close()
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dhopwire.url=" + b.URL(), "-Dbasedir=" + folder, "-Djava.io.tmpdir=" + folder,
		"-Dorg.apache.activemq.SERIALIZABLE_PACKAGES=*", "-cp", classpath, "hopwire.Run", class,
		lines, strconv.Itoa(int(perMethod.Seconds()))}
	cmd := exec.CommandContext(ctx, "java", append(args, methods...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, said, said
	failed := cmd.Run()
	text, err := os.ReadFile(lines)
	must(t, err)
	results, ended := parseResults(t, string(text))
	if failed != nil || !ended {
		all, _ := os.ReadFile(out) // what there is of it
		cut = fmt.Sprintf("%v\n%s", failed, all[max(0, len(all)-4<<10):])
	}
	return results, cut
}

// parseResults reads the lines of the Java program; the last one is "end".
func parseResults(t *testing.T, text string) (results []result, ended bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "end" {
			return results, true
		}
		var r result
		if _, err := fmt.Sscan(line, &r.word, &r.dialled, &r.started, &r.name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		_, r.text, _ = strings.Cut(line, r.name)
		results = append(results, r)
	}
	return results, false
}

// standIns compiles what is ours, and gives a class path of that and of the jars.
func standIns(t *testing.T) []string {
	t.Helper()
	home := need.ActiveMQ(t)
	folder := t.TempDir()
	must(t, os.CopyFS(folder, glue))
	ours := filepath.Join(folder, "java")
	classpath := []string{ours}
	for _, pattern := range []string{filepath.Join(need.Joram(t), "*.jar"),
		filepath.Join(home, "lib", "*.jar"), filepath.Join(home, "lib", "optional", "*.jar")} {
		found, err := filepath.Glob(pattern)
		must(t, err)
		classpath = append(classpath, found...)
	}
	var own []string
	must(t, filepath.WalkDir(ours, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".java") {
			own = append(own, path)
		}
		return err
	}))
	javac(t, ours, classpath[1:], own)
	return classpath
}

// compile compiles classes with what they need of the checkout, and gives the class path to run
// them.
func compile(t *testing.T, sources string, ours []string, classes ...class) string {
	t.Helper()
	tests := t.TempDir()
	var roots, theirs []string
	for _, f := range folders {
		roots = append(roots, filepath.Join(sources, f, "src", "test", "java"))
	}
	for _, c := range classes {
		theirs = append(theirs, c.file(t, roots))
	}
	// They are compiled against the real BrokerService: it has what the others of a class ask for.
	javac(t, tests, ours[1:], theirs, "-sourcepath", join(roots...), "-implicit:class")
	resources := filepath.Join(sources, folders[0], "src", "test", "resources")
	return join(append(slices.Clone(ours), tests, resources)...)
}

func javac(t *testing.T, to string, jars, files []string, more ...string) {
	t.Helper()
	args := slices.Concat([]string{"-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", to,
		"-cp", join(jars...)}, more, files)
	if text, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// file is the source of a class below one of some folders.
func (c class) file(t *testing.T, roots []string) string {
	t.Helper()
	for _, root := range roots {
		file := filepath.Join(root, filepath.FromSlash(strings.ReplaceAll(c.name, ".", "/"))+".java")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	t.Fatalf("no source of %s below %q", c.name, roots)
	return ""
}

func join(paths ...string) string { return strings.Join(paths, string(filepath.ListSeparator)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
