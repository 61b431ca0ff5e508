package sim

import (
	"context"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// A message came to a by b, whose confirmation to the producer was lost; the producer sends it
// again to c, and it comes to a a second time, by another peer and after a restart.
func TestAResendByAnotherPeerIsKnownAfterARestart(t *testing.T) {
	w := New(1, Options{})
	a := w.Broker(NodeConfig{Name: "a"})
	for _, name := range []string{"b", "c"} {
		o := bridge.DefaultOptions(5)
		o.Name, o.URIs = "nc-"+name, []string{"sim://a"}
		w.Broker(NodeConfig{Name: name}).Connect(o)
	}
	got := 0
	consume := func(name string) {
		c := w.Client(name)
		c.Connect(a)
		c.Consume(Wants{From: queueQ, Handle: func(*message.Message) { got++ }})
	}
	consume("x")
	p := w.Client("p")
	p.Connect(w.Node("b"))
	w.Run(5 * time.Second)
	w.Clog("b", "client p")
	p.Send(Mail{To: queueQ}, func(error) {})
	w.Run(2 * time.Second)
	w.Cut("client p", "b", 0)
	w.Run(time.Second)
	a.Crash(false, 0)
	a.Start()
	w.Run(20 * time.Second)
	consume("x2")
	w.Run(20 * time.Second)
	p.Reconnect(w.Node("c"))
	w.Run(20 * time.Second)
	if got != 1 {
		t.Errorf("consumed %d times, want once", got)
	}
	for _, n := range w.Notes() {
		t.Error(n)
	}
}

// A peer forwards one persistent message and many that are not, and the broker starts again, over
// the real store.
func TestABrokerStartsAgainAfterManyNonPersistentForwards(t *testing.T) {
	dir, n := t.TempDir(), int64(0)
	for start := range 3 {
		st, err := disk.Open(t.Context(), disk.Options{Dir: dir, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		headers, err := st.Headers()
		if err != nil {
			t.Fatal(err)
		}
		l := loop.New()
		done := make(chan error, 1)
		commit := store.NewCommitter(st, l.Post)
		commit.OnFatal = func(err error) { done <- err }
		b := broker.New(l, commit, headers, broker.Options{ID: "ID:a", Persistent: true})
		l.OnTurn(b.EndTurn)
		ctx, stop := context.WithCancel(t.Context())
		go l.Run(ctx)
		for i := range 2600 {
			n++
			m := &message.Message{Destination: queueQ, Persistent: i == 0,
				BrokerPath: []message.BrokerID{"ID:p"}, ID: message.MessageID{Sequence: n}}
			p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
			l.Post(func() { b.Receive(m, p, func(err error) { done <- err }) })
			if err := <-done; err != nil {
				t.Fatalf("start %d, message %d: %v", start, i, err)
			}
		}
		if err := commit.Close(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
