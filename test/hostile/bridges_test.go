package hostile

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/internal/manage"
	"hopwire/openwire"
	"hopwire/test/wait"
)

// quick makes a connector try again at once.
const quick = "?initialReconnectDelay=1&amp;maxReconnectDelay=1&amp;useExponentialBackOff=false"

func connector(name, attrs, uri, options string) string {
	return fmt.Sprintf(`<networkConnectors><networkConnector name="%s" %s uri="static:(%s)%s"/>`+
		`</networkConnectors>`, name, attrs, uri, options)
}

// badPeer is a peer that behaves badly on each connection, until heal gives it an address to
// forward to.
type badPeer struct {
	l      net.Listener
	rounds atomic.Int64
	open   atomic.Int64
	target atomic.Pointer[string]
}

// listenBadly serves every connection by behave, in a goroutine of its own.
func listenBadly(t *testing.T, behave func(net.Conn)) *badPeer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &badPeer{l: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.rounds.Add(1)
			p.open.Add(1)
			go func() {
				defer p.open.Add(-1)
				defer c.Close()
				if to := p.target.Load(); to != nil {
					pass(c, *to)
					return
				}
				behave(c)
			}()
		}
	}()
	return p
}

func (p *badPeer) url() string { return "tcp://" + p.l.Addr().String() }

func (p *badPeer) heal(addr string) { p.target.Store(&addr) }

// pass joins a connection to an address until one side ends.
func pass(c net.Conn, addr string) {
	d, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer d.Close()
	done := make(chan struct{}, 2)
	copyTo := func(to, from net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if n > 0 {
				if _, err := to.Write(b[:n]); err != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		done <- struct{}{}
	}
	go copyTo(d, c)
	go copyTo(c, d)
	<-done
}

// brokerInfo is the beginning of what a broker says: its hello, and half of its BrokerInfo.
func brokerInfo(t *testing.T) (hello, half []byte) {
	t.Helper()
	o := openwire.DefaultHelloOptions()
	o.TightEncodingEnabled, o.CacheEnabled = false, false
	ours, err := openwire.NewHello(openwire.MaxVersion, o)
	if err != nil {
		t.Fatal(err)
	}
	if hello, err = ours.AppendFrame(nil); err != nil {
		t.Fatal(err)
	}
	f, err := openwire.Negotiate(ours, ours)
	if err != nil {
		t.Fatal(err)
	}
	info, err := openwire.NewEncoder(f).Append(nil, &openwire.BrokerInfo{
		BrokerID: &openwire.BrokerId{Value: "ID:fake"}, BrokerName: "fake", BrokerURL: "tcp://x:1"})
	if err != nil {
		t.Fatal(err)
	}
	return hello, info[:len(info)/2]
}

func TestHalfAHandshakeIsTriedAgainForEverWithoutALeak(t *testing.T) {
	hello, half := brokerInfo(t)
	for _, c := range []struct {
		name    string
		options string
		rounds  int64
		behave  func(net.Conn)
	}{
		{"no byte", "?connectionTimeout=10", 300, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1<<16))
			_, _ = c.Read(make([]byte, 1)) // until the bridge gives up
		}},
		{"hello, then the end", "", 1000, func(c net.Conn) { _, _ = c.Write(hello) }},
		{"hello and half a BrokerInfo, then the end", "", 1000, func(c net.Conn) {
			_, _ = c.Write(slices.Concat(hello, half))
			_, _ = c.Read(make([]byte, 1))
		}},
		{"the end at once", "", 1000, func(net.Conn) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			healthy := newProcess(t, setup{name: "b"})
			peer := listenBadly(t, c.behave)
			var log logged
			b := inside(t, setup{name: "a", attrs: `persistent="false"`,
				body: connector("n", "", peer.url()+c.options, quick)}, &log)
			rounds := func(n int64) {
				wait.For(t, 3*patience, fmt.Sprint("tried ", n, " times"), func() (string, bool) {
					return fmt.Sprint(peer.rounds.Load()), peer.rounds.Load() >= n
				})
			}
			rounds(50)
			routines, files, memory := runtime.NumGoroutine(), ownFiles(), kept()
			rounds(c.rounds)
			if r, f := runtime.NumGoroutine(), ownFiles(); r > routines+10 || f > files+10 {
				t.Errorf("%d goroutines (%d before), %d files (%d before)", r, routines, f, files)
			}
			grown := kept() - memory
			bridge := statusOf(t, b).Bridges[0]
			t.Logf("%d rounds, %+d KiB, %d log lines; %s attempt %d: %s", peer.rounds.Load(),
				grown>>10, log.count(0, ""), bridge.State, bridge.Attempt, bridge.Error)
			if grown > 2<<20 || bridge.Error == "" {
				t.Errorf("%d bytes more; %+v", grown, bridge)
			}
			peer.heal(healthy.addr())
			began := time.Now()
			wait.For(t, patience, "running", func() (string, bool) {
				s := statusOf(t, b).Bridges[0]
				return s.State + " " + s.Error, s.State == "RUNNING"
			})
			t.Logf("healed after %v", time.Since(began).Round(time.Millisecond))
			forwards(t, address(b), healthy.addr(), "AFTER")
		})
	}
}

// forwards checks that a message goes from one broker to the consumer at another.
func forwards(t *testing.T, from, to, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	there := dial(ctx, t, to)
	defer there.Close(ctx)
	s, err := there.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Consumer(ctx, client.Queue(name))
	if err != nil {
		t.Fatal(err)
	}
	sendTexts(ctx, t, from, name, "hello")
	m, err := k.Receive(ctx)
	if err != nil {
		t.Fatalf("nothing was forwarded: %v", err)
	}
	if text, err := m.Text(); text != "hello" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// sendTexts sends persistent messages.
func sendTexts(ctx context.Context, t *testing.T, addr, queue string, texts ...string) {
	t.Helper()
	conn := dial(ctx, t, addr)
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue(queue))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := p.SendAsync(ctx, client.NewText(text), func(err error) {
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// consume subscribes and counts what comes until the test ends; each message takes a while.
func consume(t *testing.T, addr, queue string, each time.Duration, prefetch int32) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn := dial(ctx, t, addr)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	handle := func(hctx context.Context, _ *client.Message) error {
		n.Add(1)
		if each > 0 {
			timer := time.NewTimer(each)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-hctx.Done():
			case <-ctx.Done():
			}
		}
		return nil
	}
	_, err = s.Consume(ctx, client.Queue(queue), handle, client.WithPrefetchSize(prefetch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		shut, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		_ = conn.Close(shut) // the broker may be gone
	})
	return &n
}

func way(x *manage.Explanation) string {
	var all []string
	for _, r := range x.Rows {
		all = append(all, fmt.Sprintf("%d %s (%s)", r.Count, r.Reason, r.Who))
	}
	for _, w := range x.Ways {
		all = append(all, w.Bridge+": "+w.Reason)
	}
	return strings.Join(all, "; ")
}

func TestABridgeWithoutADemandSignalSaysSoWithinFiveSeconds(t *testing.T) {
	b := newProcess(t, setup{name: "b", attrs: `advisorySupport="false"`})
	a := newProcess(t, setup{name: "a", body: connector("n", "", b.url(), quick)})
	began := time.Now()
	n := consume(t, b.addr(), "B029", 0, 100)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sendTexts(ctx, t, a.addr(), "B029", "x")
	line := a.awaitLog(0, "DEGRADED")
	took := time.Since(began)
	t.Logf("after %v: %s", took.Round(time.Millisecond), line)
	if took > 5*time.Second || !strings.Contains(line, "level=WARN") {
		t.Errorf("after %v: %s", took, line)
	}
	if s := a.status().Bridges[0]; s.State != "DEGRADED" || s.Unseen == "" {
		t.Errorf("%+v", s)
	}
	if text := way(a.explain("B029")); !strings.Contains(text, "DEMAND_UNSEEN") {
		t.Errorf("explained by %s", text)
	}
	if n.Load() != 0 {
		t.Error("it was forwarded without demand")
	}
}

func TestOneFullQueueHoldsUpOnlyItself(t *testing.T) {
	const each = 1000
	b := newProcess(t, setup{name: "b", body: strings.ReplaceAll(small, "FULL", "Q2")})
	a := newProcess(t, setup{name: "a", body: connector("n", `duplex="true" prefetchSize="100"`,
		b.url(), quick)})
	one, back := consume(t, b.addr(), "Q1", 0, 100), consume(t, a.addr(), "BACK", 0, 100)
	two := consume(t, b.addr(), "Q2", time.Hour, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	conn := dial(ctx, t, a.addr())
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("y", 5000)
	for range each {
		for _, q := range []string{"Q1", "Q2"} {
			if err := p.Send(ctx, client.NewText(body), client.To(client.Queue(q)),
				client.NonPersistent()); err != nil {
				t.Fatal(err)
			}
		}
	}
	var texts []string
	for i := range each {
		texts = append(texts, fmt.Sprint(i))
	}
	sendTexts(ctx, t, b.addr(), "BACK", texts...)
	wait.For(t, patience, "through with Q1 and the reverse direction", func() (string, bool) {
		return fmt.Sprintf("%d of Q1, %d of Q2, %d back; Q2 on a: %s", one.Load(), two.Load(),
			back.Load(), way(a.explain("Q2"))), one.Load() == each && back.Load() == each
	})
	left := queue(a.status(), "Q2")
	text := way(a.explain("Q2"))
	t.Logf("on a: %d of Q2, %d in flight: %s", left.Size, left.InFlight, text)
	if left.Size == 0 || !strings.Contains(text, "REMOTE_WINDOW_FULL") {
		t.Errorf("%+v: %s", left, text)
	}
}

func TestAMessageTooBigForThePeerStaysAndTheRestGoesOn(t *testing.T) {
	b := newProcess(t, setup{name: "b", uri: "?wireFormat.maxFrameSize=1048576"})
	a := newProcess(t, setup{name: "a", body: connector("n", "", b.url(), quick)})
	n := consume(t, b.addr(), "BIG", 0, 100)
	wait.For(t, patience, "running", func() (string, bool) {
		s := a.status().Bridges[0]
		return s.State, s.State == "RUNNING"
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sendTexts(ctx, t, a.addr(), "BIG", "1", "2", strings.Repeat("z", 3<<20), "3", "4")
	wait.For(t, patience, "with all but the big one", func() (string, bool) {
		return fmt.Sprint(n.Load()), n.Load() == 4
	})
	text := ""
	wait.For(t, patience, "left with the big one", func() (string, bool) {
		text = way(a.explain("BIG"))
		return text, queue(a.status(), "BIG").Size == 1
	})
	t.Log(text)
	if !strings.Contains(text, "FRAME_TOO_BIG") {
		t.Errorf("explained by %s", text)
	}
	if s := a.status().Bridges[0]; s.State != "RUNNING" || s.Attempt > 1 {
		t.Errorf("%+v", s)
	}
}
