package unittests

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

// TestCandidatesDifferNowhere tries classes that are not on the list, those that the file
// $ACTIVEMQ_CANDIDATES names, and prints what the list would say of each.
func TestCandidatesDifferNowhere(t *testing.T) {
	sources := need.Sources(t)
	file := os.Getenv("ACTIVEMQ_CANDIDATES")
	if file == "" {
		t.Skip("ACTIVEMQ_CANDIDATES names no file of classes")
	}
	names, err := os.ReadFile(file)
	must(t, err)
	ours := standIns(t)
	for name := range strings.FieldsSeq(string(names)) {
		t.Run(strings.TrimPrefix(name, "org.apache.activemq."), func(t *testing.T) {
			classpath := compile(t, sources, ours, class{name: name})
			a := try(t, broker.ActiveMQ, classpath, name)
			if !slices.ContainsFunc(a, result.fits) {
				t.Logf("%s: nothing that needs a connection alone passes on ActiveMQ", name)
				return
			}
			h := try(t, broker.Hopwire, classpath, name)
			t.Logf("\n%s", entry(name, a, h))
			if of := judge(a, h); len(of.differ) > 0 {
				for _, r := range h {
					if _, ok := of.differ[plain(r.name)]; ok && r.word != "passed" {
						t.Errorf("%s %s: %s", r.word, r.name, r.text)
					}
				}
			}
		})
	}
}

// try runs a class, and again without what was run already, as long as a method that hangs ends
// the program.
func try(t *testing.T, k broker.Kind, classpath, name string) (all []result) {
	t.Helper()
	var without []string
	for {
		results, cut := attempt(t, k, classpath, name, without...)
		all = append(all, results...)
		if cut == "" || len(results) == 0 {
			return all
		}
		t.Logf("%s, %s: %.200s", name, k, cut)
		for _, r := range results {
			without = append(without, "-"+plain(r.name))
		}
	}
}

// fits says that a method passes and asks its broker for no more than a place to connect to.
func (r result) fits() bool { return r.word == "passed" && r.dialled > 0 && r.started <= 1 }

// parameters are what Run adds to the name of a method.
var parameters = regexp.MustCompile(`(_\{|\[|#).*`)

// plain is the name of a method without the parameters that it runs with.
func plain(name string) string { return parameters.ReplaceAllString(name, "") }

// judge makes a class of the list from what came of it on ActiveMQ and on Hopwire.
func judge(a, h []result) (c class) {
	c.differ = map[string]int{}
	passed := map[string]bool{}
	for _, r := range h {
		passed[r.name] = r.word == "passed"
	}
	methods := map[string][]result{}
	for _, r := range a {
		methods[plain(r.name)] = append(methods[plain(r.name)], r)
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		all := methods[name]
		switch {
		case name == "between" || name == "initializationError":
		case slices.ContainsFunc(all, func(r result) bool { return !r.fits() }):
			c.without = append(c.without, name)
		case slices.ContainsFunc(all, func(r result) bool { return !passed[r.name] }):
			c.differ[name] = len(all)
		default:
			c.only = append(c.only, name)
			c.both += len(all)
		}
	}
	return c
}

// entry is what the list says of a class, with what is shorter of the methods to run and those not
// to run.
func entry(name string, a, h []result) string {
	c := judge(a, h)
	words := []string{name, fmt.Sprint(c.both)}
	mark, names := "-", c.without
	if len(c.only) < len(c.without) {
		mark, names = "+", c.only
	}
	for _, n := range names {
		words = append(words, mark+n)
	}
	for _, n := range slices.Sorted(maps.Keys(c.differ)) {
		word := "!" + n
		if times := c.differ[n]; times > 1 {
			word += fmt.Sprintf("*%d", times)
		}
		words = append(words, word)
	}
	var text strings.Builder
	line := 0
	for i, w := range words {
		switch {
		case i == 0:
		case line+1+len(w) > 100:
			text.WriteString("\n   ")
			line = 3
			fallthrough
		default:
			text.WriteByte(' ')
			line++
		}
		text.WriteString(w)
		line += len(w)
	}
	return text.String()
}

func TestTheListIsTakenFromWhatPasses(t *testing.T) {
	parse := func(text string) []result {
		r, _ := parseResults(t, text+"end\n")
		return r
	}
	a := parse("passed 1 1 same\npassed 1 1 other_{a=1}\npassed 1 0 other_{a=2}\n" +
		"passed 0 1 dialsNothing\npassed 2 2 startsTwo\nfailed 1 1 fails why\npassed 1 0 between\n" +
		"hung 1 1 hangs\npassed 1 1 half\nfailed 1 1 half#2\n")
	h := parse("passed 1 1 same\npassed 1 1 other_{a=1}\nfailed 1 0 other_{a=2} why\n")
	got := entry("org.A", a, h)
	if want := "org.A 1 +same !other*2"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	h = append(h, parse("passed 1 0 other_{a=2}\n")...)
	got = entry("org.A", append(a[:3:3], a[3]), h)
	if want := "org.A 3 -dialsNothing"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	long := strings.Repeat("x", 80)
	got = entry("org.A", parse("passed 1 1 a\npassed 1 1 b\nfailed 1 1 "+long+"\nfailed 1 1 z\n"),
		parse("passed 1 1 a\npassed 1 1 b\n"))
	if want := "org.A 2 -" + long + " -z"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	got = entry("org.apache.activemq.A", parse("passed 1 1 a\nfailed 1 1 "+long+"\n"),
		parse("passed 1 1 a\n"))
	if want := "org.apache.activemq.A 1\n    -" + long; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
