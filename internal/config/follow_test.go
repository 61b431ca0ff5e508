package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What cannot be resolved is one mistake, whatever else it leaves empty.
func TestAnUnresolvedPlaceholderIsOneError(t *testing.T) {
	const bean = `<bean class="x.PropertyPlaceholderConfigurer"/>`
	for _, content := range []string{
		`<networkConnectors><networkConnector uri="${none}"/></networkConnectors>`,
		`<networkConnectors><networkConnector uri="static:(${none})"/></networkConnectors>`,
		`<networkConnectors><networkConnector name="${none}" uri="static:(tcp://a:1)"/>` +
			`</networkConnectors>`,
		`<transportConnectors><transportConnector uri="${none}"/></transportConnectors>`,
		`<destinations><queue physicalName="${none}"/></destinations>`,
		`<plugins><simpleAuthenticationPlugin><users><authenticationUser username="${none}"` +
			` password="p"/></users></simpleAuthenticationPlugin></plugins>`,
	} {
		for _, head := range []string{bean, ""} {
			_, err := Parse("f.xml", []byte("<beans>"+head+"<broker>"+content+"</broker></beans>"),
				testOptions())
			if err == nil || strings.Contains(err.Error(), "\n") ||
				!strings.Contains(err.Error(), "placeholder ${none}") {
				t.Errorf("%s\n%v\nwant one line about ${none}", content, err)
			}
		}
	}
}

func TestAMissingPlaceholderBeanIsToldOnce(t *testing.T) {
	_, err := Parse("f.xml", []byte("<broker brokerName=\"${a}\"\ndataDirectory=\"${b}\"/>"),
		testOptions())
	if err == nil || strings.Count(err.Error(), "PropertyPlaceholderConfigurer bean that") != 1 {
		t.Errorf("%v, want one line", err)
	}
}

// connectors is a broker with network connectors, a line each.
func connectors(t *testing.T, lines ...string) (*Config, error) {
	t.Helper()
	return Parse("f.xml", []byte("<broker><networkConnectors>\n"+strings.Join(lines, "\n")+
		"</networkConnectors></broker>"), testOptions())
}

func TestConnectorsOfOneNameToOneAddressAreRefused(t *testing.T) {
	const unnamed = `<networkConnector uri="static:(%s)"/>`
	a, b := fmt.Sprintf(unnamed, "tcp://a:1,tcp://b:1"), fmt.Sprintf(unnamed, "nio://B:1")
	other := fmt.Sprintf(unnamed, "tcp://c:1")
	named := strings.Replace(b, " uri", ` name="x" uri`, 1)
	_, err := connectors(t, a, other, b)
	want := "f.xml:4:1: two network connectors called NC (line 2 has the first) lead to b:1, where " +
		"each would end the other's link; give them different names"
	if fmt.Sprint(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	c, err := connectors(t, a, other)
	if err != nil || len(c.Notices) != 1 ||
		!strings.HasPrefix(c.Notices[0].String(), "f.xml:3:1: warning: two network connectors are") {
		t.Errorf("to different addresses: %v, %v", c, err)
	}
	if c, err = connectors(t, a, named); err != nil || len(c.Notices) > 0 {
		t.Errorf("with names: %v, %v", c, err)
	}
}

func TestAnAddressThatIsNamedTwiceGetsOneBridge(t *testing.T) {
	c, err := connectors(t, `<networkConnector uri="static:(tcp://a:1,tcp://b:1,tcp://A:1)"/>`)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Broker().Networks[0].Links); n != 2 || len(c.Notices) != 1 ||
		!strings.Contains(c.Notices[0].Text, "tcp://A:1 is named twice") {
		t.Errorf("%d bridges, %v", n, c.Notices)
	}
}

func TestInDoubtTimeoutMayBeNever(t *testing.T) {
	const connector = `<networkConnector uri="static:(tcp://a:1)" inDoubtTimeout="%s"/>`
	for value, want := range map[string]time.Duration{
		"never": -time.Millisecond, "NEVER": -time.Millisecond, "-1": -time.Millisecond,
		"1": time.Millisecond, "0": 0, "-2": 0, "ever": 0, "": 0,
	} {
		c, err := connectors(t, fmt.Sprintf(connector, value))
		switch {
		case want == 0 && (err == nil || !strings.Contains(err.Error(),
			"is not a whole number of milliseconds from 1, or never")):
			t.Errorf("%q: %v", value, err)
		case want != 0 && (err != nil || c.Broker().Networks[0].InDoubtTimeout != want):
			t.Errorf("%q: %v, want %v", value, err, want)
		}
	}
}
