package hopwire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
