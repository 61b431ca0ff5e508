package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/terminal"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
	"hopwire/test/wait"
)

const patience = 20 * time.Second

// printed is what status writes of a broker.
func printed(st *manage.Status) string {
	var out strings.Builder
	printStatus(&out, st, statusView{})
	return out.String()
}

func TestStatusTellsWhyMessagesWait(t *testing.T) {
	out := printed(&manage.Status{Broker: "a", Destinations: []manage.Destination{
		{Name: "queue://A", Size: 30, Waits: []string{"NO_CONSUMER", "NO_DEMAND"}},
		{Name: "queue://B", Size: 8, InFlight: 7, Waits: []string{"WINDOW_FULL", "COMMITTING"}},
		{Name: "queue://C", Size: 2, InFlight: 2, Waits: []string{"IN_DOUBT"}},
		{Name: "queue://D", Size: 9, Waits: []string{"A", "B", "C", "D"}},
		{Name: "queue://E", Size: 9, Waits: []string{"COMMITTING"}},
		{Name: "queue://F", Size: 9},
		{Name: "temp-queue://ID:x", Parked: 2, Waits: []string{"TEMP_UNSEEN"}},
		{Name: "temp-queue://ID:y"},
	}})
	_, lines, _ := strings.Cut(out, "\n  temp-queue://ID:x: replies wait until a bridge tells of it;"+
		" see hopwire explain temp-queue://ID:x\n")
	want := `  queue://A: 30 messages wait: no consumer, no demand from peers; see hopwire explain A
  queue://D: 9 messages wait: A, B, C, ...; see hopwire explain D
  queue://B: 1 message waits: the consumers' prefetch is used up; see hopwire explain B
  queue://C: in doubt: a peer may have them; see hopwire explain C
`
	if lines != want {
		t.Errorf("status says\n%s\nwant at its end\n%s", out, want)
	}
}

func TestStatusTellsThatMemoryHasNoLimit(t *testing.T) {
	for limit, want := range map[int64]string{0: "memory 1.0 KiB, no limit  store",
		2048: "memory 1.0 KiB of 2.0 KiB  store"} {
		out := printed(&manage.Status{Broker: "a", MemoryBytes: 1024, MemoryLimitBytes: limit})
		if !strings.Contains(out, want) {
			t.Errorf("status says\n%swant %s", out, want)
		}
	}
}

func TestStatusTellsTheStoresLimit(t *testing.T) {
	for limit, want := range map[int64]string{0: "store 1.0 KiB, no limit\n",
		2048: "store 1.0 KiB of 2.0 KiB FULL\n"} {
		out := printed(&manage.Status{Broker: "a", Persistent: true, StoreBytes: 1024,
			StoreLimitBytes: limit, StoreFreeBytes: -1, StoreFull: limit > 0})
		if !strings.Contains(out, want) {
			t.Errorf("status says\n%swant %s", out, want)
		}
	}
	for free, want := range map[int64]string{-1: "KiB\n", 1024: "KiB\n",
		1023: "KiB (its disk has 1023 B free)\n"} {
		out := printed(&manage.Status{Broker: "a", Persistent: true, StoreBytes: 1024,
			StoreLimitBytes: 2048, StoreFreeBytes: free})
		if want = "store 1.0 KiB of 2.0 " + want; !strings.Contains(out, want) {
			t.Errorf("with %d bytes free status says\n%swant %s", free, out, want)
		}
	}
	out := printed(&manage.Status{Broker: "a", StoreLimitBytes: 1024})
	if !strings.Contains(out, "  store none\n") {
		t.Errorf("without a store status says\n%s", out)
	}
}

func TestStatusTellsWhyABridgeForwardsNothing(t *testing.T) {
	out := printed(&manage.Status{Broker: "a", Bridges: []manage.Bridge{{Name: "n",
		Demands: []manage.Demand{{Destination: "queue://Q", State: "refused", Reason: "DENIED",
			Error: "user u may not read"}}}}})
	want := "  bridge n: queue://Q is not forwarded: refused here, DENIED: user u may not read\n"
	if !strings.Contains(out, want) {
		t.Errorf("status says\n%swant %s", out, want)
	}
}

func TestStatusTellsOfLargeFramesThatAreRead(t *testing.T) {
	st := &manage.Status{Broker: "a", FrameLimitBytes: 10 << 20}
	if out := printed(st); strings.Contains(out, "frames") {
		t.Errorf("without any: %s", out)
	}
	st.FrameBytes, st.FramesWaiting = 9<<20, 3
	if out := printed(st); !strings.Contains(out, "  frames 9.0 MiB of 10.0 MiB, 3 wait  store") {
		t.Errorf("status says %s", out)
	}
}

func TestStatusTellsWhichAddressABridgeHasAndWhichItTries(t *testing.T) {
	two := manage.Bridge{Name: "hub", URI: "tcp://b:2", Addresses: 2, State: "BACKOFF", Attempt: 3,
		NextTryMs: 12_000,
		Error:     "tcp://b:1: connection refused"}
	one := two
	one.Addresses = 1
	linked := two
	linked.Peer, linked.State, linked.Attempt = "B", "RESOLVING", 0
	trying := two
	trying.State = "CONNECTING"
	for want, b := range map[string]manage.Bridge{
		"-> next tcp://b:2, of 2 addresses  BACKOFF  forwarded 0; tried 3 times; next try in 12s; " +
			"last: tcp://b:1: connection refused": two,
		"-> tcp://b:2  BACKOFF  forwarded 0; tried 3 times; next try in 12s; last: tcp://b:1: ": one,
		"-> B (tcp://b:2)  RESOLVING  forwarded 0; last: tcp://b:1: connection refused":         linked,
		"-> tcp://b:2, of 2 addresses  CONNECTING  ":                                            trying,
		"-> B  RUNNING  forwarded 7, 9 unanswered, nothing answered for 12s\n": {Name: "hub", Peer: "B",
			State: "RUNNING", Forwarded: 7, InFlight: 9, SilentMs: 12_000},
	} {
		out := printed(&manage.Status{Bridges: []manage.Bridge{b}})
		if !strings.Contains(out, want) {
			t.Errorf("status says\n%swant %s", out, want)
		}
	}
}

func TestABridgesReasonsAndThoseThatLeadHereStandInStatus(t *testing.T) {
	out := printed(&manage.Status{Bridges: []manage.Bridge{{Name: "n", URI: "tcp://b:1",
		State: "RUNNING", Reasons: []manage.ReasonCount{{Reason: "BRIDGE_DOWN", Count: 3},
			{Reason: "NOT_DURABLE", Count: 2}}}},
		Incoming: []manage.Incoming{{Peer: "shop2", Address: "tcp://10.0.0.2:4", Received: 7,
			SinceMs: 2000}, {Peer: "shop3", Address: "tcp://10.0.0.3:4",
			SinceMs: 90_000, Away: true}}})
	want := "forwarded 0; NOT_DURABLE 2\n" +
		"  bridge from shop2 (tcp://10.0.0.2:4), received 7, for 2s\n" +
		"  bridge from shop3 (tcp://10.0.0.3:4), AWAY, received 0, for 1m30s\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("status says\n%swant at its end\n%s", out, want)
	}
}

func TestStatusHasNoTrailingBlanksAndCountsAgree(t *testing.T) {
	out := printed(&manage.Status{Broker: "a", Connections: 1,
		Connectors: []manage.Connector{{Name: "x", Address: "tcp://0.0.0.0:1"}},
		Bridges:    []manage.Bridge{{Name: "n", URI: "tcp://b:1", State: "RUNNING"}},
		Destinations: []manage.Destination{
			{Name: "queue://A", Size: 1},
			{Name: "queue://B", Size: 1, Reasons: []manage.ReasonCount{{Reason: "DUPLICATE", Count: 2}}},
		}})
	if regexp.MustCompile(`(?m) $`).MatchString(out) || !strings.Contains(out, "  1 connection  ") ||
		!strings.Contains(out, "0  DUPLICATE 2\n") {
		t.Errorf("status says\n%s", strings.ReplaceAll(out, " \n", "_\n"))
	}
}

func TestBrokersOfAProcessAreInTheOrderOfTheirFiles(t *testing.T) {
	all := []*manage.Status{
		{Broker: "a", PID: 9, Position: 1}, {Broker: "b", PID: 7}, {Broker: "c", PID: 9},
		{Broker: "d", PID: 5, Position: 1}, {Broker: "e", PID: 5},
	}
	inOrder(all)
	var names []string
	for _, s := range all {
		names = append(names, s.Broker)
	}
	if got := strings.Join(names, " "); got != "b c a e d" {
		t.Errorf("the order is %s, want b c a e d", got)
	}
}

func TestBrokersThatOpenTogetherAreToldInTheOrderOfTheirFiles(t *testing.T) {
	var out strings.Builder
	o := newOpenings(3)
	o.waiting = 0
	for _, i := range []int{2, 0, 1} {
		o.tell(&out, i, terminal.Text(fmt.Sprintf("broker %d\n", i)))
	}
	if out.String() != "broker 0\nbroker 1\nbroker 2\nready\n" {
		t.Errorf("told\n%s", out.String())
	}
	out.Reset()
	o = newOpenings(2)
	o.waiting = 1 // the first waits as a slave
	o.tell(&out, 1, "broker 1\n")
	if out.String() != "broker 1\n" {
		t.Errorf("told %q while the other waits", out.String())
	}
}

func TestProgramsReadAllOfAStatus(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	expect(t, exitUnavailable, `^\[\]\nhopwire: no broker is running`, "status", "--json")
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "json"})
	expect(t, 0, `sent 3 messages`, "producer", "--brokerUrl="+b.URL(), "--destination=queue://Q",
		"--messageCount=3")
	out, code := play(t, "status", "--json", "--broker=json")
	var got []manage.Status
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone || len(got) != 1 ||
		got[0].Broker != "json" || len(got[0].Connectors) == 0 || len(got[0].Destinations) == 0 ||
		got[0].Destinations[0].Size != 3 {
		t.Errorf("exit %d, %v:\n%s", code, err, out)
	}
}

func TestARunningBrokerSaysWhyItsMessagesWait(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "hub"})
	a := broker.Start(t, broker.Hopwire, broker.Options{Name: "shop", Connectors: []broker.Connector{
		{Name: "up", URI: broker.Static(b)}}})
	expect(t, 0, `sent 30 messages`, "producer", "--brokerUrl="+a.URL(), "--messageCount", "30", "Q")
	wait.For(t, patience, "told", func() (string, bool) {
		out, _ := play(t, "status", "-b", "shop")
		return out, strings.Contains(out, "queue://Q: 30 messages wait: no consumer, no demand from"+
			" peers; see hopwire explain Q\n")
	})
	expect(t, exitFailed, `no running broker has topic://none \(`, "explain", "topic://none")
	expect(t, exitFailed, `no running broker has queue none \(`, "explain", "none")
}

func TestLongListsOfStatusAreCut(t *testing.T) {
	st := &manage.Status{Broker: "a"}
	for i := range 9000 {
		n := fmt.Sprint(i)
		st.Transactions = append(st.Transactions, manage.Transaction{ID: "XID:" + n})
		st.Subscriptions = append(st.Subscriptions, manage.Subscription{Name: "s" + n, Size: int64(i)})
		st.Incoming = append(st.Incoming, manage.Incoming{Peer: "p" + n})
		st.Destinations = append(st.Destinations, manage.Destination{Name: "queue://Q" + n, Producers: 1})
		b := manage.Bridge{Name: "b" + n, State: "RUNNING", Parked: []manage.Parked{{Destination: "x"}}}
		if i == 8000 {
			b.State = "BACKOFF"
		}
		st.Bridges = append(st.Bridges, b)
	}
	out := printed(st)
	if n := strings.Count(out, "\n"); n > 150 {
		t.Errorf("status says %d lines", n)
	}
	for _, want := range []string{
		"\n  prepared XID:4 ", "\n  and 8995 more prepared transactions: hopwire transactions\n",
		"\n  durable s8999 of ", "\n  and 8980 more durable subscriptions: hopwire status --all\n",
		"\n  and 8980 more bridges of peers: hopwire", "\n  and 8980 more destinations: hopwire",
		"\n  and 8980 more bridges: hopwire", "BACKOFF", " more refusals of bridges: hopwire",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("status does not say %q", want)
		}
	}
	var all strings.Builder
	printStatus(&all, st, statusView{All: true})
	if n := strings.Count(all.String(), "\n"); n != 6*9000+2 {
		t.Errorf("status --all says %d lines", n)
	}
}

func TestStatusPutsWhatIsStuckFirst(t *testing.T) {
	st := &manage.Status{Destinations: []manage.Destination{
		{Name: "queue://A", Consumers: 1}, {Name: "queue://B", Size: 9, InFlight: 9},
		{Name: "queue://C", Size: 5}, {Name: "queue://D", Size: 7},
		{Name: "queue://E", Size: 2, Waits: []string{"NO_CONSUMER"}}, {Name: "queue://F", Parked: 1},
		{Name: "queue://G", Size: 3, Waits: []string{"IN_DOUBT"}},
	}}
	row := regexp.MustCompile(`(?m)^ +queue://(\w) `)
	for order, want := range map[string]string{"pending": "FGEDCBA", "name": "ABCDEFG"} {
		var out strings.Builder
		printStatus(&out, st, statusView{Sort: order})
		got := ""
		for _, m := range row.FindAllStringSubmatch(out.String(), -1) {
			got += m[1]
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
	}
}

func TestWhatABridgePassesOverStandsInItsLineWhenAllIsAskedFor(t *testing.T) {
	st := &manage.Status{Bridges: []manage.Bridge{{Name: "up", State: "RUNNING", Peer: "b",
		Passed: []manage.ReasonCount{{Reason: "TTL_CONSUMER", Count: 7}}}}}
	for all, want := range map[bool]bool{true: true, false: false} {
		var out strings.Builder
		printStatus(&out, st, statusView{All: all})
		if got := strings.Contains(out.String(), "; passed over TTL_CONSUMER 7\n"); got != want {
			t.Errorf("all %v: %s", all, out.String())
		}
	}
}

func TestQueuesThatWaitForTheSameReasonsShareALine(t *testing.T) {
	var list []manage.Destination
	for i := range 5 {
		list = append(list, manage.Destination{Name: fmt.Sprint("queue://Q", i), Size: 3,
			Waits: []string{"NO_CONSUMER"}})
	}
	list = append(list, manage.Destination{Name: "queue://X", Size: 2, InFlight: 1,
		Waits: []string{"WINDOW_FULL"}}, manage.Destination{Name: "queue://quiet"})
	got := waitingLines(list)
	if len(got) != 2 || !strings.HasPrefix(got[0],
		"queue://Q0, queue://Q1, queue://Q2 and 2 more: 15 messages wait: no consumer;") ||
		!strings.HasSuffix(got[0], "see hopwire explain QUEUE") ||
		!strings.HasPrefix(got[1], "queue://X: 1 message waits: ") ||
		!strings.HasSuffix(got[1], "see hopwire explain X") {
		t.Errorf("told as %q", got)
	}
	if a, b := haveOf([]string{"a"}), haveOf([]string{"a", "b"}); a != "broker a has" ||
		b != "brokers a, b have" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestABridgeThatIsAwaySaysSinceWhenAndWhereItWas(t *testing.T) {
	var out strings.Builder
	printStatus(&out, &manage.Status{Broker: "hub", Bridges: []manage.Bridge{{Name: "up",
		State: "AWAY", Peer: "shop1", URI: "tcp://10.0.0.7:41200", Duplex: true, Accepted: true,
		SinceMs: 90_000, Received: 7, Error: "tcp://10.0.0.7:41200: the peer reset the connection"}}},
		statusView{})
	want := `bridge  up  <-> shop1 (tcp://10.0.0.7:41200)  AWAY  forwarded 0, received 7; for 1m30s,` +
		` without a word; last: tcp://10.0.0.7:41200: the peer reset the connection`
	if !strings.Contains(out.String(), want) {
		t.Errorf("status says\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	new(explainCommand).print(&out, &manage.Explanation{Ways: []manage.ExplanationOfWay{
		{Bridge: "up of shop1", Reason: "BRIDGE_DOWN", State: "AWAY", SinceMs: 90_000, Error: "cut"}}})
	if want := "bridge up of shop1 takes none: BRIDGE_DOWN; the peer has been AWAY for 1m30s; last:" +
		" cut\n"; !strings.Contains(out.String(), want) {
		t.Errorf("explain says\n%s\nwant\n%s", out.String(), want)
	}
}
