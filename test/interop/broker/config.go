package broker

import (
	"fmt"
	"strings"
)

// Options describe a broker. The zero value of each field is a useful default.
type Options struct {
	Name       string      // brokerName, "broker" by default
	Port       int         // of the OpenWire listener; a free one by default
	Transport  string      // more of the listener's URI, as "maximumConnections=5&wireFormat.x=y"
	Persistent bool        // KahaDB in the data folder; in memory by default
	Connectors []Connector // network connectors
	Attributes string      // more attributes of <broker>, as `advisorySupport="false"`
	Policy     string      // <policyEntry> elements
	Usage      string      // attributes of <systemUsage>, as `sendFailIfNoSpace="true"`
	Plugins    string      // elements of <plugins>; the statistics plugin is always there
	Elements   string      // more child elements of <broker>
	Bench      bool        // as in production: a JVM with 1 GiB and all its compilers, no assertions
	Compat     int         // of hopwire: --compat; by default it is not given
	Config     string      // a whole activemq.xml instead; {port} and {data} are filled in
}

// Connector is a network connector.
type Connector struct {
	Name       string
	URI        string // see Static
	Attributes string // as `duplex="true" networkTTL="3"`
	Elements   string // as `<staticallyIncludedDestinations>…`
}

// Static is the URI of a connector to some brokers, in this order.
func Static(peers ...*Broker) string {
	urls := make([]string, len(peers))
	for i, p := range peers {
		urls[i] = p.URL()
	}
	return "static:(" + strings.Join(urls, ",") + ")"
}

const head = `<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
  http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
  http://activemq.apache.org/schema/core
  http://activemq.apache.org/schema/core/activemq-core.xsd">
`

// render makes the activemq.xml of a broker that listens on a port and keeps its files in a folder.
func (o Options) render(port int, data string) string {
	if o.Config != "" {
		return strings.NewReplacer("{port}", fmt.Sprint(port), "{data}", data).Replace(o.Config)
	}
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, `<broker xmlns="http://activemq.apache.org/schema/core" brokerName="%s" `+
		`dataDirectory="%s" persistent="%t" %s>`+"\n", o.Name, data, o.Persistent, o.Attributes)
	if o.Policy != "" {
		fmt.Fprintf(&b, "<destinationPolicy><policyMap><policyEntries>%s</policyEntries>"+
			"</policyMap></destinationPolicy>\n", o.Policy)
	}
	b.WriteString("<managementContext><managementContext createConnector=\"false\"/>" +
		"</managementContext>\n")
	if len(o.Connectors) > 0 {
		b.WriteString("<networkConnectors>\n")
		for _, c := range o.Connectors {
			fmt.Fprintf(&b, "<networkConnector name=\"%s\" uri=\"%s\" %s>%s</networkConnector>\n",
				c.Name, escape(c.URI), c.Attributes, c.Elements)
		}
		b.WriteString("</networkConnectors>\n")
	}
	if o.Persistent {
		fmt.Fprintf(&b, "<persistenceAdapter><kahaDB directory=\"%s/kahadb\"/>"+
			"</persistenceAdapter>\n", data)
	}
	fmt.Fprintf(&b, "<plugins>%s<statisticsBrokerPlugin/></plugins>\n", o.Plugins)
	fmt.Fprintf(&b, "<systemUsage><systemUsage %s>", o.Usage)
	b.WriteString("<storeUsage><storeUsage limit=\"50 gb\"/></storeUsage>" +
		"<tempUsage><tempUsage limit=\"10 gb\"/></tempUsage></systemUsage></systemUsage>\n")
	uri := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	if o.Transport != "" {
		uri += "?" + o.Transport
	}
	fmt.Fprintf(&b, "<transportConnectors><transportConnector name=\"openwire\" uri=\"%s\"/>"+
		"</transportConnectors>\n%s</broker></beans>\n", escape(uri), o.Elements)
	return b.String()
}

// escape makes a URI fit for an attribute; one that already is stays as it is.
func escape(uri string) string {
	return strings.ReplaceAll(strings.ReplaceAll(uri, "&amp;", "&"), "&", "&amp;")
}
