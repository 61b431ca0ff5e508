package broker

import (
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
)

// lacking opens a broker that notes the reasons of its warnings.
func lacking(t *testing.T) (*house, *[]message.Reason) {
	told := &[]message.Reason{}
	return open(t, nil, func(o *Options) {
		o.Observe = func(e Event) {
			if e.Kind == NotAsMeant && e.Reason != "" {
				*told = append(*told, e.Reason)
			}
		}
	}), told
}

// A message to what ActiveMQ makes a virtual topic reaches no queue here: it is counted while there
// is such a queue and no durable subscriber, told of once, and explained.
func TestMessagesToVirtualTopicsAreCounted(t *testing.T) {
	h, told := lacking(t)
	g := h.connect("c1", "client", "u", nil)
	topic := topicNamed("VirtualTopic.orders")
	want := func(when string, n int64) {
		t.Helper()
		if got := h.b.counts.Reasons[message.NotVirtual]; got != n {
			t.Errorf("%s: %d are counted, want %d", when, got, n)
		}
	}
	g.produce("c1", topic, 1)
	want("without a queue", 0)
	q := queueNamed("Consumer.A.VirtualTopic.orders")
	c := g.consume("c1", q)
	g.consume("c1", queueNamed("Consumer.B.VirtualTopic.orders"))
	g.consume("c1", queueNamed("Consumer.A.VirtualTopic.other"))
	g.produce("c1", topic, 2)
	g.produce("c1", topic, 3)
	want("with queues", 2)
	if !slices.Equal(*told, []message.Reason{message.NotVirtual}) {
		t.Errorf("told of %v", *told)
	}
	for _, d := range []message.Destination{q, topic} {
		if x := h.explain(d); !strings.Contains(x.Remark, "virtual topics are not supported") {
			t.Errorf("%v is explained by %q", d, x.Remark)
		}
	}
	g.produce("c1", queueNamed("Consumer.plain"), 4)
	if x := h.explain(queueNamed("Consumer.plain")); x.Remark != "" {
		t.Errorf("a queue of no virtual topic is explained by %q", x.Remark)
	}
	g.do(&message.RemoveInfo{Object: c})
	if h.b.unsupported.virtual[topic] != 2 {
		t.Errorf("%d queues are known, want 2", h.b.unsupported.virtual[topic])
	}
}

// A message to what ActiveMQ would forward stays where it was sent: it is counted, told of once and
// explained.
func TestMessagesToCompositeDestinationsAreCounted(t *testing.T) {
	told := []message.Reason{}
	h := open(t, nil, func(o *Options) {
		o.Composites = []Composite{{queueNamed("in.*"), "queue://a, topic://b"},
			{topicNamed("tin"), "queue://c"}}
		o.Observe = func(e Event) {
			if e.Kind == NotAsMeant {
				told = append(told, e.Reason)
			}
		}
	})
	g := h.connect("c1", "client", "u", nil)
	for i, d := range []message.Destination{queueNamed("in.1"), topicNamed("tin"),
		queueNamed("in.1"), queueNamed("tin"), topicNamed("in.1")} {
		g.produce("c1", d, int64(i+1))
	}
	if n := h.b.counts.Reasons[message.NotVirtual]; n != 3 ||
		!slices.Equal(told, []message.Reason{message.NotVirtual, message.NotVirtual}) {
		t.Errorf("%d are counted, want 3; told of %v", n, told)
	}
	for d, want := range map[message.Destination]string{
		queueNamed("in.1"): "does not come to queue://a, topic://b (NOT_VIRTUAL)",
		topicNamed("tin"):  "does not come to queue://c (NOT_VIRTUAL)", queueNamed("tin"): "",
	} {
		if x := h.explain(d); !strings.HasSuffix(x.Remark, want) || want == "" && x.Remark != "" {
			t.Errorf("%v is explained by %q", d, x.Remark)
		}
	}
}

// A message that asks to be delivered later is delivered at once, and counted by the broker that a
// client sent it to.
func TestScheduledMessagesAreCounted(t *testing.T) {
	h, told := lacking(t)
	g := h.connect("c1", "client", "u", nil)
	p := message.ProducerID{Connection: "c1", Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	for i, name := range []string{"AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_ID",
		"color"} {
		m := &message.Message{Producer: p, Destination: queueNamed("q"), Persistent: true,
			ID: message.MessageID{Producer: p, Sequence: int64(i + 1)}}
		if err := m.SetProperties(message.Property{Name: name, Value: "5000"}); err != nil {
			t.Fatal(err)
		}
		if e := g.do(m); e != nil {
			t.Fatal(e)
		}
	}
	if n := h.b.counts.Reasons[message.NotScheduled]; n != 2 {
		t.Errorf("%d are counted, want 2", n)
	}
	if !slices.Equal(*told, []message.Reason{message.NotScheduled}) {
		t.Errorf("told of %v", *told)
	}
}
