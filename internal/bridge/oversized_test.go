package bridge

import (
	"errors"
	"slices"
	"testing"

	"hopwire/internal/message"
)

func TestAMessageAboveOurLimitIsCountedAtBothEnds(t *testing.T) {
	const javas = "javax.jms.ResourceAllocationException"
	own := message.FrameTooBig.Class()
	for _, c := range []struct {
		name          string
		accepted, ask bool
		level         int
		want          string
	}{
		{"dialled", false, true, 1, "Response " + own},
		{"dialled, nobody waits", false, false, 1, "ConnectionError " + own},
		{"dialled ActiveMQ", false, true, 0, "Response " + javas},
		{"dialled ActiveMQ, nobody waits", false, false, 0, ""},
		{"accepted", true, true, 1, "Response " + own},
		{"accepted, nobody waits", true, false, 1, "ConnectionError " + own},
		{"accepted ActiveMQ", true, true, 0, "Response " + javas},
	} {
		w := newWorld(t, func(o *Options) { o.Duplex = true })
		receive, counts := func(c message.Command) { w.dial.receive(c) },
			func() []Count { return w.c.Status().Counts }
		if c.accepted {
			w.link = &fakeLink{}
			a, err := w.h.Accept(w.link, Hello{Remote: "shop", HopwireLevel: c.level},
				&message.BrokerInfo{ID: "ID:shop", Name: "shop", NetworkProperties: "name=NC\n"})
			if err != nil {
				t.Fatal(err)
			}
			receive, counts = a.Receive, func() []Count { return a.Status().Counts }
		} else {
			w.connect(Hello{HopwireLevel: c.level})
		}
		w.link.take()
		m := text("Q", 1)
		m.CommandID, m.ResponseRequired = 7, c.ask
		receive(&message.Oversized{Message: m, Cause: errors.New("too big")})
		got := ""
		for _, s := range w.link.take() {
			switch s := s.(type) {
			case *message.Response:
				got = "Response " + s.Exception.Class
			case *message.ConnectionError:
				got = "ConnectionError " + s.Exception.Class
			}
		}
		if got != c.want {
			t.Errorf("%s: it is told %q, want %q", c.name, got, c.want)
		}
		if n := counts(); len(n) != 1 || n[0] != (Count{message.FrameTooBig, 1}) {
			t.Errorf("%s: counts %v", c.name, n)
		}
		e := w.events[len(w.events)-1]
		if e.Kind != ArrivalRefused || e.Reason != message.FrameTooBig || e.Text == "" {
			t.Errorf("%s: event %+v", c.name, e)
		}
	}
}

func TestALossThatThePeerTellsOfHasItsReason(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AlwaysSyncSend = false })
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{
		Class: message.FrameTooBig.Class(), Message: "too big"}})
	if got := w.c.Status().Counts; !slices.Contains(got, Count{message.FrameTooBig, 1}) {
		t.Errorf("counts %v", got)
	}
}
