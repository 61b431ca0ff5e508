package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store/mem"
)

// stranger draws commands that no client of good will would send, with ids out of a small world, so
// that they meet.
type stranger struct {
	t   *rapid.T
	own message.ConnectionID
}

// below draws a number below n; rapid's own ranges prefer the small ones.
func (s stranger) below(n int, what string) int {
	x := uint64(0)
	for range 12 {
		x <<= 1
		if rapid.Bool().Draw(s.t, what) {
			x |= 1
		}
	}
	return int(x * uint64(n) >> 12)
}

func one[T any](s stranger, what string, of ...T) T { return of[s.below(len(of), what)] }

// rarely is true now and then: when the stranger says something that fits nothing.
func (s stranger) rarely() bool { return s.below(24, "odd") == 0 }

func (s stranger) name() message.Destination {
	switch s.below(8, "name") {
	case 0:
	case 1:
		return topicNamed("a")
	default:
		return queueNamed("a")
	}
	return message.Destination{
		Kind: message.Kind(one[int](s, "kind", 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4)),
		Name: one[string](s, "name", "a", "a", "b", "a,b", ",", "", ">", "a.*", "*", "a,>",
			"a,topic://b", "topic://,a", "one:1", "two:1", "ID:x:1", "a,topic://ActiveMQ.Advisory.X",
			"ActiveMQ.Advisory.>", "ActiveMQ.Advisory.Consumer.Queue.a", "ActiveMQ.DLQ",
			"ActiveMQ.Advisory.MessageDLQd.>", "ActiveMQ.Statistics.Broker",
			"ActiveMQ.Statistics.Destination.>", strings.Repeat("n", 5000))}
}

func (s stranger) connection() message.ConnectionID {
	if !s.rarely() {
		return s.own
	}
	return message.ConnectionID(one[string](s, "connection", "one", "two", "", "ID:b"))
}

func (s stranger) small() int64 {
	if !s.rarely() {
		return 1
	}
	return one[int64](s, "number", 1, 1, 1, 2, 0, -1, -5, 1<<62, -1<<63, 1<<63-1)
}

func (s stranger) session() message.SessionID {
	return message.SessionID{Connection: s.connection(), Value: s.small()}
}

func (s stranger) consumer() message.ConsumerID {
	return message.ConsumerID{Connection: s.connection(), Session: s.small(),
		Value: int64(s.below(3, "consumer"))}
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
	if s.below(3, "no transaction") == 0 {
		return message.TransactionID{}
	}
	if s.below(3, "xa") == 0 {
		return message.TransactionID{XA: true, Global: one[string](s, "xid", "g", "g", "")}
	}
	return message.TransactionID{Connection: s.connection(), Value: s.small()}
}

func (s stranger) path() []message.BrokerID {
	return rapid.SliceOfN(rapid.SampledFrom([]message.BrokerID{"ID:b", "ID:x", ""}), 0, 3).
		Draw(s.t, "path")
}

func (s stranger) command(got []message.MessageID) message.Command {
	switch s.below(25, "command") {
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
			Browser: s.rarely(), NoLocal: s.rarely(), Retroactive: s.rarely(),
			PrefetchSize: one[int32](s, "prefetch", 10, 1, 0, -1),
			Selector:     one[string](s, "selector", "", "", "JMSPriority > 3", "(")}
	case 7, 8, 9, 10:
		return &message.Message{ID: s.id(), Producer: s.producer(), Destination: s.name(),
			Persistent: s.yes("persistent"), Transaction: s.transaction(), BrokerPath: s.path(),
			Expiration: one[int64](s, "expiration", 0, 0, 1, 1<<62),
			ReplyTo:    s.name(), RedeliveryCounter: int32(s.small()), Priority: uint8(s.small()),
			Content: make([]byte, s.below(3001, "size"))}
	case 11, 12, 13:
		a := &message.MessageAck{Consumer: s.consumer(), Destination: s.name(),
			Type:        message.AckType(rapid.IntRange(-1, 8).Draw(s.t, "ack")),
			Transaction: s.transaction(), Count: int32(s.small()),
			HasFirst: s.yes("first"), HasLast: s.below(10, "last") > 0}
		a.First, a.Last = s.id(), s.id()
		if len(got) > 0 && s.yes("of one received") {
			a.Last, a.First = one(s, "message", got...), one(s, "message", got...)
		}
		return a
	case 14, 15, 16:
		return &message.TransactionInfo{Connection: s.connection(), ID: s.transaction(),
			Type: message.TransactionType(rapid.IntRange(-1, 9).Draw(s.t, "step"))}
	case 17:
		if !s.rarely() {
			return &message.RemoveInfo{Object: s.consumer(), LastDelivered: s.small()}
		}
		return &message.RemoveInfo{Object: one[any](s, "object", s.consumer(), s.producer(),
			s.session(), s.connection(), nil), LastDelivered: s.small()}
	case 18:
		return &message.DestinationInfo{Connection: s.connection(), Destination: s.name(),
			Op: message.DestinationOp(rapid.IntRange(-1, 3).Draw(s.t, "op")), Timeout: s.small()}
	case 19, 20:
		return &message.MessagePull{Consumer: s.consumer(), Destination: s.name(),
			Timeout: s.small()}
	case 21:
		return &message.ConsumerControl{Consumer: s.consumer(), Prefetch: int32(s.small())}
	case 22:
		return &message.BrokerInfo{ID: one[message.BrokerID](s, "broker", "ID:x", "ID:b", ""),
			Name: "x", NetworkConnection: s.yes("network"), Duplex: s.yes("duplex"),
			NetworkProperties: "prefetchSize=10\n"}
	case 23:
		talk := network.Talk{ID: 1, Kind: one(s, "talk", network.Ask, network.Known)}
		for range s.below(3, "keys") {
			m := &message.Message{ID: s.id()}
			talk.Keys = append(talk.Keys, network.DoubtKey{Destination: s.name(),
				Key: message.Receipt(m, s.name(), s.path(), "ID:b")})
		}
		return &message.ControlCommand{Command: one(s, "words", talk.Encode(), "hopwire/", "")}
	}
	return &message.KeepAliveInfo{}
}

// crowd gives three connections with their names. The first may log in later, as a peer or not.
func crowd(h *house) ([]*guest, []message.ConnectionID) {
	names := []message.ConnectionID{"late", "one", "two"}
	var guests []*guest
	for i, id := range names {
		g := &guest{h: h}
		g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: (i + 1) % 2}, nil)
		if i > 0 {
			g.Handle(&message.ConnectionInfo{ID: id, ClientID: string(id)})
			g.Handle(&message.SessionInfo{ID: message.SessionID{Connection: id, Value: 1}})
			g.Handle(&message.ProducerInfo{ID: message.ProducerID{Connection: id, Session: 1,
				Value: 1}})
		}
		guests = append(guests, g)
	}
	return guests, names
}

// goOn lets something happen to the broker between two commands.
func (s stranger) goOn(h *house) {
	switch s.below(10, "then") {
	case 0:
		h.b.EndTurn()
	case 1:
		h.pass(time.Second)
	case 2, 3, 4, 5:
		h.turn()
	case 6:
		h.disk.SetCapacity(0, 0)
		if s.below(3, "full store") == 0 {
			h.disk.SetCapacity(1, 1000)
		}
	case 7:
		_ = h.b.Status()
		h.b.Explain(s.name(), nil, func(*Explanation) {})
	}
}

// balance tells whether what the broker counts is what is there, when nobody is connected.
func (h *house) balance() error {
	resident := int64(0)
	for _, d := range h.b.order {
		if d.queue != nil {
			resident += d.queue.ResidentBytes()
		}
		if d.memory != nil {
			resident += d.memory.Bytes()
		}
	}
	if used := h.b.memory.Used(); used != resident || h.b.journal.undurable != 0 {
		return fmt.Errorf("memory is charged %d bytes, %d are there; %d are not durable", used,
			resident, h.b.journal.undurable)
	}
	return errors.Join(h.disk.Check(), h.b.Check(), h.spoolBalance())
}

// spoolBalance tells whether what is in the spool is what copies that wait have there.
func (h *house) spoolBalance() error {
	if h.spool == nil {
		return nil
	}
	n := int64(0)
	for _, d := range h.b.order {
		if d.queue != nil {
			n += d.queue.SpooledOnly()
			d.queue.Walk(0, 1<<30, func(c *queue.Copy) {
				if c.Spooled {
					n++
				}
			})
		}
	}
	for _, q := range h.b.spool.backlogs {
		n += q.records
	}
	if s := &h.b.spool; n != s.count || s.bytes != h.spool.Space().UsedBytes || s.batch != nil {
		return fmt.Errorf("%d copies are spooled; %d are counted, of %d bytes; %d are in the spool", n,
			s.count, s.bytes, h.spool.Space().UsedBytes)
	}
	return h.spool.Check()
}

func TestNoSequenceOfCommandsEndsTheBroker(t *testing.T) {
	old := filled(t, queueNamed("a"), 250).disk
	rapid.Check(t, func(rt *rapid.T) {
		var disk *mem.Store
		if rapid.Bool().Draw(rt, "restarted") {
			disk = old.CrashClone(0)
		}
		h := open(t, disk, func(o *Options) {
			o.Statistics = true
			o.MemoryLimitBytes = 20_000
			if rapid.Bool().Draw(rt, "spool") {
				o.Spool = wantSpool{}
			}
			if rapid.Bool().Draw(rt, "topics keep messages") {
				keeping(last(5), nil)(o)
			}
			if rapid.Bool().Draw(rt, "slow consumers lose messages") {
				losing(2, rapid.SampledFrom([]policy.EvictionKind{policy.EvictOldest,
					policy.EvictLowestPriority, policy.EvictUniqueProperty}).Draw(rt, "which"))(o)
			}
		})
		guests, names := crowd(h)
		for range rapid.IntRange(20, 150).Draw(rt, "commands") {
			i := stranger{t: rt}.below(3, "who")
			g, s := guests[i], stranger{rt, names[i]}
			c := s.command(g.got)
			c.Head().CommandID = 7
			c.Head().ResponseRequired = s.yes("answer")
			g.Handle(c)
			s.goOn(h)
		}
		h.disk.SetCapacity(0, 0)
		h.pass(10 * time.Minute)
		for _, g := range guests {
			g.Gone()
		}
		h.turn()
		h.conclude()
		if n := len(h.b.xa.branches); n != 0 {
			rt.Errorf("%d branches are left", n)
		}
		if err := h.balance(); err != nil {
			rt.Error(err)
		}
	})
}

// conclude ends all prepared branches, half of them well.
func (h *house) conclude() {
	for i, tx := range h.b.transactions() {
		h.b.Decide(tx.ID, i%2 == 0, "", func(error) {})
	}
	h.turn()
}
