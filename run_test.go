package hopwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/wait"
)

// run starts the broker of a file and stops it at the end of the test.
func run(t *testing.T, attributes, content string, o Options) *Broker {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := Load(file(t, attributes, content), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	b, err := s.Start(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Stop()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
		cancel()
	})
	return b
}

func TestPortZeroIsAnyFreePortAndIsTold(t *testing.T) {
	b := run(t, `persistent="false"`, `<transportConnectors>
		<transportConnector name="a" uri="tcp://127.0.0.1:0"/>
		<transportConnector name="b" uri="nio://127.0.0.1:0?maximumConnections=9"/>
	</transportConnectors>`, Options{})
	seen := map[string]bool{}
	for _, at := range b.Connectors() {
		_, address, _ := strings.Cut(at.Address, "://")
		_, port, err := net.SplitHostPort(address)
		if err != nil || port == "0" || port == "61616" || seen[port] {
			t.Errorf("%s: not a port of its own", at.Address)
		}
		seen[port] = true
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if len(seen) != 2 {
		t.Errorf("the connectors are %q", b.Connectors())
	}
}

func TestWhatDoesNotStartByItselfStaysClosedAndStopped(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	b := run(t, `persistent="false"`, `<transportConnectors>
		<transportConnector name="shut" uri="tcp://`+address+`" autoStart="false"/>
		<transportConnector name="open" uri="tcp://127.0.0.1:0"/>
	</transportConnectors>`+netw(`name="still" autoStart="false"
		uri="static:(tcp://127.0.0.1:1?wireFormat.version=9)"`, ""), Options{Compat: 6})
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Errorf("%s is open", address)
	}
	if c := b.Connectors(); len(c) != 1 || c[0].Name != "open" {
		t.Errorf("the connectors are %q", c)
	}
	bridges := b.Bridges()
	if len(bridges) != 1 || bridges[0].State != "STOPPED" {
		t.Errorf("the bridges are %+v", bridges)
	}
	if uri := bridges[0].URI; uri != "tcp://127.0.0.1:1" {
		t.Errorf("the bridge leads to %s, want an address without options", uri)
	}
}

func TestBothThatDoNotStartAreNoticed(t *testing.T) {
	s, err := Load(file(t, "", `<transportConnectors>
		<transportConnector name="shut" uri="tcp://127.0.0.1:0" autoStart="false"/>
	</transportConnectors>`+netw(`name="still" autoStart="false" uri="static:(tcp://h:1)"`, "")),
		Options{Compat: 6})
	if err != nil {
		t.Fatal(err)
	}
	notices := strings.Join(s.Notices(), "\n")
	for _, want := range []string{
		"connector shut is not opened", "network connector still stays stopped",
	} {
		if !strings.Contains(notices, want) {
			t.Errorf("no notice that %s: %s", want, notices)
		}
	}
}

func TestAStoreWithDestinationsKeepsItsBrokersID(t *testing.T) {
	dir := t.TempDir()
	started := func(attributes, content string) error {
		s, err := load(t, `dataDirectory="`+dir+`" `+attributes, content)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Open(t.Context())
		if err != nil {
			return err
		}
		b.Stop()
		return b.Wait()
	}
	const queue = `<destinations><queue physicalName="q"/></destinations>`
	for i, c := range []struct {
		attributes, content string
		refused             bool
	}{
		{`brokerId="ID:one"`, "", false},
		{`brokerId="ID:two"`, queue, false}, // nothing was there
		{`brokerId="ID:three"`, queue, true},
		{"", queue, false},
		{`brokerId="ID:two"`, queue, false},
		{`brokerId="ID:three" deleteAllMessagesOnStartup="true"`, queue, false},
		{`brokerId="ID:two"`, "", true},
	} {
		err := started(c.attributes, c.content)
		if refused := errors.Is(err, ErrRefused); refused != c.refused || err != nil && !refused {
			t.Errorf("start %d, %s: %v", i, c.attributes, err)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "activemq.xml:2:")) {
			t.Errorf("not one line with a place: %v", err)
		}
	}
}

func TestAnAddressIsShownAsTheFileSaysItWithTheRealPort(t *testing.T) {
	b := run(t, `persistent="false"`, `<transportConnectors>
		<transportConnector name="any" uri="tcp://0.0.0.0:0?maximumConnections=9"/>
	</transportConnectors>`, Options{})
	st, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := st.Connectors[0].Address
	if !regexp.MustCompile(`^tcp://0\.0\.0\.0:[1-9]\d+$`).MatchString(shown) ||
		!slices.Equal(b.Connectors(), []Connector{{Name: "any", Address: shown}}) {
		t.Errorf("the address is %s, at start %q", shown, b.Connectors())
	}
}

func TestAConnectorThatNeverConnectsIsAWarningAndABridgeThatIsNotHonoured(t *testing.T) {
	var log strings.Builder
	b := run(t, `persistent="false"`, `<transportConnectors>
		<transportConnector name="told" uri="tcp://127.0.0.1:0" discoveryUri="multicast://default"/>
	</transportConnectors>
	<networkConnectors>
		<networkConnector name="group" uri="multicast://default"/>
		<ldapNetworkConnector name="folk"/>
		<multicastNetworkConnector/>
	</networkConnectors>`, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	bridges := b.Bridges() // answered behind all that the start logs
	for _, want := range []string{
		`:7:\d+: network connector group never connects: discovery by multicast is not supported`,
		`:8:\d+: network connector folk never connects`,
		`:9:\d+: network connector multicastNetworkConnector never connects`,
		`:4:\d+: connector told is not announced: discoveryUri is not supported`,
	} {
		if !regexp.MustCompile(`level=WARN msg="[^\n]*` + want).MatchString(log.String()) {
			t.Errorf("no warning %s in\n%s", want, log.String())
		}
	}
	var names []string
	for _, n := range bridges {
		names = append(names, n.Name+" "+n.State+" "+n.Error)
	}
	want := "group NOT_HONOURED line 7: discovery by multicast is not supported"
	if len(names) != 3 || names[0] != want {
		t.Errorf("the bridges are %q, the first should be %q", names, want)
	}
}

func TestWhatKahaDBLeftIsCounted(t *testing.T) {
	dir := t.TempDir()
	for n, want := range []string{"", "1 KahaDB journal (2 KiB)", "2 KahaDB journals (4 KiB)"} {
		if n > 0 {
			name := filepath.Join(dir, fmt.Sprintf("db-%d.log", n))
			if err := os.WriteFile(name, make([]byte, 2000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if line := leftByKahaDB(dir); line != "" != (n > 0) || !strings.Contains(line, want) {
			t.Errorf("%d files: %q, want %q", n, line, want)
		}
	}
}

func TestABridgeThatIsDownTellsExplainWhyAndWhenItTriesAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	uri := "tcp://" + l.Addr().String()
	l.Close()
	b := run(t, `persistent="false"`, `<destinations><queue physicalName="Q"/></destinations>
		<networkConnectors><networkConnector name="n" uri="static:(`+uri+`)"/></networkConnectors>`,
		Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		x, err := b.Explain(ctx, "Q", "")
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Ways) != 1 || x.Ways[0].Reason != "BRIDGE_DOWN" {
			t.Fatalf("explained by %+v", x.Ways)
		}
		if w := x.Ways[0]; w.State == "BACKOFF" && w.NextTryMs > 0 {
			if !strings.Contains(w.Error, uri) || w.Attempt == 0 {
				t.Errorf("explained by %+v", w)
			}
			return
		}
	}
}

// Who is one connection too many is counted.
func TestConnectionsThatAreRefusedAreCounted(t *testing.T) {
	b := run(t, `persistent="false"`, `<transportConnectors><transportConnector`+
		` uri="tcp://127.0.0.1:0?maximumConnections=1"/></transportConnectors>`,
		Options{NoControl: true})
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(b.Connectors()[0].Address, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	wait.For(t, 10*time.Second, "two are counted", func() (string, bool) {
		st, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range st.Reasons {
			if r.Reason == "CONNECTION_LIMIT" {
				return fmt.Sprint(r.Count), r.Count == 2
			}
		}
		return fmt.Sprint(st.Reasons), false
	})
}
