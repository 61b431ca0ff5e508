package broker

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// waitsOf is what a status says about a queue.
func (h *house) waitsOf(d message.Destination) []message.Reason {
	for _, s := range h.b.Status().Destinations {
		if s.Name == d {
			return s.Waits
		}
	}
	return nil
}

func TestAStatusTellsWhyTheOldestMessagesWait(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	p := h.connect("p", "p", "", nil)
	for i := range int64(2 * waitsOfQueue) {
		p.produce("p", q, i+1)
	}
	if got := h.waitsOf(q); !slices.Equal(got, []message.Reason{message.NoConsumer}) {
		t.Errorf("without a consumer: %v", got)
	}
	short := p.mail("p", queueNamed("short"), 1)
	short.Expiration = h.Wall() + 1000
	p.do(short)
	h.pass(2 * time.Second)
	if got := h.waitsOf(queueNamed("short")); !slices.Equal(got, []message.Reason{message.Expired}) {
		t.Errorf("when it is expired: %v", got)
	}
	g := h.connect("g", "g", "", nil)
	c := message.ConsumerID{Connection: g.cid("g"), Session: 1, Value: 1}
	if e := g.do(&message.ConsumerInfo{ID: c, Destination: q, PrefetchSize: 1,
		Selector: "a = 1"}); e != nil {
		t.Fatal(e)
	}
	if got := h.waitsOf(q); !slices.Equal(got, []message.Reason{message.SelectorNoMatch}) {
		t.Errorf("with a selector: %v", got)
	}
	g = h.connect("f", "f", "", nil)
	if e := g.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: g.cid("f"), Session: 1,
		Value: 1}, Destination: q, PrefetchSize: 1}); e != nil {
		t.Fatal(e)
	}
	want := []message.Reason{message.SelectorNoMatch, message.WindowFull}
	if got := h.waitsOf(q); !slices.Equal(got, want) {
		t.Errorf("with a full window beside it: %v, want %v", got, want)
	}
}

// A topic has no messages itself; sends wait there as at a queue.
func TestAStatusTellsWhySendsWait(t *testing.T) {
	for _, d := range []message.Destination{queueQ, topicNamed("T")} {
		h := open(t, nil, func(o *Options) {
			e := policy.NewEntry()
			e.Memory.LimitBytes = 2000
			o.Policies = &policy.Map{Default: e}
		})
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		g.window("g", d, 1, "")
		if got := h.waitsOf(d); len(got) != 0 {
			t.Errorf("%s: nothing waits for %v", d, got)
		}
		for n := range int64(10) {
			p.hand(p.big("p", d, n+1, 500, false))
			h.turn()
		}
		if x := h.b.find(d); x.parkedCount() == 0 {
			t.Fatalf("%s: no send waits", d)
		}
		if got := h.waitsOf(d); !slices.Contains(got, message.MemoryFull) {
			t.Errorf("%s: sends wait for %v", d, got)
		}
	}
}
