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
// $ACTIVEMQ_CANDIDATES names, and prints what the list would say of them. After a name may follow
// "each", as in the list.
func TestCandidatesDifferNowhere(t *testing.T) {
	sources := need.Sources(t)
	file := os.Getenv("ACTIVEMQ_CANDIDATES")
	if file == "" {
		t.Skip("ACTIVEMQ_CANDIDATES names no file of classes")
	}
	names, err := os.ReadFile(file)
	must(t, err)
	ours := standIns(t)
	for _, c := range candidates(string(names)) {
		t.Run(strings.TrimPrefix(c.name, "org.apache.activemq."), func(t *testing.T) {
			classpath := compile(t, sources, ours, c)
			a := c.try(t, broker.ActiveMQ, classpath)
			if !slices.ContainsFunc(a, result.fits) {
				t.Log("nothing that needs a connection alone passes on ActiveMQ")
				return
			}
			h := c.try(t, broker.Hopwire, classpath)
			t.Logf("\n%s", c.entry(a, h))
			differ := judge(a, h).differ
			for _, r := range h {
				if differ[plain(r.name)] > 0 && r.word != "passed" {
					t.Errorf("%s %s: %s", r.word, r.name, r.text)
				}
			}
		})
	}
}

// candidates reads names of classes.
func candidates(text string) (classes []class) {
	for word := range strings.FieldsSeq(text) {
		if last := len(classes) - 1; word == "each" && last >= 0 {
			classes[last].each = true
			continue
		}
		classes = append(classes, class{name: word})
	}
	return classes
}

// try runs a class, and again without what was run already, as long as a method that hangs ends
// the program.
func (c class) try(t *testing.T, k broker.Kind, classpath string) (all []result) {
	t.Helper()
	if c.each {
		for _, name := range c.methods(t, k, classpath) {
			results, _ := attempt(t, k, classpath, c.name, "+"+name)
			all = append(all, results...)
		}
		return all
	}
	var without []string
	for {
		results, cut := attempt(t, k, classpath, c.name, without...)
		all = append(all, results...)
		if cut == "" || len(results) == 0 {
			return all
		}
		t.Logf("%s: %.200s", k, cut)
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
		case name == "between" || strings.HasSuffix(name, "initializationError"):
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
func (c class) entry(a, h []result) string {
	of := judge(a, h)
	words := []string{c.name, fmt.Sprint(of.both)}
	if c.each {
		words = append(words, "each")
	}
	mark, names := "-", of.without
	if len(of.only) < len(of.without) {
		mark, names = "+", of.only
	}
	for _, n := range names {
		words = append(words, mark+n)
	}
	for _, n := range slices.Sorted(maps.Keys(of.differ)) {
		word := "!" + n
		if times := of.differ[n]; times > 1 {
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
	of := candidates("org.A org.B each\n org.apache.activemq.A")
	if len(of) != 3 || of[0].each || !of[1].each {
		t.Fatalf("%+v", of)
	}
	parse := func(text string) []result {
		r, _ := parseResults(t, text+"end\n")
		return r
	}
	a := parse("passed 1 1 same\npassed 1 1 other_{a=1}\npassed 1 0 other_{a=2}\n" +
		"passed 0 1 dialsNothing\npassed 2 2 startsTwo\nfailed 1 1 fails why\npassed 1 0 between\n" +
		"failed 0 0 Filter.initializationError no tests\n" +
		"hung 1 1 hangs\npassed 1 1 half\nfailed 1 1 half#2\n")
	h := parse("passed 1 1 same\npassed 1 1 other_{a=1}\nfailed 1 0 other_{a=2} why\n")
	got := of[0].entry(a, h)
	if want := "org.A 1 +same !other*2"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	h = append(h, parse("passed 1 0 other_{a=2}\n")...)
	got = of[1].entry(append(a[:3:3], a[3], a[7]), h)
	if want := "org.B 3 each -dialsNothing"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	long := strings.Repeat("x", 80)
	got = of[0].entry(parse("passed 1 1 a\npassed 1 1 b\nfailed 1 1 "+long+"\nfailed 1 1 z\n"),
		parse("passed 1 1 a\npassed 1 1 b\n"))
	if want := "org.A 2 -" + long + " -z"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	got = of[2].entry(parse("passed 1 1 a\nfailed 1 1 "+long+"\n"),
		parse("passed 1 1 a\n"))
	if want := "org.apache.activemq.A 1\n    -" + long; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
