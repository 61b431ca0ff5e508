package broker

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

// stranger draws commands that no client of good will would send, with ids out of a small world, so
// that they meet.
type stranger struct {
	t   *rapid.T
	own message.ConnectionID
}

// rarely is true now and then: when the stranger says something that fits nothing.
func (s stranger) rarely() bool { return rapid.IntRange(0, 11).Draw(s.t, "odd") == 11 }

func (s stranger) name() message.Destination {
	if !s.rarely() {
		return message.Destination{Kind: message.Queue, Name: "a"}
	}
	return message.Destination{
		Kind: message.Kind(rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2, 2, 3, 4}).Draw(s.t, "kind")),
		Name: rapid.SampledFrom([]string{"a", "a", "b", "a,b", ",", "", ">", "a.*", "*", "a,>",
			"a,topic://b", "topic://,a", "one:1", "two:1", "ID:x:1", "a,topic://ActiveMQ.Advisory.X",
			"ActiveMQ.Advisory.>", "ActiveMQ.Advisory.Consumer.Queue.a", "ActiveMQ.DLQ",
			"ActiveMQ.Advisory.MessageDLQd.>", "ActiveMQ.Statistics.Broker",
			"ActiveMQ.Statistics.Destination.>", strings.Repeat("n", 5000)}).Draw(s.t, "name")}
}

func (s stranger) connection() message.ConnectionID {
	if !s.rarely() {
		return s.own
	}
	return message.ConnectionID(rapid.SampledFrom([]string{"one", "two", "", "ID:b"}).
		Draw(s.t, "connection"))
}

func (s stranger) small() int64 {
	if !s.rarely() {
		return 1
	}
	return rapid.SampledFrom([]int64{1, 1, 1, 2, 0, -1, -5, 1 << 62, -1 << 63, 1<<63 - 1}).
		Draw(s.t, "number")
}

func (s stranger) session() message.SessionID {
	return message.SessionID{Connection: s.connection(), Value: s.small()}
}

func (s stranger) consumer() message.ConsumerID {
	return message.ConsumerID{Connection: s.connection(), Session: s.small(), Value: s.small()}
}

func (s stranger) producer() message.ProducerID {
	return message.ProducerID{Connection: s.connection(), Session: s.small(), Value: s.small()}
}

func (s stranger) id() message.MessageID {
	return message.MessageID{Producer: s.producer(),
		Sequence: rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64()).Draw(s.t, "sequence")}
}

func (s stranger) yes(what string) bool { return rapid.Bool().Draw(s.t, what) }

func (s stranger) transaction() message.TransactionID {
	if rapid.IntRange(0, 2).Draw(s.t, "no transaction") == 0 {
		return message.TransactionID{}
	}
	return message.TransactionID{Connection: s.connection(), Value: s.small(),
		XA: rapid.IntRange(0, 9).Draw(s.t, "xa") == 0}
}

func (s stranger) path() []message.BrokerID {
	return rapid.SliceOfN(rapid.SampledFrom([]message.BrokerID{"ID:b", "ID:x", ""}), 0, 3).
		Draw(s.t, "path")
}

func (s stranger) command(got []message.MessageID) message.Command {
	switch rapid.IntRange(0, 24).Draw(s.t, "command") {
	case 0:
		if s.own != "late" && !s.rarely() {
			break
		}
		return &message.ConnectionInfo{ID: s.connection(), ClientID: string(s.connection()),
			FailoverReconnect: s.yes("failover")}
	case 1:
		return &message.SessionInfo{ID: s.session()}
	case 2, 3:
		return &message.ProducerInfo{ID: s.producer(), Destination: s.name(),
			WindowSize: int32(s.small())}
	case 4, 5, 6:
		return &message.ConsumerInfo{ID: s.consumer(), Destination: s.name(),
			Browser: s.rarely(), NoLocal: s.rarely(),
			PrefetchSize: rapid.SampledFrom([]int32{10, 1, 0, -1}).Draw(s.t, "prefetch"),
			Selector: rapid.SampledFrom([]string{"", "", "JMSPriority > 3", "("}).
				Draw(s.t, "selector")}
	case 7, 8, 9, 10:
		return &message.Message{ID: s.id(), Producer: s.producer(), Destination: s.name(),
			Persistent: s.yes("persistent"), Transaction: s.transaction(), BrokerPath: s.path(),
			Expiration: rapid.SampledFrom([]int64{0, 0, 1, 1 << 62}).Draw(s.t, "expiration"),
			ReplyTo:    s.name(), RedeliveryCounter: int32(s.small()), Priority: uint8(s.small()),
			Content: make([]byte, rapid.IntRange(0, 3000).Draw(s.t, "size"))}
	case 11, 12, 13:
		a := &message.MessageAck{Consumer: s.consumer(), Destination: s.name(),
			Type:        message.AckType(rapid.IntRange(-1, 8).Draw(s.t, "ack")),
			Transaction: s.transaction(), Count: int32(s.small()),
			HasFirst: s.yes("first"), HasLast: rapid.IntRange(0, 9).Draw(s.t, "last") > 0}
		a.First, a.Last = s.id(), s.id()
		if len(got) > 0 && s.yes("of one received") {
			a.Last = rapid.SampledFrom(got).Draw(s.t, "message")
			a.First = rapid.SampledFrom(got).Draw(s.t, "message")
		}
		return a
	case 14, 15, 16:
		return &message.TransactionInfo{Connection: s.connection(), ID: s.transaction(),
			Type: message.TransactionType(rapid.IntRange(-1, 9).Draw(s.t, "step"))}
	case 17:
		if !s.rarely() {
			break
		}
		return &message.RemoveInfo{Object: rapid.SampledFrom([]any{s.consumer(), s.producer(),
			s.session(), s.connection(), nil}).Draw(s.t, "object"), LastDelivered: s.small()}
	case 18:
		return &message.DestinationInfo{Connection: s.connection(), Destination: s.name(),
			Op: message.DestinationOp(rapid.IntRange(-1, 3).Draw(s.t, "op")), Timeout: s.small()}
	case 19, 20:
		return &message.MessagePull{Consumer: s.consumer(), Destination: s.name(),
			Timeout: s.small()}
	case 21:
		return &message.ConsumerControl{Consumer: s.consumer(), Prefetch: int32(s.small())}
	case 22:
		return &message.BrokerInfo{ID: rapid.SampledFrom(s.ids()).Draw(s.t, "broker"),
			Name: "x", NetworkConnection: s.yes("network"), Duplex: s.yes("duplex"),
			NetworkProperties: "prefetchSize=10\n"}
	case 23:
		return &message.ControlCommand{Command: rapid.SampledFrom([]string{"", "shutdown",
			"hopwire ask", "hopwire settled", "hopwire known"}).Draw(s.t, "words")}
	}
	return &message.KeepAliveInfo{}
}

func (s stranger) ids() []message.BrokerID { return []message.BrokerID{"ID:x", "ID:b", ""} }

func TestNoSequenceOfCommandsEndsTheBroker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := open(t, nil, func(o *Options) {
			o.Statistics = true
			o.MemoryLimitBytes = 20_000
		})
		if rapid.IntRange(0, 3).Draw(rt, "small store") == 0 {
			h.disk.SetCapacity(30_000, 4_000)
		}
		var guests []*guest
		names := []string{"late", "one", "two"} // the first may log in later, as a peer or not
		for i := range 3 {
			g := &guest{h: h}
			g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: i % 2}, nil)
			if id := names[i]; id != "late" {
				g.Handle(&message.ConnectionInfo{ID: message.ConnectionID(id), ClientID: id})
				g.Handle(&message.SessionInfo{ID: message.SessionID{
					Connection: message.ConnectionID(id), Value: 1}})
				g.Handle(&message.ProducerInfo{ID: message.ProducerID{
					Connection: message.ConnectionID(id), Session: 1, Value: 1}})
			}
			guests = append(guests, g)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "commands") {
			i := rapid.IntRange(0, 2).Draw(rt, "who")
			g, s := guests[i], stranger{rt, message.ConnectionID(names[i])}
			c := s.command(g.got)
			c.Head().CommandID = 7
			c.Head().ResponseRequired = s.yes("answer")
			g.Handle(c)
			switch rapid.IntRange(0, 9).Draw(rt, "then") {
			case 0:
				h.b.EndTurn()
			case 1:
				h.pass(time.Second)
			case 2, 3, 4, 5:
				h.turn()
			}
		}
		h.disk.SetCapacity(0, 0)
		h.pass(10 * time.Minute)
		for _, g := range guests {
			g.Gone()
		}
		h.turn()
		if used := h.b.memory.Used(); used < 0 {
			rt.Errorf("memory is charged %d bytes", used)
		}
		if err := h.disk.Check(); err != nil {
			rt.Error(err)
		}
		if err := h.b.Check(); err != nil {
			rt.Error(err)
		}
	})
}
