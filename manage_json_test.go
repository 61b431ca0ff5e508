package hopwire

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// jsonNames adds the names of a type's fields, and of the types in it; "?" marks what may be left
// out.
func jsonNames(of reflect.Type, all map[string][]string) {
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || all[of.Name()] != nil {
		return
	}
	all[of.Name()] = []string{}
	var names []string
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "omitempty") {
			name += "?"
		}
		names = append(names, name)
		jsonNames(f.Type, all)
	}
	all[of.Name()] = names
}

// Whoever reads the JSON finds each of its names explained, and no other.
func TestEveryNameOfTheJSONIsExplained(t *testing.T) {
	want := map[string][]string{}
	jsonNames(reflect.TypeFor[Status](), want)
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### The names in `--json`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	headed := map[string]string{"a broker": "Status", "connectors": "Connector", "totals": "Totals",
		"reasons": "ReasonCount", "destinations": "Destination", "subscriptions": "Subscription",
		"transactions": "Transaction", "bridges": "Bridge", "demands": "Demand", "parked": "Parked",
		"incoming": "Incoming"}
	quoted := regexp.MustCompile("`(\\w+)`(\\??)")
	tables := strings.Split(section, "\n|---|---|\n")
	for i, rows := range tables[1:] {
		before := strings.Split(tables[i], "\n")
		head := strings.Trim(before[len(before)-1], "| ")
		if name := quoted.FindStringSubmatch(head); name != nil {
			head = name[1]
		}
		var names []string
		for line := range strings.Lines(rows) {
			if line == "\n" {
				break
			}
			for _, name := range quoted.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
				names = append(names, name[1]+name[2])
			}
		}
		has := slices.Clone(want[headed[head]])
		slices.Sort(has)
		slices.Sort(names)
		if !slices.Equal(has, names) {
			t.Errorf("the table of %s explains %q, the JSON has %q", head, names, has)
		}
		delete(want, headed[head])
	}
	for name := range want {
		t.Errorf("no table explains %s", name)
	}
}
