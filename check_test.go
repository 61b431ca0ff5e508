package hopwire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/test/need"
)

func TestAGuessedBaseIsTold(t *testing.T) {
	for _, c := range []struct {
		folder, value string
		env, define   string
		want          string
	}{
		{"main", "${activemq.data}", "", "", "is taken to be DIR/main, the file's folder"},
		{"main", "${activemq.base}/x", "", "", "is taken to be DIR/main, the file's folder"},
		{"main", "${activemq.conf}", "", "", ""},
		{"main", "data", "", "", ""},
		{"conf", "${activemq.data}", "", "", ""},
		{"main", "${activemq.data}", "DIR/b", "", ""},
		{"main", "${activemq.data}", "", "DIR/b", ""},
	} {
		t.Run(c.folder, func(t *testing.T) {
			dir := t.TempDir()
			in := func(text string) string { return strings.ReplaceAll(text, "DIR", dir) }
			t.Setenv("ACTIVEMQ_BASE", in(c.env))
			folder := filepath.Join(dir, c.folder)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			text := `<beans><bean class="org.springframework.beans.factory.config.` +
				`PropertyPlaceholderConfigurer"/><broker dataDirectory="` + c.value + `"/></beans>`
			o := Options{}
			if c.define != "" {
				o.Defines = map[string]string{"activemq.base": in(c.define)}
			}
			s, err := Parse(filepath.Join(folder, "activemq.xml"), text, o)
			if err != nil {
				t.Fatal(err)
			}
			got := s.GuessedBase()
			if !strings.Contains(got, in(c.want)) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, in(c.want))
			}
		})
	}
}

func TestTheBaseOfADebianInstanceIsNamed(t *testing.T) {
	t.Setenv("ACTIVEMQ_BASE", "")
	text := `<beans><bean class="org.springframework.beans.factory.config.` +
		`PropertyPlaceholderConfigurer"/><broker dataDirectory="${activemq.data}"/></beans>`
	s, err := Parse("/etc/activemq/instances-enabled/main/activemq.xml", text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "ACTIVEMQ_BASE=/var/lib/activemq/main or -D activemq.base=/var/lib/activemq/main"
	if got := s.GuessedBase(); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestABridgeToItsOwnListenerIsTold(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		listens, dials string
		told           bool
	}{
		{"0.0.0.0:61616", "localhost:61616", true},
		{"0.0.0.0:61616", "127.0.0.1:61616", true},
		{"0.0.0.0:61616", host + ":61616", true},
		{"127.0.0.1:61616", "localhost:61616", true},
		{"0.0.0.0:61616", "localhost:61617", false},
		{"0.0.0.0:61616", "192.0.2.7:61616", false},
		{"127.0.0.1:61616", "hub:61616", false},
	} {
		s, err := load(t, `persistent="false"`, `<networkConnectors><networkConnector name="up"`+
			` uri="static:(tcp://`+c.dials+`)"/></networkConnectors><transportConnectors>`+
			`<transportConnector name="in" uri="tcp://`+c.listens+`"/></transportConnectors>`)
		if err != nil {
			t.Fatal(err)
		}
		want := "network connector up: tcp://" + c.dials + " is this broker itself (line "
		if got := warnings(t, s); strings.Contains(got, want) != c.told {
			t.Errorf("%s dialled by who listens at %s: %s", c.dials, c.listens, got)
		}
	}
}

func TestAFolderThatIsRelativeOrInUseIsTold(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	t.Chdir(t.TempDir())
	s, err := load(t, `dataDirectory="data"`, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Relative() != "data/b/KahaDB" || s.InUse() {
		t.Errorf("it begins at %q, in use %t", s.Relative(), s.InUse())
	}
	b, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, b)
	if !s.InUse() {
		t.Error("the folder of a running broker is not in use")
	}
	if s, err = load(t, `dataDirectory="`+t.TempDir()+`"`, ""); err != nil || s.Relative() != "" {
		t.Errorf("a whole path begins at %q, %v", s.Relative(), err)
	}
	if s, err = load(t, `persistent="false"`, ""); err != nil || s.Relative() != "" || s.InUse() {
		t.Errorf("no store begins at %q, %v", s.Relative(), err)
	}
}

func TestALimitAboveWhatTheDiskHasIsTold(t *testing.T) {
	for limit, above := range map[string]bool{"8000000 gb": true, "1 b": false, "0": false} {
		s, err := load(t, `dataDirectory="`+t.TempDir()+`"`, `<systemUsage><systemUsage><storeUsage>`+
			`<storeUsage limit="`+limit+`"/></storeUsage><tempUsage><tempUsage limit="`+limit+
			`"/></tempUsage></systemUsage></systemUsage>`)
		if err != nil {
			t.Fatal(err)
		}
		if l := s.Limits(); l.StoreFree > 0 != above || l.TempFree > 0 != above {
			t.Errorf("of %s the disks have %d and %d", limit, l.StoreFree, l.TempFree)
		}
	}
}
