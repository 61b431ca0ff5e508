package config

import (
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
