package broker

import (
	"testing"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
)

// spanning opens a consumer of queue q and topic t, and sends to both in turn: four messages.
func spanning(t *testing.T, prefetch int32) (*house, *guest, message.ConsumerID) {
	t.Helper()
	h := open(t, nil, nil)
	c := h.connect("c", "c", "", nil)
	id := message.ConsumerID{Connection: c.cid("c"), Session: 1, Value: 1}
	both := message.Destination{Kind: message.Queue, Name: "q,topic://t"}
	if e := c.do(&message.ConsumerInfo{ID: id, Destination: both, PrefetchSize: prefetch}); e != nil {
		t.Fatal(e)
	}
	c.span(1)
	return h, c, id
}

// span sends four messages from number n on, in turn to q and t.
func (g *guest) span(n int64) {
	for i := range int64(2) {
		g.produce("c", queueNamed("q"), n+2*i)
		g.produce("c", topicNamed("t"), n+2*i+1)
	}
}

func (g *guest) covers(id message.ConsumerID, first, last int, tx message.TransactionID) error {
	a := &message.MessageAck{Consumer: id, Type: message.StandardAck, Destination: g.from[g.got[last]],
		First: g.got[first], Last: g.got[last], HasFirst: true, HasLast: true,
		Count: int32(last - first + 1), Transaction: tx}
	if e := g.do(a); e != nil {
		return e
	}
	return nil
}

func (h *house) left() int64 { return h.b.find(queueNamed("q")).queue.Len() }

func TestARangeOfQueuesAndTopicsCoversBoth(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int
		left        int64
	}{
		{"it ends with a topic's", 0, 3, 0},
		{"it begins with a topic's", 1, 2, 1},
		{"it is of topics' alone", 1, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, g, id := spanning(t, 100)
			if err := g.covers(id, c.first, c.last, message.TransactionID{}); err != nil {
				t.Fatal(err)
			}
			if n := h.left(); n != c.left || len(h.stored(queueNamed("q"))) != int(c.left) {
				t.Errorf("%d in the queue, %d stored; want %d", n, len(h.stored(queueNamed("q"))), c.left)
			}
		})
	}
}

func TestATransactionCoversQueuesAndTopics(t *testing.T) {
	h, g, id := spanning(t, 2)
	for _, how := range []message.TransactionType{message.Rollback, message.CommitOnePhase} {
		tx := g.begin("c", int64(how))
		if err := g.covers(id, 0, 3, tx); err != nil {
			t.Fatal(err)
		}
		if n := h.left(); n != 2 {
			t.Errorf("%d in the queue before the end of the transaction", n)
		}
		if e := g.finish(tx, how); e != nil {
			t.Fatal(e)
		}
	}
	if n := h.left(); n != 0 {
		t.Errorf("%d in the queue after the commit", n)
	}
	g.span(5)
	if len(g.got) != 8 {
		t.Errorf("%d messages came, want 8: the commit makes room", len(g.got))
	}
	if d := h.b.find(topicNamed("t")); d.counts.Dequeued != 2 {
		t.Errorf("%d of the topic's are counted as taken, want 2", d.counts.Dequeued)
	}
}

func TestQueuesAndTopicsHaveRoomOfTheirOwn(t *testing.T) {
	h, g, id := spanning(t, 1)
	if len(g.got) != 2 {
		t.Fatalf("%d messages came, want one of each", len(g.got))
	}
	if err := g.covers(id, 0, 1, message.TransactionID{}); err != nil {
		t.Fatal(err)
	}
	if len(g.got) != 4 || h.left() != 1 {
		t.Errorf("%d messages came, want 4; %d in the queue, want 1", len(g.got), h.left())
	}
}

func TestWhatAClosedConsumerSawOfTopicsTellsWhatItSawOfQueues(t *testing.T) {
	h, g, id := spanning(t, 100)
	last := g.sequences(id)[1]
	g.do(&message.RemoveInfo{Object: id, LastDelivered: last})
	other := h.connect("o", "o", "", nil)
	other.consume("o", queueNamed("q"))
	if len(other.counts) != 2 || other.counts[0] != 1 || other.counts[1] != 0 {
		t.Errorf("redelivery counts %v, want 1 and 0", other.counts)
	}
}

func TestCopiesOfACompositeAreToldApartByTheirSequences(t *testing.T) {
	for seen := range 3 {
		h := open(t, nil, nil)
		c := h.connect("c", "c", "", nil)
		all := queueNamed("x,y,z")
		id := c.consume("c", all)
		c.produce("c", all, 1)
		c.do(&message.RemoveInfo{Object: id, LastDelivered: c.sequences(id)[seen]})
		other := h.connect("o", "o", "", nil)
		other.consume("o", all)
		n := int32(0)
		for _, count := range other.counts {
			n += count
		}
		if len(other.got) != 3 || n != int32(seen+1) {
			t.Errorf("%d of 3 came; of %d that were seen %d are redelivered", len(other.got), seen+1, n)
		}
	}
}

// sequences are those that a consumer's client tells how far it came by.
func (g *guest) sequences(id message.ConsumerID) []int64 {
	var list []int64
	g.consumers[id].window.Each(func(e *window.Entry[*queue.Copy]) {
		list = append(list, e.Message.BrokerSequence)
	})
	return list
}

func TestOnlyWhatATransactionConsumesBreaksIt(t *testing.T) {
	h, g, id := spanning(t, 100)
	tx := g.begin("c", 1)
	unknown := message.MessageID{Sequence: 99}
	a := &message.MessageAck{Consumer: id, Type: message.DeliveredAck, Destination: queueNamed("q"),
		Last: unknown, HasLast: true, Count: 1, Transaction: tx}
	if e := g.do(a); e == nil {
		t.Error("an acknowledgement of what was never sent is taken")
	}
	if err := g.covers(id, 0, 3, tx); err != nil {
		t.Fatal(err)
	}
	if e := g.finish(tx, message.CommitOnePhase); e != nil || h.left() != 0 {
		t.Errorf("the commit: %v, %d in the queue", e, h.left())
	}
}
