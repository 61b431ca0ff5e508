package config

import (
	"fmt"
	"strings"
	"testing"

	"hopwire/internal/config/schema"
)

// What is known and stands at the wrong place is told where it belongs.
func TestWhatStandsAtTheWrongPlaceIsToldWhereItBelongs(t *testing.T) {
	const (
		policy  = "<destinationPolicy><policyMap><policyEntries>"
		closing = "</policyEntries></policyMap></destinationPolicy>"
	)
	network := func(attributes, inside string) string {
		return "<networkConnectors><networkConnector uri='static:(tcp://h:1)' " + attributes + ">" +
			inside + "</networkConnector></networkConnectors>"
	}
	for _, tt := range []struct{ inside, want string }{
		{policy + "<policyEntry queue='>' replayWhenNoConsumers='true'/>" + closing,
			"unknown attribute replayWhenNoConsumers on <policyEntry>; it belongs on " +
				"<conditionalNetworkBridgeFilterFactory> in <policyEntry><networkBridgeFilterFactory>"},
		{policy + "<policyEntry queue='>'><networkBridgeFilterFactory replayDelay='1'/></policyEntry>" +
			closing, "attribute replayDelay on <networkBridgeFilterFactory>: that element only wraps " +
			"others, write it on the one inside; it belongs on <conditionalNetworkBridgeFilterFactory> " +
			"in <networkBridgeFilterFactory>"},
		{network("replayWhenNoConsumers='true'", ""),
			"unknown attribute replayWhenNoConsumers on <networkConnector>; it belongs on " +
				"<conditionalNetworkBridgeFilterFactory> in <broker>" + policy +
				"<policyEntry><networkBridgeFilterFactory>"},
		{network("useJmx='x'", ""), "unknown attribute useJmx on <networkConnector>; it " +
			"belongs on <broker>"},
		{network("user='x'", ""),
			"unknown attribute user on <networkConnector>; did you mean userName?"},
		{network("pass='x'", ""),
			"unknown attribute pass on <networkConnector>; did you mean password?"},
		{network("", "<policyEntry queue='x'/>"), "unknown element <policyEntry> in " +
			"<networkConnector>; it belongs into <broker>" + policy},
		{network("wireFormat.maxFrameSize='1'", ""), "unknown attribute wireFormat.maxFrameSize on " +
			"<networkConnector>; it is an option of the uri: ?wireFormat.maxFrameSize="},
		{network("initialReconnectDelay='1'", ""), "unknown attribute initialReconnectDelay on " +
			"<networkConnector>; it is an option of the uri: ?initialReconnectDelay="},
		{"<systemUsage><memoryUsage limit='1 mb'/></systemUsage>", "unknown element <memoryUsage> in " +
			"<systemUsage>; it belongs into <systemUsage><systemUsage>"},
		{"<policyEntry queue='x'/>", "unknown element <policyEntry> in <broker>; it belongs into " +
			"<broker>" + policy},
		{"<bean class='x'/>",
			"unknown element <bean> in <broker>; it belongs into <beans>, beside <broker>"},
		{"<broker/>", "unknown element <broker> in <broker>; it belongs into <beans>"},
		{"<transportConnectors><networkConnector/></transportConnectors>", "unknown element " +
			"<networkConnector> in <transportConnectors>; it belongs into <broker><networkConnectors>"},
		{"<nothing/>", "unknown element <nothing> in <broker>"},
	} {
		text := "<broker>" + tt.inside + "</broker>"
		_, err := Parse("f.xml", []byte(text), Options{})
		if err == nil || !strings.HasSuffix(strings.Split(err.Error(), "\n")[0], ": "+tt.want) {
			t.Errorf("%s\n\tgot  %v\n\twant %s", text, err, tt.want)
		}
	}
}

// A user in a URI is used by nobody, and that is told by line, without what it is.
func TestAUserInAUriIsWarnedOf(t *testing.T) {
	const network = "<networkConnectors><networkConnector name='up' uri='%s'/></networkConnectors>"
	const port = "<transportConnectors><transportConnector name='in' uri='%s'/></transportConnectors>"
	for _, tt := range []struct{ form, uri, want string }{
		{network, "static:(tcp://u:secret@h:1)", "up is not used; write userName and password"},
		{network, "static:(tcp://g:1,failover:(tcp://f:1,tcp://u:sec/ret@h:1))", "up is not used"},
		{network, "masterslave:(tcp://g:1,tcp://u@h:1)", "up is not used"},
		{network, "tcp://u:secret@h:1", "up is not used"},
		{network, "static:(tcp://h:1,tcp://g:1/a)", ""},
		{port, "tcp://u:secret@127.0.0.1:0", "in is not used: clients log in with their own"},
		{port, "tcp://127.0.0.1:0", ""},
	} {
		c, err := Parse("f.xml", fmt.Appendf(nil, "<broker>"+tt.form+"</broker>", tt.uri), Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		told := ""
		for _, n := range c.Notices {
			if strings.Contains(n.Text, "the user in the uri") {
				told += n.String()
			}
		}
		if !strings.Contains(told, tt.want) || (told == "") != (tt.want == "") ||
			strings.Contains(told, "sec") || told != "" && !strings.HasPrefix(told, "f.xml:1:") {
			t.Errorf("%s: %q, want %q", tt.uri, told, tt.want)
		}
	}
}

// So it is with every attribute of the schema on every element, and with every element in each.
func TestEveryKnownNameAtAWrongPlaceIsToldWhereItBelongs(t *testing.T) {
	for _, on := range schema.Elements() {
		for _, e := range schema.Elements() {
			for i := range e.Attributes {
				if hint := schema.Belongs(e.Attributes[i].Name, on, nil, true); hint == "" {
					t.Errorf("%s of <%s> on <%s>: not told", e.Attributes[i].Name, e.Name, on.Name)
				}
			}
			if hint := schema.Belongs(e.Name, on, nil, false); hint == "" {
				t.Errorf("<%s> in <%s>: not told", e.Name, on.Name)
			}
		}
	}
}
