package hopwire

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/bridge"
	"hopwire/internal/config"
	"hopwire/internal/config/schema"
	"hopwire/internal/store/disk"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

// file writes a configuration with a broker of these attributes and content.
func file(t *testing.T, attributes, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "activemq.xml")
	text := `<beans xmlns="http://www.springframework.org/schema/beans">
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b" ` + attributes + `>
` + content + `
</broker></beans>`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, attributes, content string) (*Setup, error) {
	t.Helper()
	return Load(file(t, attributes, content), Options{Log: slog.New(slog.DiscardHandler)})
}

func netw(attributes, content string) string {
	return `<networkConnectors><networkConnector ` + attributes + `>` + content +
		`</networkConnector></networkConnectors>`
}

// bridgeOptions are those of the only bridge of a networkConnector.
func bridgeOptions(t *testing.T, attributes, content string) bridge.Options {
	t.Helper()
	s, err := load(t, "", netw(attributes, content))
	if err != nil {
		t.Fatalf("%s: %v", attributes, err)
	}
	n := s.config.Broker().Networks[0]
	return connectorOptions(n, n.Links[0], s.config.Compat)
}

// other is a value that is valid and not the default.
func other(a *schema.Attribute) string {
	switch {
	case a.Type == schema.Bool && a.Default == "true":
		return "false"
	case a.Type == schema.Bool:
		return "true"
	case a.Choices != nil:
		return a.Choices[1]
	case a.Name == "cacheSize":
		return "2000"
	case a.Type == schema.Text:
		return "x.y"
	case a.Type == schema.Float:
		return "3.5"
	}
	if a.Type == schema.Millis {
		return "70000"
	}
	return "7"
}

func TestWhatIsHonouredOnANetworkConnectorReachesTheBridge(t *testing.T) {
	const uri = `uri="static:(tcp://h:1)`
	elsewhere := map[string]string{
		"uri":       "it is where the bridge leads",
		"autoStart": "TestWhatDoesNotStartByItselfStaysClosedAndStopped",
		// Told to the peer of a duplex bridge; neither side acts on it.
		"dynamicOnly": "tolerated",
	}
	base := bridgeOptions(t, uri+`"`, "")
	same := func(attributes, content string) bool {
		return reflect.DeepEqual(base, bridgeOptions(t, attributes, content))
	}
	el := schema.ElementNamed("networkConnector")
	for _, a := range el.Attributes {
		if a.Status == schema.Refused || a.Type == schema.Object || elsewhere[a.Name] != "" {
			continue
		}
		attributes := fmt.Sprintf(`%s" %s="%s"`, uri, a.Name, other(&a))
		if a.Name == "discoveryURI" {
			attributes = `discoveryURI="static:(tcp://other:1)"`
		}
		if honoured := a.Status == schema.Honoured; same(attributes, "") == honoured {
			t.Errorf("%s is called %s, but that it is set changes the bridge: %t", a.Name, a.Status,
				!honoured)
		}
	}
	for _, p := range el.Properties {
		content := fmt.Sprintf(`<%s><queue physicalName="q"/></%[1]s>`, p.Name)
		if p.Status == schema.Honoured && same(uri+`"`, content) {
			t.Errorf("<%s> is called honoured and does not change the bridge", p.Name)
		}
	}
	for _, a := range schema.OptionsAt("static").Attributes {
		attributes := fmt.Sprintf(`%s?%s=%s"`, uri, a.Name, other(&a))
		if honoured := a.Status == schema.Honoured; same(attributes, "") == honoured {
			t.Errorf("%s of static: is called %s, but that it is set changes the bridge: %t", a.Name,
				a.Status, !honoured)
		}
	}
}

func TestWhatIsHonouredInAURIChangesTheConnection(t *testing.T) {
	type effect struct {
		socket transport.Options
		offer  wire.Offer
	}
	of := func(text string) effect {
		u, err := transport.ParseURI(text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := transport.ParseOptions(u)
		if err != nil {
			t.Fatal(err)
		}
		offer, err := wire.OfferOf(o.WireFormat)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		o.WireFormat = nil
		return effect{o, offer}
	}
	base := of("tcp://h:1")
	for _, place := range []string{"server", "client", "transport.", "wireFormat."} {
		prefix := place
		if !strings.HasSuffix(place, ".") {
			prefix = ""
		}
		for _, a := range schema.OptionsAt(place).Attributes {
			if a.Status == schema.Refused || a.Name == "allowLinkStealing" {
				continue // what the broker honours is no matter of the connection
			}
			name := strings.Replace(a.Name, "*", "x", 1)
			set := of("tcp://h:1?" + prefix + name + "=" + other(&a))
			if ignored := set.socket.Ignored; len(ignored) > 0 && place == "client" {
				t.Errorf("%s of a peer: the reader accepts it and dialling does not", name)
			}
			set.socket.Ignored = nil
			if honoured := a.Status == schema.Honoured; reflect.DeepEqual(base, set) == honoured {
				t.Errorf("%s%s (%s) is called %s, but that it is set changes the connection: %t", prefix,
					name, place, a.Status, !honoured)
			}
			if a.Status != schema.Honoured || a.Default == "" || a.Name == "maximumConnections" {
				continue
			}
			if def := of("tcp://h:1?" + prefix + name + "=" + a.Default); !reflect.DeepEqual(base, def) {
				t.Errorf("%s%s (%s): %s is called its default and is not", prefix, name, place, a.Default)
			}
		}
	}
}

func TestAShuffledListKeepsItsAddresses(t *testing.T) {
	first := map[string]bool{}
	for range 100 {
		l := config.Link{Randomize: true}
		for _, text := range []string{"tcp://a:1", "tcp://b:1", "tcp://c:1"} {
			u, err := config.ParseURI(text)
			if err != nil {
				t.Fatal(err)
			}
			l.Peers = append(l.Peers, config.Peer{URI: u})
		}
		uris := inTurn(l, []string{"tcp://a:1", "tcp://b:1", "tcp://c:1"})
		first[uris[0]] = true
		if slices.Sort(uris); strings.Join(uris, " ") != "tcp://a:1 tcp://b:1 tcp://c:1" {
			t.Fatalf("the list became %q", uris)
		}
	}
	if len(first) != 3 { // by chance once in 10^17 runs
		t.Errorf("first was only ever one of %v", first)
	}
	if got := inTurn(config.Link{}, []string{"b", "a", "c"}); strings.Join(got, "") != "bac" {
		t.Errorf("randomize=false: %q", got)
	}
}

func TestWhatCannotStartIsRefusedWithItsPlace(t *testing.T) {
	uri := func(u string) string { return netw(`uri="`+u+`"`, "") }
	listener := func(u string) string {
		return `<transportConnectors><transportConnector name="t" uri="` + u + `"/></transportConnectors>`
	}
	for content, want := range map[string]string{
		netw(`uri="static:(tcp://h:1)" advisoryAckPercentage="0"`, ""): "advisoryAckPercentage",
		netw(`uri="static:(tcp://h:1)" prefetchSize="3000000000"`, ""): "prefetchSize",
		netw(`uri="static:(tcp://h:1)" inDoubtTimeout="0"`, ""):        "inDoubtTimeout",
		netw(`uri="static:(tcp://h:1)" inDoubtTimeout="-2"`, ""):       "inDoubtTimeout",
		netw(`uri="static:(tcp://h:1)" name=""`, ""):                   "name",
		uri("static:(tcp://h:1)?initialReconnectDelay=0"):              "initialReconnectDelay",
		uri("static:(tcp://h:1)?maxReconnectDelay=500"):                "maxReconnectDelay",
		uri("static:(tcp://h:1?wireFormat.cacheEnabled=true&amp;" +
			"wireFormat.cacheSize=9)"): "cacheSize",
		uri("static:(tcp://h:1?soTimeout=-1)"):       "soTimeout",
		listener("tcp://h:1?wireFormat.version=99"):  "wireFormat.version",
		listener("tcp://h:1?transport.soTimeout=-1"): "soTimeout",
	} {
		_, err := load(t, "", content)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "activemq.xml:3:") {
			t.Errorf("%s: %v, want %s with its line", content, err, want)
		}
	}
	for _, fine := range []string{
		uri("static:(tcp://h:1)?initialReconnectDelay=60000"),
		listener("tcp://h:1?wireFormat.maxFrameSize=64mb"),
	} {
		if _, err := load(t, "", fine); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// In ActiveMQ a usage of limit 0 is never full, and percentOfJvmHeap="0" sets no limit.
func TestAUsageOfNothingIsNoLimit(t *testing.T) {
	for _, attribute := range []string{`limit="0"`, `percentLimit="0"`, `percentOfJvmHeap="0"`} {
		for _, name := range []string{"memoryUsage", "storeUsage"} {
			if strings.Contains(attribute, "percent") &&
				(name == "memoryUsage") != strings.Contains(attribute, "Heap") {
				continue
			}
			s, err := load(t, "", fmt.Sprintf(`<systemUsage><systemUsage><%s><%[1]s %s/></%[1]s>`+
				`</systemUsage></systemUsage>`, name, attribute))
			if err != nil {
				t.Fatal(err)
			}
			b := s.config.Broker()
			is := map[string]int64{"storeUsage": storeLimit(b),
				"memoryUsage": brokerOptions(b, "", "").MemoryLimitBytes}[name]
			if is != 0 || name == "memoryUsage" && s.MemoryBytes() != 0 {
				t.Errorf("%s on <%s> is a limit of %d bytes, and of %d of memory", attribute, name, is,
					s.MemoryBytes())
			}
		}
	}
}

func TestAPercentageOfTheStoreIsOfItsDiskUnlessTotalSaysOfWhat(t *testing.T) {
	usage := func(attributes string) string {
		return `<systemUsage><systemUsage><storeUsage><storeUsage ` + attributes + `/></storeUsage>` +
			`</systemUsage></systemUsage>`
	}
	folder := filepath.Join(t.TempDir(), "not", "there", "yet")
	size := disk.Capacity(folder)
	if size < 1<<20 || size != disk.Capacity(t.TempDir()) {
		t.Fatalf("the disk has %d bytes", size)
	}
	for _, c := range []struct {
		broker, usage string
		want          int64
	}{
		{``, `percentLimit="50"`, size / 100 * 50},
		{``, `percentLimit="50" total="10 mb"`, 10 << 20 / 100 * 50},
		{``, `limit="7 mb"`, 7 << 20},
		{`persistent="false"`, `percentLimit="50"`, fallbackDiskBytes / 100 * 50},
	} {
		s, err := load(t, `dataDirectory="`+folder+`" `+c.broker, usage(c.usage))
		if err != nil {
			t.Fatal(err)
		}
		if got := storeLimit(s.config.Broker()); got != c.want {
			t.Errorf("%s %s: %d bytes, not %d", c.broker, c.usage, got, c.want)
		}
	}
}

// More connections than the limit of open files has room for are told when the file says how many.
func TestMoreConnectionsThanOpenFilesAreTold(t *testing.T) {
	connectors := func(uris ...string) string {
		text := ""
		for _, u := range uris {
			text += `<transportConnector uri="` + u + `"/>`
		}
		return `<transportConnectors>` + text + `</transportConnectors>`
	}
	for _, c := range []struct {
		connectors string
		limit      uint64
		want       string
	}{
		{connectors("tcp://127.0.0.1:0?maximumConnections=1000"), 1024, "1000 connections in all"},
		{connectors("tcp://127.0.0.1:0?maximumConnections=768"), 1024, ""},
		{connectors("tcp://127.0.0.1:0?maximumConnections=500",
			"nio://127.0.0.1:0?maximumConnections=500"), 1024, "(1024) leaves room for 768"},
		{connectors("tcp://127.0.0.1:0?maximumConnections=1000", "tcp://127.0.0.1:0"), 1024, ""},
		{connectors("tcp://127.0.0.1:0"), 256, ""},
		{connectors("tcp://127.0.0.1:0?maximumConnections=1000"), 0, ""},
		{"", 256, ""},
	} {
		s, err := load(t, "", c.connectors)
		if err != nil {
			t.Fatal(err)
		}
		got := tooMany(s.config.Broker(), c.limit)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("of %d files, %s: %q, want %q", c.limit, c.connectors, got, c.want)
		}
	}
}

// The stores and spools of a process leave some of what is kept from listeners to others.
func TestStoresOfAProcessShareTheOpenFiles(t *testing.T) {
	for _, limit := range []uint64{1024, 4096, 65536, 1 << 20} {
		for _, brokers := range []int{0, 1, 2, 3, 5} {
			n := tablesOf(limit, brokers)
			if all := uint64(2 * n * max(1, brokers)); n < tablesLeast ||
				all > transport.ReservedFiles(limit) {
				t.Errorf("limit %d: %d brokers have %d tables each", limit, brokers, n)
			}
		}
	}
}
