package unittests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
)

// page is where the list is, for people too.
var page = filepath.Join("..", "..", "..", "docs", "compatibility.md")

// class is one class of the list.
type class struct {
	name    string
	each    bool           // each method with a broker of its own
	both    int            // how many methods pass on both brokers, each with all of its parameters
	only    []string       // the methods to run, all if there is none
	without []string       // the methods not to run
	differ  map[string]int // methods that pass on ActiveMQ alone, and with how many parameters
}

// differing is how many methods pass on ActiveMQ alone.
func (c class) differing() (n int) {
	for _, times := range c.differ {
		n += times
	}
	return n
}

// choice tells the Java program which methods to run.
func (c class) choice(k broker.Kind) (args []string) {
	for _, name := range c.only {
		args = append(args, "+"+name)
	}
	for _, name := range c.without {
		args = append(args, "-"+name)
	}
	for name := range c.differ {
		switch {
		case k == broker.ActiveMQ && len(c.only) > 0:
			args = append(args, "+"+name)
		case k == broker.Hopwire && len(c.only) == 0:
			args = append(args, "-"+name)
		}
	}
	return args
}

// readList reads the fenced text of the page: of each class its name, a number, perhaps "each" (its
// methods have a broker of their own), and words that begin with + (only this method), - (not this
// one) or ! (passes on ActiveMQ alone; !name*4 does so with four parameters).
func readList(t *testing.T) []class {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	_, list, ok := strings.Cut(string(text), "```text list\n")
	list, _, closed := strings.Cut(list, "```\n")
	if !ok || !closed {
		t.Fatalf("%s has no list", page)
	}
	classes, err := parseList(list)
	must(t, err)
	return classes
}

func parseList(text string) (classes []class, err error) {
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "org.") && i+1 < len(words) {
			i++
			n, err := strconv.Atoi(words[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", word, err)
			}
			classes = append(classes, class{name: word, both: n, differ: map[string]int{}})
			continue
		}
		if len(classes) == 0 || len(word) < 2 {
			return nil, fmt.Errorf("%q is not of a class", word)
		}
		c := &classes[len(classes)-1]
		if word == "each" {
			c.each = true
			continue
		}
		switch name := word[1:]; word[0] {
		case '+':
			c.only = append(c.only, name)
		case '-':
			c.without = append(c.without, name)
		case '!':
			name, times, many := strings.Cut(name, "*")
			c.differ[name] = 1
			if many {
				if c.differ[name], err = strconv.Atoi(times); err != nil {
					return nil, fmt.Errorf("%s: %w", word, err)
				}
			}
		default:
			return nil, fmt.Errorf("%s: %q begins with none of +, - and !, which it must", c.name, word)
		}
		if len(c.only) > 0 && len(c.without) > 0 {
			return nil, fmt.Errorf("%s: both + and - say nothing more", c.name)
		}
	}
	return classes, nil
}

func TestTheListSaysWhichMethodsAreRun(t *testing.T) {
	classes, err := parseList("org.A 2 -x\n  !y*2\norg.B 1 +z !y\norg.C 3 each\n")
	must(t, err)
	tests := []struct{ activemq, hopwire string }{
		{"-x", "-x -y"}, {"+z +y", "+z"}, {"", ""},
	}
	if len(classes) != len(tests) || classes[0].differing() != 2 || classes[0].each ||
		!classes[2].each {
		t.Fatalf("%+v", classes)
	}
	for i, want := range tests {
		a := strings.Join(classes[i].choice(broker.ActiveMQ), " ")
		h := strings.Join(classes[i].choice(broker.Hopwire), " ")
		if a != want.activemq || h != want.hopwire {
			t.Errorf("%s: %q and %q, not %q", classes[i].name, a, h, want)
		}
	}
	for _, text := range []string{"x 1", "org.A", "org.A x", "org.A 1 x", "org.A 1 +x -y",
		"org.A 1 !x*y"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// total is the line of the page with the sums of the list.
var total = regexp.MustCompile(`(?s)\*\*(\d+) classes, (\d+) methods\*\*.*?` +
	`\*\*(\d+) methods?\*\*\s+of\s+\*\*(\d+) class(?:es)?\*\*`)

func TestThePageTellsTheSumsOfItsList(t *testing.T) {
	classes := readList(t)
	var both, differ, differing int
	for _, c := range classes {
		both += c.both
		if n := c.differing(); n > 0 {
			differ += n
			differing++
		}
	}
	text, err := os.ReadFile(page)
	must(t, err)
	said := total.FindStringSubmatch(string(text))
	want := fmt.Sprint([]int{len(classes), both, differ, differing})
	if len(said) == 0 || fmt.Sprint(said[1:]) != want {
		t.Errorf("the page says %q, its list %s", said, want)
	}
	order := func(a, b class) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(classes, order) {
		t.Error("the list is not sorted")
	}
	for _, c := range classes {
		for name := range c.differ {
			short := c.name[strings.LastIndex(c.name, ".")+1:]
			if !strings.Contains(string(text), "`"+short+"."+name+"`") {
				t.Errorf("the page has no reason for `%s.%s`", short, name)
			}
		}
	}
}
