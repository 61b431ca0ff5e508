package hopwire

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/test/need"
)

// named is a broker of a name whose store is below a folder.
func named(t *testing.T, name, data, content string) *Setup {
	t.Helper()
	text := `<broker xmlns="http://activemq.apache.org/schema/core" brokerName="` + name +
		`" dataDirectory="` + data + `">` + content + `</broker>`
	s, err := Parse(filepath.Join(t.TempDir(), "a.xml"), text,
		Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// warnings are what a start would begin with.
func warnings(t *testing.T, s *Setup) string {
	t.Helper()
	lines, err := s.Check()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// A broker that gets another name gets another folder: the messages of the old one seem lost.
func TestANewFolderBesideThoseOfOtherNamesIsTold(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	data := t.TempDir()
	setup := func(name, content string) *Setup { return named(t, name, data, content) }
	told := func(s *Setup) string { return warnings(t, s) }
	stopped := func(s *Setup) {
		t.Helper()
		b, err := s.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end(t, b)
	}
	for _, other := range []string{"empty", "java/KahaDB"} { // no stores of ours
		if err := os.MkdirAll(filepath.Join(data, other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(setup("shop-new", "")); got != "" {
		t.Errorf("of the first broker it is told %q", got)
	}
	stopped(setup("shop-new", ""))
	before, err := os.ReadFile(filepath.Join(data, "shop-new", "KahaDB", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	shop := setup("shop", "")
	want := "the store's folder " + filepath.Join(data, "shop", "KahaDB") + " is new, and there is " +
		filepath.Join(data, "shop-new", "KahaDB") + " of a broker that does not run: its messages are" +
		" not this broker's; if it had that name, keep it, or name the folder as directory of kahaDB"
	if got := told(shop); got != want {
		t.Errorf("of a new name it is told %q, want %q", got, want)
	}
	after, err := os.ReadFile(filepath.Join(data, "shop-new", "KahaDB", "lock"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the lock had %q and has %q, %v", before, after, err)
	}
	if got := told(setup("shop", `<persistenceAdapter><kahaDB directory="`+t.TempDir()+
		`/own"/></persistenceAdapter>`)); got != "" {
		t.Errorf("of a folder that is named it is told %q", got)
	}
	old := setup("shop-new", "")
	shop.Beside([]*Setup{shop, old})
	if got := told(shop); got != "" {
		t.Errorf("of a broker of the same process it is told %q", got)
	}
	b, err := old.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := told(setup("shop", "")); got != "" {
		t.Errorf("of a broker that runs it is told %q", got)
	}
	end(t, b)
	stopped(shop)
	if got := told(setup("shop", "")); got != "" {
		t.Errorf("of a folder that is not new it is told %q", got)
	}
	if got := told(setup("third", "")); !strings.Contains(got, "there are ") ||
		!strings.Contains(got, " of brokers that do not run: their messages are") {
		t.Errorf("of two that do not run it is told %q", got)
	}
}

// Where some brokers of a folder run, one more is no other that was renamed.
func TestANewFolderBesideRunningBrokersIsNoRenamedOne(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	data := t.TempDir()
	for _, name := range []string{"away", "runs"} {
		b, err := named(t, name, data, "").Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if name == "runs" {
			defer end(t, b)
			break
		}
		end(t, b)
	}
	if got := warnings(t, named(t, "new", data, "")); got != "" {
		t.Errorf("it is told %q", got)
	}
}
