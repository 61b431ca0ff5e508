package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

// picks attaches a consumer that takes messages of one JMSType and lets nothing happen after it.
func (g *guest) picks(id string, d message.Destination, kind string) {
	g.number++
	g.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: g.cid(id), Session: 1,
		Value: int64(g.number)}, Destination: d, PrefetchSize: 1000, Selector: "JMSType='" + kind + "'"})
}

// typed is mail of a JMSType.
func (g *guest) typed(id string, d message.Destination, n int64, kind string) *message.Message {
	m := g.mail(id, d, n)
	m.Type = kind
	return m
}

func TestALongSearchKeepsNobodyElseFromWhatIsNew(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 4000)
	b, p := h.connect("b", "b", "", nil), h.connect("p", "p", "", nil)
	b.picks("b", q, "b")
	h.turn()
	fresh := p.typed("p", q, 5000, "b")
	h.connect("a", "a", "", nil).picks("a", q, "a")
	h.step()
	p.Handle(fresh)
	steps := 0
	for len(b.got) == 0 && h.step() {
		steps++
	}
	if len(b.got) != 1 || steps > 10 {
		t.Errorf("%d messages came after %d steps of the loop", len(b.got), steps)
	}
}

func TestAPageThatCannotBeReadHoldsNobodyElseUp(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 1000)
	b, p := h.connect("b", "b", "", nil), h.connect("p", "p", "", nil)
	b.picks("b", q, "b")
	h.turn()
	h.broken = 1 << 30
	h.connect("a", "a", "", nil).picks("a", q, "a")
	h.pass(time.Minute)
	p.do(p.typed("p", q, 5000, "b"))
	if len(b.got) != 1 {
		t.Error("nothing came")
	}
	if n := len(h.events); n > 100 {
		t.Errorf("%d things were told in a minute", n)
	}
}

func TestAPullIsAnsweredWhenAllThatCanBeReadWasLookedAt(t *testing.T) {
	q := queueNamed("q")
	pull := func(h *house) *guest {
		g := h.connect("g", "g", "", nil)
		id := message.ConsumerID{Connection: "g", Session: 1}
		g.do(&message.ConsumerInfo{ID: id, Destination: q, Selector: "JMSType='b'"})
		g.do(&message.MessagePull{Consumer: id, Destination: q, Timeout: -1})
		return g
	}
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	for n := range int64(5000) { // more than one turn looks at
		p.Handle(p.mail("p", q, n+1))
	}
	p.do(p.typed("p", q, 5001, "b"))
	if g := pull(h); len(g.got) != 1 || g.ends() != 0 {
		t.Errorf("behind many: %d messages, %d answers of nothing", len(g.got), g.ends())
	}
	h = filled(t, q, 1000)
	h.broken = 1 << 30
	if g := pull(h); len(g.got) != 0 || g.ends() != 1 {
		t.Errorf("of what cannot be read: %d messages, %d answers of nothing", len(g.got), g.ends())
	}
}

func TestATurnEndsHoweverManyQueuesHaveMuchToLookAt(t *testing.T) {
	h := open(t, nil, nil)
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	const queues, each = 30, 200
	name := func(i int64) message.Destination { return queueNamed(string(rune('A' + i))) }
	for n := range int64(queues * each) {
		p.Handle(p.mail("p", name(n/each), n+1))
	}
	h.turn()
	for i := range int64(queues) {
		c.picks("c", name(i), "none")
	}
	last := h.b.find(name(queues - 1)).queue
	for turns := 1; ; turns++ {
		before := len(h.b.dirty)
		h.b.EndTurn()
		if n := before - len(h.b.dirty); n > 2000/each {
			t.Fatalf("one turn looked through %d queues with %d copies each", n, each)
		}
		if len(h.b.dirty) == 0 {
			if turns < queues*each/2000 {
				t.Errorf("all was done in %d turns", turns)
			}
			break
		}
	}
	if err := last.Check(); err != nil {
		t.Error(err)
	}
}
