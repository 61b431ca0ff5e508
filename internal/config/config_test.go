package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/policy"
	"hopwire/internal/transport"
)

// parse reads the inside of a broker element.
func parse(t *testing.T, attributes, inside string, opts Options) (*Config, error) {
	t.Helper()
	text := `<beans xmlns="` + springNS + `"><broker ` + attributes + `>` + inside +
		`</broker></beans>`
	return Parse("f.xml", []byte(text), opts)
}

func TestExamplesOfActiveMQLoad(t *testing.T) {
	files, _ := filepath.Glob("/usr/share/doc/activemq/examples/conf/activemq-*.xml")
	files = append(files, "/etc/activemq/instances-available/main/activemq.xml")
	if _, err := os.Stat(files[0]); err != nil {
		t.Skip("Debian's package activemq is not installed")
	}
	opts := Options{LookupEnv: func(name string) (string, bool) {
		return "activemq", name == defaultPasswordEnv
	}}
	for _, file := range files {
		_, err := Load(file, opts)
		if strings.Contains(file, "-jdbc") {
			if err == nil || !strings.Contains(err.Error(), "<jdbcPersistenceAdapter> is not accepted") {
				t.Errorf("%s: %v", file, err)
			}
		} else if err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestSecurityIsOnlyIgnoredOnRequest(t *testing.T) {
	c, err := parse(t, "", `<plugins><jaasDualAuthenticationPlugin/>`+
		`<bean class="com.example.Acme"/></plugins>`,
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		security, plugins bool
		want              int
	}{{false, false, 2}, {true, false, 1}, {false, true, 1}, {true, true, 0}} {
		if got := c.Refusals(tt.security, tt.plugins); len(got) != tt.want {
			t.Errorf("ignoring security %v, plugins %v: refused for %v", tt.security, tt.plugins, got)
		}
	}
}

func TestPolicyDefaultsAreThoseOfTheRegistry(t *testing.T) {
	c, err := parse(t, "", `<destinationPolicy><policyMap><policyEntries><policyEntry queue="a"/>`+
		`</policyEntries></policyMap></destinationPolicy>`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := *c.Broker().Policy.Entries[0]
	want := *policy.NewEntry()
	want.Destination, want.Source = got.Destination, got.Source
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCompatibilityLevelChangesDefaults(t *testing.T) {
	const inside = `<networkConnectors><networkConnector uri="static:(tcp://b:1)"/>` +
		`</networkConnectors>`
	for level, want := range map[int]bool{0: false, 5: false, 6: true} {
		c, err := parse(t, "", inside, Options{Compat: level})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Broker().Networks[0].DecreaseConsumerPriority; got != want {
			t.Errorf("level %d: decreaseNetworkConsumerPriority is %v", level, got)
		}
		if c.CompatGiven != (level != 0) {
			t.Errorf("level %d: given is %v", level, c.CompatGiven)
		}
	}
	want := []string{"decreaseNetworkConsumerPriority on <networkConnector>: true"}
	if got := CompatDefaults(6); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestTheBrokerCalledBrokerRunsAndOthersAreTold(t *testing.T) {
	c, err := Parse("f.xml", []byte(`<beans><broker brokerName="a"/>`+
		`<broker id="broker" brokerName="b"/></beans>`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Broker().Name; got != "b" {
		t.Errorf("broker %s runs", got)
	}
	if n := c.Notices; len(n) != 1 || n[0].Pos.Col != 8 ||
		!strings.HasPrefix(n[0].Text, "broker a is not started: ") {
		t.Errorf("the notices are %v", n)
	}
	if _, err := Parse("f.xml", []byte(`<broker/>`), Options{}); err != nil {
		t.Errorf("a broker without beans: %v", err)
	}
}

func TestSettingsHaveOneMeaningInAllSpellings(t *testing.T) {
	for _, text := range []string{
		`<broker brokerName="x"/>`,
		`<broker><brokerName>x</brokerName></broker>`,
		`<broker><brokerName> x </brokerName></broker>`,
		`<broker><property name="brokerName" value="x"/></broker>`,
		`<broker><property name="brokerName"><value>x</value></property></broker>`,
		`<a:broker xmlns:a="http://activemq.apache.org/schema/core" brokerName="&#120;"/>`,
		"\ufeff<broker brokerName='x'/>",
		`<?xml version="1.0" encoding="ISO-8859-1"?><broker brokerName="x">` +
			"<!-- \xfc --></broker>",
	} {
		c, err := Parse("f.xml", []byte(text), Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := c.Broker().Name; got != "x" {
			t.Errorf("%s: name %q", text, got)
		}
	}
}

func TestXMLMistakesAreOneLineWithPlace(t *testing.T) {
	deep := strings.Repeat("<a>", maxXMLDepth+1)
	for text, want := range map[string]string{
		"":      "f.xml:1:1: no element: this is no configuration",
		"hello": "f.xml:1:1: text outside of any element; is this an XML file?",
		"<broker>": "f.xml:1:9: the end of the file where <broker> of line 1 is " +
			"still open; did you mean </broker>?",
		"<broker>\n <b></broker>": "f.xml:2:5: </broker> where <b> of line 2 is still open; " +
			"did you mean </b>?",
		"<broker/><broker/>":    "f.xml:1:10: a second root element",
		"</broker>":             "f.xml:1:1: </broker> closes nothing",
		"<broker a='1' a='2'/>": "f.xml:1:15: attribute a twice on <broker>",
		"<broker brokerName='a&b'/>": "f.xml:1:24: XML: &b (no semicolon) is no character entity: " +
			"in a URI, & is written &amp;",
		"<beens/>": "f.xml:1:1: <beens> is not the root of a configuration; " +
			"expected <beans> or <broker>; did you mean beans?",
		"<beans/>": "f.xml:1:1: no <broker> in <beans>",
		"<!DOCTYPE a [<!ENTITY b 'c'>]><broker/>": "f.xml:1:1: a document type with " +
			"declarations is not accepted",
		deep: "f.xml:1:193: nested more than 64 deep",
		"<?xml version='1.0' encoding='UTF-16'?><broker/>": `f.xml:1:40: XML: xml: opening charset ` +
			`"UTF-16": encoding UTF-16 is not supported: save the file as UTF-8`,
		"<broker brokerName='é' x='1'/>": "f.xml:1:24: unknown attribute x on <broker>",
	} {
		_, err := Parse("f.xml", []byte(text), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%.40q\n\tgot  %v\n\twant %s", text, err, want)
		}
	}
	_, err := Parse("f.xml", make([]byte, maxFileBytes+1), Options{})
	if err == nil || err.Error() != "f.xml:1:1: larger than 4194304 bytes" {
		t.Errorf("a large file: %v", err)
	}
}

func TestPlaceholders(t *testing.T) {
	const bean = `<bean class="org.springframework.beans.factory.config.` +
		`PropertyPlaceholderConfigurer"><property name="locations"><list>` +
		`<value>p1.properties</value><value>p2.properties</value></list></property>%s</bean>`
	opts := Options{
		Defines:   map[string]string{"defined": "D", "both": "D"},
		LookupEnv: func(name string) (string, bool) { return "E", name == "env" },
		ReadFile: func(path string) ([]byte, error) {
			return []byte(map[string]string{
				"p1.properties": "both=F\nfile=1\nnested=<${defined}>\nloop=${loop}\nx.D=y",
				"p2.properties": "file=2\nbig=${b1}${b1}${b1}\nb1=" + strings.Repeat("b", 30000),
			}[path]), nil
		},
	}
	for _, tt := range []struct{ text, extra, want string }{
		{"${defined}-${env}-${file}", "", "D-E-2"},
		{"${both}", "", "F"},
		{"${both}", `<property name="systemPropertiesModeName" value="SYSTEM_PROPERTIES_MODE_OVERRIDE"/>`,
			"D"},
		{"${nested}", "", "<D>"},
		{"${x.${defined}}", "", "y"},
		{"${none:def:ault}", "", "def:ault"},
		{"${none:${file}}", "", "2"},
		{"${none:}", "", ""},
		{"$ {a} }", "", "$ {a} }"},
		{"${none}", `<property name="ignoreUnresolvablePlaceholders" value="true"/>`, "${none}"},
		{"${none}", "", "f.xml:1:%d: placeholder ${none} is not defined: not in p1.properties, " +
			"p2.properties, nor by -Dnone=... nor in the environment"},
		{"${loop}", "", "f.xml:1:%d: placeholders nested more than 16 deep, or in a circle"},
		{"${big}", "", "f.xml:1:%d: value longer than 65536 bytes"},
		{"${open", "", "f.xml:1:%d: placeholder without its }"},
	} {
		head := "<beans>" + fmt.Sprintf(bean, tt.extra) + "<broker "
		text := strings.ReplaceAll(tt.text, "<", "&lt;")
		c, err := Parse("f.xml", []byte(head+`brokerId="`+text+`"/></beans>`), opts)
		got := fmt.Sprint(err)
		if err == nil {
			got = c.Broker().ID
		}
		want := tt.want
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, len(head)+1)
		}
		if got != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", tt.text, got, want)
		}
	}
}

func TestMissingPropertyFileIsNamed(t *testing.T) {
	const text = `<beans><bean class="PropertyPlaceholderConfigurer"><property name="location" ` +
		`value="file:/no/such.properties"/>%s</bean><broker/></beans>`
	opts := Options{ReadFile: func(string) ([]byte, error) { return nil, errors.New("gone") }}
	_, err := Parse("f.xml", fmt.Appendf(nil, text, ""), opts)
	if err == nil || err.Error() != "f.xml:1:8: property file /no/such.properties: gone" {
		t.Errorf("got %v", err)
	}
	_, err = Parse("f.xml", fmt.Appendf(nil, text,
		`<property name="ignoreResourceNotFound" value="true"/>`), opts)
	if err != nil {
		t.Errorf("ignored: %v", err)
	}
}

// Spring reads file: as a URL, whose path is decoded, and any other name as it is.
func TestAMissingPropertyFileOfTheConfFolderIsToldOnceWithWhatMovesIt(t *testing.T) {
	const text = `<beans><bean class="PropertyPlaceholderConfigurer"><property name="location" ` +
		`value="file:${activemq.conf}/no.properties"/></bean><broker/></beans>`
	dir := t.TempDir()
	_, err := Parse(filepath.Join(dir, "f.xml"), []byte(text), Options{
		LookupEnv: func(string) (string, bool) { return "", false }})
	want := ": property file " + dir + "/no.properties: no such file or directory; if " +
		"${activemq.conf} is not " + dir + ", ACTIVEMQ_CONF or -D activemq.conf=... says so"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAPropertyFileThatIsNamedByAURIIsDecoded(t *testing.T) {
	for location, want := range map[string]string{
		"file:/a%20b+c.properties": "/a b+c.properties", "file:///100%25.properties": "/100%.properties",
		"/a%20b.properties": "/a%20b.properties",
		"file:/a%2.properties": "f.xml:1:8: property file file:/a%2.properties: a % stands before two" +
			" hexadecimal digits; %25 is one itself",
	} {
		read := ""
		opts := Options{ReadFile: func(path string) ([]byte, error) { read = path; return nil, nil }}
		_, err := Parse("f.xml", []byte(`<beans><bean class="PropertyPlaceholderConfigurer">`+
			`<property name="location" value="`+location+`"/></bean><broker/></beans>`), opts)
		if err != nil {
			read = err.Error()
		}
		if read != want {
			t.Errorf("%s: %s, want %s", location, read, want)
		}
	}
}

// The values were made by ActiveMQ 5.17.2's encrypt command with the password "activemq".
func TestDecryptsWhatActiveMQEncrypts(t *testing.T) {
	for value, want := range map[string]string{
		"mYRkg+4Q4hua1kvpCCI2hg==":         "manager",
		"Cf3Jf3tM+UrSOoaKU50od5CuBa8rxjoL": "password",
	} {
		if got, err := decryptPBE(value, "activemq"); got != want || err != nil {
			t.Errorf("%s: %q, %v", value, got, err)
		}
		if got, err := decryptPBE(value, "wrong"); err == nil {
			t.Errorf("%s decrypts with a wrong password to %q", value, got)
		}
	}
	for _, value := range []string{"", "x", "AAAA", "AAAAAAAAAAA=", "mYRkg+4Q4hua1kvpCCI2"} {
		if _, err := decryptPBE(value, "activemq"); err == nil {
			t.Errorf("%q decrypts", value)
		}
	}
}

func TestURIs(t *testing.T) {
	for text, want := range map[string]string{
		"tcp://h:1":                            "tcp://h:1",
		"tcp://h:1/p?a=b&c=%26+d":              "tcp://h:1/p a=b c=& d",
		"nio://[::1]:5?x":                      "nio://[::1]:5 x=",
		"tcp://[fe80::1]":                      "tcp://[fe80::1]",
		"tcp://h:0":                            "tcp://h:0",
		"tcp://h":                              "tcp://h",
		"static:(tcp://a:1?x=1,tcp://b:2)?y=2": "static:(tcp://a:1,tcp://b:2) y=2",
		"static://(tcp://a:1)":                 "static:(tcp://a:1)",
		"static:tcp://a:1,tcp://b:2":           "static:(tcp://a:1,tcp://b:2)",
		"static:(failover:(tcp://a:1, tcp://b)": `error: "static:(failover:(tcp://a:1, ` +
			`tcp://b)": it has a ( without its )`,
		"masterslave:(tcp://a:1,tcp://b:1)": "masterslave:(tcp://a:1,tcp://b:1)",
		"multicast://default?group=x":       "multicast://default group=x",
		"localhost:61616": `error: "localhost:61616": no tcp:// in front; use ` +
			`tcp://host:port`,
		"static:(tcp://a:1,10.0.0.1:2)": `error: "10.0.0.1:2": no tcp:// in front; use ` +
			`tcp://host:port`,
		"tcp:h:1":            `error: "tcp:h:1": no // behind tcp:; use tcp://host:port`,
		"tcp://h h:1":        `error: "tcp://h h:1": "h h" is no host; use tcp://host:port`,
		"tcp://u:secret@h:1": "tcp://h:1",
		"h":                  `error: "h": no tcp:// in front; use tcp://host:port`,
		"tcp://h:port": `error: "tcp://h:...": what stands behind the host's colon is no port ` +
			`from 0 to 65535; use tcp://host:port`,
		"tcp://h:1?a=%zz": `error: "tcp://h:1": option 1: a % stands before two hexadecimal digits; ` +
			`%25 is one itself`,
		"static:()":   `error: "static:()": it lists no address`,
		"static:":     `error: "static:": it lists no address`,
		"failover://": `error: "failover://": it lists no address`,
		strings.Repeat("static:(", 7) + "tcp://a:1" + strings.Repeat(")", 7): "error: URIs nested " +
			"more than 5 deep",
	} {
		u, err := ParseURI(text)
		got := fmt.Sprintf("error: %v", err)
		if err == nil {
			got = u.String() + dumpOptions(u.Options)
		}
		if got != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", text, got, want)
		}
	}
}

// What a file writes in a URI's options is what the transport acts on.
func TestOptionsReachTheTransportAsTheyWereWritten(t *testing.T) {
	for _, value := range []string{
		"plain", "a b", "a+b", "a%2Bb", "50%", "x&y=z;w", "(a,b)", "ü", "?",
	} {
		for _, text := range []string{
			"tcp://127.0.0.1:0?k=" + url.QueryEscape(value),
			"tcp://127.0.0.1:0?first=1&k=" + url.QueryEscape(value),
		} {
			u, err := ParseURI(text)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ParseURI(u.Text())
			if err != nil || again.Text() != u.Text() ||
				again.Options[len(again.Options)-1].Value != value {
				t.Errorf("%q: %s becomes %s, %v", value, u.Text(), again.Text(), err)
			}
			there, err := transport.ParseURI(u.Text())
			if err != nil || there.Options["k"] != value || there.Address() != "127.0.0.1:0" {
				t.Errorf("%q: the transport reads %q at %s, %v", value, there.Options["k"],
					there.Address(), err)
			}
		}
	}
}

func TestErrorsShowAUriWithoutItsOptions(t *testing.T) {
	for _, text := range []string{"h?password=secret", "static:(tcp://a:1?password=secret",
		"static:(?password=secret)", "tcp://h:x?password=secret", "tcp://h:1?password=%zsecret"} {
		if _, err := ParseURI(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.xml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	opts := testOptions()
	opts.ReadFile = func(string) ([]byte, error) { return []byte("activemq.password=${x:y}"), nil }
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f.xml", []byte(text), opts)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("not Problems: %v", err)
			}
			for _, p := range problems {
				if strings.ContainsAny(p.Error(), "\n\r") || p.Pos.Line < 1 || p.Pos.Col < 1 {
					t.Errorf("not one line with a place: %q", p.Error())
				}
			}
			return
		}
		for _, n := range c.Notices {
			if strings.ContainsAny(n.String(), "\n\r") {
				t.Errorf("not one line: %q", n)
			}
		}
		_ = c.Broker()
	})
}

func TestABrokersNameIsThatOfAFolder(t *testing.T) {
	for name, want := range map[string]string{
		"":                        "brokerName on <broker> is empty",
		".":                       `is ".", which names no folder of its own`,
		"..":                      `is "..", which names no folder of its own`,
		strings.Repeat("ä", 128):  "has 256 bytes; it names a folder, and may have 255",
		strings.Repeat("n", 5000): "has 5000 bytes",
	} {
		_, err := parse(t, `brokerName="`+name+`"`, "", Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", name, err, want)
		}
	}
}

// What ActiveMQ replaces in a name is replaced, and told.
func TestABrokersNameIsReplacedAsByActiveMQ(t *testing.T) {
	for name, want := range map[string]string{
		"a":           "a",
		"A..b_c-D:9":  "A..b_c-D:9",
		"my shop":     "my_shop",
		"../../etc/x": ".._.._etc_x",
		"a&#10;b":     "a_b",
		"a&#x9b;31m":  "a_31m",
		"küche\\1":    "k_che_1",

		strings.Repeat("n", 255): strings.Repeat("n", 255),
	} {
		c, err := parse(t, `brokerName="`+name+`"`, "", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		told := slices.ContainsFunc(c.Notices, func(n Notice) bool {
			return n.Kind == Warning && strings.Contains(n.Text, "is taken as")
		})
		if got := c.Broker(); got.Name != want || told != (name != want) ||
			filepath.Base(filepath.Dir(got.Persistence.Directory)) != want {
			t.Errorf("%s is %s at %s, told %t", name, got.Name, got.Persistence.Directory, told)
		}
	}
}
