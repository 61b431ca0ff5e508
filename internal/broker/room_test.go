package broker

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

func TestAClientThatDoesNotReadGetsNoMoreUntilItDoes(t *testing.T) {
	h := open(t, nil, nil)
	q, topic := queueNamed("q"), topicNamed("t")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	c.consume("c", q)
	c.consume("c", topic)
	c.full = true
	p.produce("p", q, 1)
	p.produce("p", topic, 2)
	if e := c.do(&message.ConsumerInfo{Destination: q, Browser: true, PrefetchSize: 10,
		ID: message.ConsumerID{Connection: "c", Session: 1, Value: 99}}); e != nil {
		t.Fatal(e)
	}
	if len(c.got) != 0 {
		t.Fatalf("it got %v", c.got)
	}
	if row := h.explain(q).Rows; len(row) != 1 || row[0].Reason != message.LinkFull {
		t.Errorf("explained as %+v", row)
	}
	c.full = false
	c.onRoom()
	h.turn()
	if len(c.got) != 3 { // the browser saw it, too
		t.Errorf("it got %v", c.got)
	}
}

func (h *house) explain(q message.Destination) (e *Explanation) {
	h.b.Explain(q, nil, func(x *Explanation) { e = x })
	h.turn()
	return e
}

func TestDeliveriesThatWereNeverWrittenAreNotCounted(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	c.consume("c", q)
	for n := range int64(5) {
		p.produce("p", q, n+1)
	}
	c.unsent = 2
	c.Gone()
	again := h.connect("d", "d", "", nil)
	again.consume("d", q)
	for i, want := range []int32{1, 1, 1, 0, 0} {
		if got := again.counts[i]; got != want {
			t.Errorf("message %d comes with count %d, want %d", i+1, got, want)
		}
	}
}

// A writer goes on by itself: what it sends until it is cut counts, and then nothing more.
func TestTheWriterIsCutBeforeWhatItWroteIsRead(t *testing.T) {
	for name, end := range map[string]func(h *house, c *guest){
		"the socket is gone": func(_ *house, c *guest) { c.Gone() },
		"closed from here":   func(_ *house, c *guest) { c.close("enough") },
		"it takes its leave": func(_ *house, c *guest) { c.Handle(&message.ShutdownInfo{}) },
	} {
		h := open(t, nil, nil)
		q := queueNamed("q")
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		c.consume("c", q)
		for n := range int64(3) {
			p.produce("p", q, n+1)
		}
		c.unsent = 3
		c.onCut = func() { c.unsent = 1 } // it was at it
		end(h, c)
		again := h.connect("d", "d", "", nil)
		again.consume("d", q)
		for i, want := range []int32{1, 1, 0} {
			if got := again.counts[i]; got != want {
				t.Errorf("%s: message %d comes with count %d, want %d", name, i+1, got, want)
			}
		}
	}
}

func TestASinkThatWantsNoMoreIsLeftAloneUntilItDoes(t *testing.T) {
	for _, d := range []message.Destination{queueNamed("q"), topicNamed("t")} {
		h := open(t, nil, nil)
		e := &bridgeEnd{full: true}
		id := h.bridge("ID:p", d, e)
		p := h.connect("p", "p", "", nil)
		for n := range int64(5) {
			p.produce("p", d, n+1)
		}
		if len(e.got) != 1 {
			t.Errorf("%s: it got %v", d, e.got)
		}
		h.b.Ready(id)
		h.turn()
		h.b.Settle(id, e.got[:1], network.Acked)
		h.turn()
		if len(e.got) != 3 {
			t.Errorf("%s: it got %v after it was ready and settled one", d, e.got)
		}
		e.full = false
		h.b.Ready(id)
		h.turn()
		if len(e.got) != 5 {
			t.Errorf("%s: it got %v of 5", d, e.got)
		}
	}
}
