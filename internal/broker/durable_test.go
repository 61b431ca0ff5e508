package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// reader is a client with one durable subscription.
type reader struct {
	*guest
	id message.ConsumerID
}

// subscribe connects the client and opens its durable consumer.
func (h *house) subscribe(client, name, topics string, change func(*message.ConsumerInfo)) *reader {
	h.t.Helper()
	r := &reader{guest: h.connect(client, client, "", nil)}
	if e := r.subscribe(name, topics, change); e != nil {
		h.t.Fatal(e)
	}
	return r
}

func (r *reader) subscribe(name, topics string,
	change func(*message.ConsumerInfo)) *message.Throwable {
	d, _ := message.ParseDestination(topics, message.Topic)
	r.id = message.ConsumerID{Connection: r.Connection.id, Session: 1, Value: int64(r.number) + 1}
	info := &message.ConsumerInfo{ID: r.id, Destination: d, PrefetchSize: 100,
		SubscriptionName: name}
	if change != nil {
		change(info)
	}
	return r.do(info)
}

// leave closes the connection in order, having seen nothing of what is not acknowledged.
func (r *reader) leave() {
	r.do(&message.RemoveInfo{Object: r.id, LastDelivered: message.LastDeliveredUnset})
	r.Gone()
	r.h.turn()
}

func (r *reader) ackAll() {
	for _, id := range r.got {
		r.do(&message.MessageAck{Consumer: r.id, Destination: r.from[id], Last: id,
			HasLast: true, Count: 1, Type: message.StandardAck})
	}
	r.got = nil
}

// bodies gives the numbers of the messages that the client got.
func (r *reader) bodies() string {
	var out []string
	for _, id := range r.got {
		out = append(out, fmt.Sprint(id.Sequence))
	}
	return strings.Join(out, " ")
}

// publish sends messages from..to to a topic.
func (h *house) publish(topics string, from, to int64) {
	d, _ := message.ParseDestination(topics, message.Topic)
	g := h.connect("p", "p", "", nil)
	defer g.Gone()
	for n := from; n <= to; n++ {
		if e := g.produce("p", d, n); e != nil {
			h.t.Fatal(e)
		}
	}
}

// loggedOf counts the messages that the store has of a topic's log.
func (h *house) loggedOf(topic string) int {
	d := h.b.find(topicNamed(topic))
	page, err := h.disk.Page(store.PageRequest{Dest: d.id, To: 1 << 40})
	if err != nil {
		h.t.Fatal(err)
	}
	return len(page)
}

func TestADurableSubscriptionKeepsWhatComesWhileItsConsumerIsAway(t *testing.T) {
	h := open(t, nil, nil)
	a := h.subscribe("a", "s", "T", nil)
	b := h.subscribe("b", "s", "T", nil)
	h.publish("T", 1, 2)
	if a.bodies() != "1 2" || b.bodies() != "1 2" {
		t.Fatalf("a %s, b %s", a.bodies(), b.bodies())
	}
	if n := h.loggedOf("T"); n != 2 {
		t.Errorf("%d messages are stored for two subscriptions of two messages", n)
	}
	a.ackAll()
	a.leave()
	b.leave()
	h.publish("T", 3, 4)
	for range 2 { // and after a restart
		a = h.subscribe("a", "s", "T", nil)
		if a.bodies() != "3 4" {
			t.Errorf("a comes back to %q", a.bodies())
		}
		a.leave()
		h = open(t, h.disk, nil)
	}
	b = h.subscribe("b", "s", "T", nil)
	if b.bodies() != "1 2 3 4" {
		t.Errorf("b comes back to %q", b.bodies())
	}
	b.ackAll()
	a = h.subscribe("a", "s", "T", nil)
	a.ackAll()
	h.publish("T", 5, 5)
	a.ackAll()
	b.ackAll()
	h.publish("T", 6, 6)
	a.ackAll()
	b.ackAll()
	if n := h.loggedOf("T"); n > 1 || h.b.memory.Used() != 0 {
		t.Errorf("%d messages stay stored, %d bytes charged", n, h.b.memory.Used())
	}
}

func TestMessagesOfATopicThatNobodyKeepsAreNotStored(t *testing.T) {
	h := open(t, nil, nil)
	h.publish("T", 1, 3)
	a := h.subscribe("a", "s", "T", func(c *message.ConsumerInfo) { c.Selector = "JMSPriority=9" })
	h.publish("T", 4, 6)
	if n := h.loggedOf("T"); n != 0 || a.bodies() != "" {
		t.Errorf("%d are stored, %q delivered", n, a.bodies())
	}
}

func TestADurableSubscriptionHasOneConsumer(t *testing.T) {
	h := open(t, nil, nil)
	a := h.subscribe("a", "s", "T", nil)
	h.pass(time.Minute)
	e := a.subscribe("s", "T", nil)
	if e == nil || !strings.HasPrefix(e.Message,
		"Durable consumer is in use for client: a and subscriptionName: s") ||
		!strings.Contains(e.Message, "from test since 1m0s") || e.Class != "javax.jms.JMSException" {
		t.Errorf("a second consumer: %v", e)
	}
	if e := a.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s"}); e == nil ||
		e.Message != "Durable consumer is in use" {
		t.Errorf("unsubscribing one in use: %v", e)
	}
	other := h.connect("b", "b", "", nil)
	if e := other.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s"}); e == nil ||
		e.Class != "javax.jms.InvalidDestinationException" || !strings.HasPrefix(e.Message,
		"No durable subscription exists for clientID: b") {
		t.Errorf("another client's: %v", e)
	}
	a.leave()
	h.publish("T", 1, 2)
	a = &reader{guest: h.connect("a", "a", "", nil)}
	if e := a.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s"}); e != nil {
		t.Error(e)
	}
	if n := len(h.headersOf(true)); n != 0 {
		t.Errorf("%d subscriptions are stored", n)
	}
	h.publish("T", 3, 3)
	if n := h.loggedOf("T"); n != 0 || h.b.memory.Used() != 0 {
		t.Errorf("%d messages are stored, %d bytes charged", n, h.b.memory.Used())
	}
}

// headersOf gives the stored headers, of subscriptions or of others.
func (h *house) headersOf(subs bool) []store.Header {
	all, err := h.disk.Headers()
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(x store.Header) bool { return (x.Subscription != nil) != subs })
}

func TestAChangedDurableSubscriptionBeginsAnew(t *testing.T) {
	for what, change := range map[string]func(*message.ConsumerInfo){
		"selector":    func(c *message.ConsumerInfo) { c.Selector = "JMSPriority >= 0" },
		"destination": func(c *message.ConsumerInfo) { c.Destination = topicNamed("U") },
		"noLocal":     func(c *message.ConsumerInfo) { c.NoLocal = true },
	} {
		h := open(t, nil, nil)
		h.subscribe("a", "s", "T", nil).leave()
		h.publish("T", 1, 2)
		h.publish("U", 3, 4)
		a := h.subscribe("a", "s", "T", change)
		if a.bodies() != "" || len(h.headersOf(true)) != 1 {
			t.Errorf("%s: %s after the change, %d headers", what, a.bodies(), len(h.headersOf(true)))
		}
		h.publish("T", 5, 5)
		h.publish("U", 6, 6)
		if got := a.bodies(); got != "5" && what != "destination" || got != "6" && what ==
			"destination" {
			t.Errorf("%s: got %s", what, got)
		}
	}
}

func TestADurableSubscriptionOfManyTopicsHasOneOrder(t *testing.T) {
	for _, topics := range []string{"T.>", "T.1,T.2"} {
		h := open(t, nil, nil)
		a := h.subscribe("a", "s", topics, nil)
		a.leave()
		h.publish("T.1", 1, 1)
		h.publish("T.2", 2, 2)
		h.publish("T.1,T.2", 3, 3)
		h = open(t, h.disk, nil)
		h.publish("T.1", 4, 4)
		a = h.subscribe("a", "s", topics, nil)
		if a.bodies() != "1 2 3 3 4" {
			t.Errorf("%s: %s", topics, a.bodies())
		}
		if a.h.b.find(topicNamed("T.1")).status().Consumers != 1 {
			t.Error("the consumer is not counted")
		}
	}
}

func TestATransactionKeepsItsTopicMessagesForDurables(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	g := h.connect("g", "g", "", nil)
	for n, how := range []message.TransactionType{message.CommitOnePhase, message.Rollback} {
		tx := g.begin("g", int64(n+1))
		p := message.ProducerID{Connection: "g", Session: 1, Value: 1}
		g.do(&message.ProducerInfo{ID: p})
		g.do(&message.Message{Producer: p, Destination: topicNamed("T"), Persistent: true,
			ID: message.MessageID{Producer: p, Sequence: int64(n + 1)}, Transaction: tx})
		if n := len(h.b.subscriptions); n != 1 || h.loggedOf("T") != n-1 {
			t.Errorf("%d subscriptions, %d logged before the end", n, h.loggedOf("T"))
		}
		if e := g.finish(tx, how); e != nil {
			t.Error(e)
		}
		h = open(t, h.disk, nil)
		a := h.subscribe("a", "s", "T", nil)
		if got := a.bodies(); got != [...]string{"1", ""}[n] {
			t.Errorf("%v: %q", how, got)
		}
		a.ackAll()
		a.leave()
		g = h.connect("g", "g", "", nil)
	}
}

func TestAcknowledgementsOfADurableInATransaction(t *testing.T) {
	h := open(t, nil, nil)
	h.publish("T", 1, 1)
	a := h.subscribe("a", "s", "T", nil)
	h.publish("T", 2, 3)
	tx := a.begin("a", 1)
	a.ack(a.id, topicNamed("T"), a.got[0], message.StandardAck, tx)
	if e := a.finish(tx, message.CommitOnePhase); e != nil {
		t.Fatal(e)
	}
	tx = a.begin("a", 2)
	a.ack(a.id, topicNamed("T"), a.got[1], message.StandardAck, tx)
	a.Gone()
	h.turn()
	h = open(t, h.disk, nil)
	b := h.subscribe("a", "s", "T", nil)
	if b.bodies() != "3" {
		t.Errorf("got %s", b.bodies())
	}
}

func TestAPoisonAckOfADurableGoesToTheDeadLetters(t *testing.T) {
	h := open(t, nil, nil)
	a := h.subscribe("a", "s", "T", nil)
	h.publish("T", 1, 1)
	a.ack(a.id, topicNamed("T"), a.got[0], message.PoisonAck, message.TransactionID{})
	dead := h.stored(queueNamed("ActiveMQ.DLQ"))
	if len(dead) != 1 || dead[0].Message.OriginalDestination != topicNamed("T") {
		t.Fatalf("dead letters: %v", dead)
	}
	h = open(t, h.disk, nil)
	if got := h.subscribe("a", "s", "T", nil).bodies(); got != "" {
		t.Errorf("it comes again: %s", got)
	}
}

func TestOfflineBacklogsLeaveMemory(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 8 << 20 })
	for n := range 5 {
		h.subscribe(fmt.Sprint("c", n), "s", "T", nil).leave()
	}
	g := h.connect("g", "g", "", nil)
	p := message.ProducerID{Connection: "g", Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	const many = 5000
	for n := range int64(many) {
		if e := g.do(&message.Message{Producer: p, Destination: topicNamed("T"), Persistent: true,
			ID:      message.MessageID{Producer: p, Sequence: n + 1},
			Content: make([]byte, 4096)}); e != nil {
			t.Fatal(e)
		}
	}
	if used := h.b.memory.Used(); used > 8<<20 {
		t.Errorf("%d bytes in memory", used)
	}
	for n := range 5 {
		r := h.subscribe(fmt.Sprint("c", n), "s", "T", nil)
		for want := int64(1); want <= many; want++ {
			if len(r.got) == 0 || r.got[0].Sequence != want {
				t.Fatalf("client %d: %d of %d, %s", n, want, many, r.bodies())
			}
			id := r.got[0]
			r.got = r.got[1:]
			r.ack(r.id, topicNamed("T"), id, message.StandardAck, message.TransactionID{})
		}
	}
	if n := h.loggedOf("T"); n != 0 {
		t.Errorf("%d messages stay stored", n)
	}
}

func TestATopicThatGoesTakesItsDurablesAlong(t *testing.T) {
	h := open(t, nil, nil)
	a := h.subscribe("a", "s", "T", nil)
	g := h.connect("g", "g", "", nil)
	remove := func() *message.Throwable {
		return g.do(&message.DestinationInfo{Destination: topicNamed("T"),
			Op: message.RemoveDestination, Timeout: 1})
	}
	if e := remove(); e == nil {
		t.Error("a topic went whose durable subscription was in use")
	}
	a.leave()
	if e := g.do(&message.DestinationInfo{Destination: topicNamed("T"),
		Op: message.RemoveDestination}); e == nil {
		t.Error("a topic went, not forced, and its durable subscription with it")
	}
	h.publish("T", 1, 3)
	wild := h.subscribe("w", "s", ">", nil)
	h.publish("T", 4, 4)
	wild.leave()
	if e := remove(); e == nil {
		t.Error("a topic went of which a subscription of a pattern keeps a message")
	}
	wild = h.subscribe("w", "s", ">", nil)
	wild.ackAll()
	wild.leave()
	if e := remove(); e != nil {
		t.Error(e)
	}
	h = open(t, h.disk, nil)
	if n := len(h.b.subscriptions); n != 1 || len(h.b.dests) > 1 {
		t.Errorf("%d subscriptions and %d destinations are left", n, len(h.b.dests))
	}
}

func TestASubscriptionWhoseConsumerStaysAwayIsRemoved(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.OfflineDurableTimeout, o.OfflineDurableCheck = time.Hour, 5*time.Minute
	})
	a, b := h.subscribe("a", "s", "T", nil), h.subscribe("b", "s", "T", nil)
	a.leave()
	h.publish("T", 1, 3)
	h.pass(59 * time.Minute)
	if len(h.b.subscriptions) != 2 {
		t.Error("it went before its time")
	}
	h.pass(7 * time.Minute)
	if len(h.b.subscriptions) != 1 || h.b.counts.Reasons[message.OfflineTimeout] != 3 {
		t.Errorf("%d subscriptions, reasons %v", len(h.b.subscriptions), h.b.counts.Reasons)
	}
	if b.bodies() != "1 2 3" || len(h.headersOf(true)) != 1 {
		t.Errorf("the other one has %s", b.bodies())
	}
}

func TestWhatCannotHaveADurableSubscription(t *testing.T) {
	h := open(t, nil, nil)
	r := &reader{guest: h.connect("a", "a", "", nil)}
	for d, class := range map[string]string{
		"topic://ActiveMQ.Advisory.Queue": "javax.jms.JMSException",
		"queue://Q":                       "javax.jms.InvalidDestinationException",
		"topic://T,queue://Q":             "javax.jms.InvalidDestinationException",
	} {
		if e := r.subscribe("s", d, nil); e == nil || e.Class != class {
			t.Errorf("%s: %v", d, e)
		}
	}
	if len(h.b.subscriptions) != 0 {
		t.Error("a subscription was made")
	}
	h = open(t, nil, func(o *Options) { o.RejectDurableConsumers = true })
	r = &reader{guest: h.connect("a", "a", "", nil)}
	if e := r.subscribe("s", "T", nil); e == nil {
		t.Error("rejectDurableConsumers has no effect")
	}
}
