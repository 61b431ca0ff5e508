package bridge

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
)

// A peer that called and whose link ended without its word is remembered until its connector is
// back, whatever its id is then.
func TestAPeerThatWentWithoutAWordIsAwayUntilItIsBack(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := accept(t, w, Hello{Remote: "tcp://10.0.0.7:4711"}, func(o *Options) {
		o.Excluded = []message.Destination{queue("no")}
	})
	w.env.advance(time.Minute)
	a.Down(message.Errorf(message.Unavailable, "the peer reset the connection"))
	if e := w.events[len(w.events)-1]; e.State != Gone {
		t.Errorf("the last event is %+v", e)
	}
	away := w.h.Away()
	if len(away) != 1 {
		t.Fatalf("%d are away", len(away))
	}
	s := away[0].Status()
	if s.State != Gone || s.Peer.Name != "netB" || s.URI != "tcp://10.0.0.7:4711" ||
		s.Error != "the peer reset the connection" || s.Since != w.env.Mono() || !s.Duplex {
		t.Errorf("it is %+v", s)
	}
	if got := away[0].Explain(queue("no")); got != message.Excluded {
		t.Errorf("what it leaves out is explained as %s", got)
	}
	if got := away[0].Explain(queue("q")); got != message.BridgeDown {
		t.Errorf("what it would take is explained as %s", got)
	}
	accept(t, w, Hello{}, func(o *Options) { o.Name = "other" })
	if len(w.h.Away()) != 1 {
		t.Error("another connector of the peer made it forgotten")
	}
	accept(t, w, Hello{}, nil)
	if len(w.h.Away()) != 0 {
		t.Error("it is back and still away")
	}
}

func TestAPeerThatTookItsLeaveIsNotAway(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, a *Acceptor)
		want int
	}{
		{"it says good-bye", func(_ *world, a *Acceptor) { a.Receive(&message.ShutdownInfo{}) }, 0},
		{"this broker stops", func(_ *world, a *Acceptor) { a.Stop(nil) }, 0},
		{"a new link takes its place", func(w *world, _ *Acceptor) { accept(t, w, Hello{}, nil) }, 0},
		{"a new link was there before", func(w *world, a *Acceptor) {
			w.h.accepted = append(w.h.accepted, &Acceptor{opts: a.opts, bridge: a.bridge})
			a.Down(nil)
		}, 0},
		{"it is cut", func(_ *world, a *Acceptor) { a.Down(nil) }, 1},
	} {
		w := newWorld(t, nil)
		a, _ := accept(t, w, Hello{}, nil)
		c.end(w, a)
		if got := len(w.h.Away()); got != c.want || (a.Status().State == Gone) != (c.want > 0) {
			t.Errorf("%s: %d are away, and it is %s", c.name, got, a.Status().State)
		}
	}
}

func TestWhoIsAwayIsForgottenInTheEnd(t *testing.T) {
	w := newWorld(t, nil)
	for n := range awayMost + 5 {
		a, _ := accept(t, w, Hello{}, func(o *Options) { o.Name = fmt.Sprint("nc", n) })
		a.Down(nil)
		w.env.advance(time.Second)
	}
	if got := w.h.Away(); len(got) != awayMost || got[0].Status().Name != "nc5" {
		t.Errorf("%d are away, the first %s", len(got), got[0].Status().Name)
	}
	w.env.advance(awayTime - 10*time.Second)
	if got := len(w.h.Away()); got != 10 {
		t.Errorf("%d are away for so long", got)
	}
}
