package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// TestTheExamplesStartOnBothKindsOfBroker starts the files of examples/pair as they are, but for
// their ports and folder, and sends a message from a to b.
func TestTheExamplesStartOnBothKindsOfBroker(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		b := example(t, p.b, "b", 0)
		a := example(t, p.a, "a", b.Port())
		d := jms.Start(t, jms.V5)
		got := d.Connect(b.URL()).Consumer("queue://orders")
		a.WaitConsumers("orders", 1, 30*time.Second)
		d.Connect(a.URL()).Send("queue://orders", 1, "m{}")
		got.Wait(1, 30*time.Second)
	})
}

// example starts one of the two files; peer is the other's port.
func example(t *testing.T, kind broker.Kind, name string, peer int) *broker.Broker {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "pair", name+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	return broker.Start(t, kind, broker.Options{Name: name, Config: adapt(string(text), peer)})
}

var (
	listens = regexp.MustCompile(`(<transportConnector [^>]*uri="tcp://127\.0\.0\.1:)\d+`)
	bridges = regexp.MustCompile(`static:\(tcp://127\.0\.0\.1:\d+\)`)
	folder  = regexp.MustCompile(`dataDirectory="[^"]*"`)
)

// adapt gives an example other ports and another folder, and the statistics that the test reads; a
// JVM opens no JMX port.
func adapt(text string, peer int) string {
	text = listens.ReplaceAllString(text, "${1}{port}")
	text = folder.ReplaceAllString(text, `dataDirectory="{data}"`)
	if peer == 0 {
		peer = 1 // nobody: b's own bridge is not needed
	}
	text = bridges.ReplaceAllString(text, "static:(tcp://127.0.0.1:"+strconv.Itoa(peer)+")")
	return strings.NewReplacer(
		"<networkConnectors>", `<managementContext><managementContext createConnector="false"/>`+
			"</managementContext><networkConnectors>",
		"<transportConnectors>", "<plugins><statisticsBrokerPlugin/></plugins><transportConnectors>",
	).Replace(text)
}

// TestTheExampleOfRightsIsEnoughForABridge has the example's user "link" bring what its user "shop"
// consumes, from a broker of either kind.
func TestTheExampleOfRightsIsEnoughForABridge(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "rights", "hub.xml"))
	must(t, err)
	config := folder.ReplaceAllString(listens.ReplaceAllString(string(text), "${1}{port}"),
		`dataDirectory="{data}"`)
	config = strings.Replace(config, "<plugins>", `<managementContext><managementContext `+
		`createConnector="false"/></managementContext><plugins>`, 1)
	eachPair(t, func(t *testing.T, p pair) {
		hub := broker.Start(t, p.b, broker.Options{Name: "hub", Config: config})
		a := ruled(t, p.a, "a", "", hub, `remoteUserName="link" remotePassword="change-me"`, "")
		d := jms.Start(t, jms.V5)
		shop, err := d.Dial(jms.ConnectOptions{URL: hub.URL(), User: "shop", Password: "change-me"})
		must(t, err)
		got := shop.Consumer("queue://orders.new")
		a.WaitConsumers("orders.new", 1, patience)
		d.Connect(a.URL()).Send("queue://orders.new", 3, "m{}")
		got.Wait(3, patience)
	})
}
