package sim

import (
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
)

// A message came to a by b, whose confirmation to the producer was lost; the producer sends it again
// to c, and it comes to a a second time, by another peer and after a restart.
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
