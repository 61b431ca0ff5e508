package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// What a consumer refuses and no dead letter queue takes is dropped under a reason of its own.
func TestPoisonThatNoDeadLetterQueueTakesIsCountedAsSuch(t *testing.T) {
	for name, d := range map[string]message.Destination{"a non-persistent message": queueNamed("q"),
		"a dead letter": queueNamed("ActiveMQ.DLQ")} {
		h := open(t, nil, nil)
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		id := c.consume("c", d)
		m := p.mail("p", d, 1)
		m.Persistent = d.Name != "q"
		p.do(m)
		c.ack(id, d, m.ID, message.PoisonAck, message.TransactionID{})
		at := h.b.find(d)
		if at.queue.Len() != 0 || at.reasons["POISONED"] != 1 || h.b.counts.Reasons["POISONED"] != 1 ||
			at.reasons[message.NoConsumer] != 0 || h.b.counts.DeadLetters != 0 {
			t.Errorf("%s: %d left, reasons %v and %v", name, at.queue.Len(), at.reasons,
				h.b.counts.Reasons)
		}
		last := h.events[len(h.events)-1]
		if last.Kind != MessageDropped || last.Reason != "POISONED" {
			t.Errorf("%s: the last event is %+v", name, last)
		}
	}
}

// A topic keeps nothing for who is not there: a dead letter that goes to one ends there.
func TestADeadLetterToATopicWithoutSubscribersIsCounted(t *testing.T) {
	dlt := topicNamed("DEAD.q")
	for name, subscribe := range map[string]func(*house){
		"nobody": func(*house) {}, "a consumer": func(h *house) {
			h.connect("s", "s", "", nil).consume("s", dlt)
		}, "a durable": func(h *house) { h.subscribe("s", "s", dlt.Name, nil).leave() },
		"a bridge": func(h *house) { h.bridge("ID:a", dlt, &bridgeEnd{}) },
		"who comes later": func(h *house) { // the topic keeps its last messages once one is retained
			p := h.connect("r", "r", "", nil)
			m := p.mail("r", dlt, 1)
			if err := m.SetProperties(message.Property{Name: "ActiveMQ.Retain", Value: true}); err != nil {
				t.Fatal(err)
			}
			p.do(m)
		},
	} {
		h := open(t, nil, func(o *Options) {
			e := individual(">", func(l *policy.DeadLetter) {
				l.UseQueueForQueueMessages, l.QueuePrefix, l.Expiration = false, "DEAD.", 0
			})
			o.Policies = &policy.Map{Entries: []*policy.Entry{e}}
		})
		subscribe(h)
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		id := c.consume("c", queueNamed("q"))
		m := p.mail("p", queueNamed("q"), 1)
		p.do(m)
		c.ack(id, queueNamed("q"), m.ID, message.PoisonAck, noTx)
		want := int64(0)
		if name == "nobody" {
			want = 1
		}
		told := int64(0)
		for _, e := range h.events {
			if e.Kind == MessageDropped && e.Reason == message.NoConsumer && e.Dest == dlt {
				told++
			}
		}
		at := h.b.find(dlt)
		if at == nil || at.reasons[message.NoConsumer] != want || told != want ||
			h.b.counts.Reasons[message.NoConsumer] != want || h.b.counts.DeadLetters != 1 {
			t.Errorf("%s: told %d times, want %d; %d dead letters, reasons %v", name, told, want,
				h.b.counts.DeadLetters, h.b.counts.Reasons)
		}
	}
}

// individual is a policy whose dead letters expire after a second.
func individual(pattern string, change func(*policy.DeadLetter)) *policy.Entry {
	e := policy.NewEntry()
	e.Destination = queueNamed(pattern)
	e.DeadLetter = policy.NewDeadLetter(policy.DeadLetterIndividual)
	e.DeadLetter.Expiration = time.Second
	if change != nil {
		change(&e.DeadLetter)
	}
	return e
}

// A dead letter that expires where its strategy put it goes nowhere else.
func TestExpiringDeadLettersMakeNoChain(t *testing.T) {
	to := func(name string) func(*policy.DeadLetter) {
		return func(l *policy.DeadLetter) {
			l.Kind, l.Queue = policy.DeadLetterShared, queueNamed(name)
		}
	}
	for name, c := range map[string]struct {
		entries []*policy.Entry
		most    int // queues
	}{
		"one strategy for all":       {[]*policy.Entry{individual(">", nil)}, 2},
		"a strategy for its targets": {[]*policy.Entry{individual("q", nil), individual(">", nil)}, 3},
		"two that name each other": {[]*policy.Entry{individual("q", to("x")), individual("x", to("y")),
			individual("y", to("x"))}, 3},
		"a prefix that grows": {[]*policy.Entry{individual(">", func(l *policy.DeadLetter) {
			l.QueuePrefix, l.QueueSuffix = "", ".dead"
		})}, 2},
	} {
		h := open(t, nil, func(o *Options) { o.Policies = &policy.Map{Entries: c.entries} })
		g := h.connect("g", "g", "", nil)
		m := g.mail("g", queueNamed("q"), 1)
		m.Expiration = 1
		g.do(m)
		h.pass(10 * time.Minute)
		left := int64(0)
		for _, d := range h.b.order {
			left += d.queue.Len()
		}
		if len(h.b.order) > c.most || left != 0 || h.b.counts.Reasons[message.Expired] != 1 {
			t.Errorf("%s: %d destinations, %d messages are left, counted are %v", name,
				len(h.b.order), left, h.b.counts.Reasons)
		}
	}
}

// What is taken out of a dead letter queue and sent again may die again.
func TestADeadLetterThatIsSentAgainMayDieAgain(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.Policies = &policy.Map{Entries: []*policy.Entry{individual(">", nil)}}
	})
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", queueNamed("q"), 1)
	m.OriginalDestination, m.Expiration = queueNamed("q"), 1
	g.do(m)
	h.turn()
	if h.b.counts.DeadLetters != 1 {
		t.Errorf("%d dead letters, counted are %v", h.b.counts.DeadLetters, h.b.counts.Reasons)
	}
}

func TestADeadLetterQueueWhoseNameIsTooLongTakesNothing(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.Policies = &policy.Map{Entries: []*policy.Entry{individual(">", nil)}}
	})
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", queueNamed(strings.Repeat("q", maxNameBytes)), 1)
	m.Expiration = 1
	if e := g.do(m); e != nil {
		t.Fatal(e)
	}
	if n := len(h.b.order); n != 1 || h.b.counts.Reasons[message.Expired] != 1 {
		t.Errorf("%d destinations, counted are %v", n, h.b.counts.Reasons)
	}
}

func TestADeadLetterThatEndsSaysNothingOfItsFirstEnd(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		e := policy.NewEntry()
		e.DeadLetter.Expiration = ttl
		h := open(t, nil, func(o *Options) { o.Policies = &policy.Map{Default: e} })
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		id := c.consume("c", queueNamed("q"))
		m := p.mail("p", queueNamed("q"), 1)
		m.Persistent = true
		p.do(m)
		c.ack(id, queueNamed("q"), m.ID, message.PoisonAck, message.TransactionID{})
		var dead *message.Message
		h.b.find(queueNamed("ActiveMQ.DLQ")).queue.Walk(0, 9, func(c *queue.Copy) { dead = c.Message })
		if _, said := dead.Property("originalExpiration"); said != (ttl == 0) ||
			(dead.Expiration != 0) != (ttl != 0) {
			t.Errorf("ttl %v: original expiration told %v, expires at %d", ttl, said, dead.Expiration)
		}
	}
}
