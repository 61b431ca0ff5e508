package sim

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// plantedSeeds is how many seeds a planted fault may hide for.
const plantedSeeds = 400

// faultyStorage is a storage some of whose answers are wrong.
type faultyStorage struct {
	broker.Storage
	commit   func(b *store.Batch, done func(error))
	receipts func(d store.DestID, done func(store.Receipts, error))
}

func (s faultyStorage) Commit(b *store.Batch, done func(error)) {
	if s.commit != nil {
		s.commit(b, done)
		return
	}
	s.Storage.Commit(b, done)
}

func (s faultyStorage) Receipts(d store.DestID, done func(store.Receipts, error)) {
	if s.receipts != nil {
		s.receipts(d, done)
		return
	}
	s.Storage.Receipts(d, done)
}

// faultyLocal is a home broker that does some things wrong.
type faultyLocal struct {
	*broker.Broker
	settle func(id message.ConsumerID, refs []message.CopyRef, how network.Settlement)
	known  func(peer message.BrokerID, keys []network.DoubtKey,
		done func([]bool, bool)) bool
	receive func(m *message.Message, from network.Peer, done func(error))
	wake    func(id message.ConsumerID)
	inDoubt func(done func([]network.Doubt))
	resolve func(peer message.BrokerID, refs []message.CopyRef, how network.Resolution)

	subscribe func(s *network.Subscription) error
}

func (f *faultyLocal) Subscribe(s *network.Subscription) error {
	if f.subscribe != nil {
		return f.subscribe(s)
	}
	return f.Broker.Subscribe(s)
}

func (f *faultyLocal) Settle(id message.ConsumerID, refs []message.CopyRef,
	how network.Settlement) {
	if f.settle != nil {
		f.settle(id, refs, how)
		return
	}
	f.Broker.Settle(id, refs, how)
}

func (f *faultyLocal) Known(from network.Asker, links []message.ConnectionID,
	keys []network.DoubtKey, done func([]bool, bool)) {
	if f.known == nil || !f.known(from.Peer, keys, done) {
		f.Broker.Known(from, links, keys, done)
	}
}

func (f *faultyLocal) Receive(m *message.Message, from network.Peer, done func(error)) {
	if f.receive != nil {
		f.receive(m, from, done)
		return
	}
	f.Broker.Receive(m, from, done)
}

func (f *faultyLocal) Wake(id message.ConsumerID) {
	if f.wake != nil {
		f.wake(id)
		return
	}
	f.Broker.Wake(id)
}

func (f *faultyLocal) InDoubt(p message.BrokerID, after message.CopyRef, limit int,
	done func([]network.Doubt)) {
	if f.inDoubt != nil {
		f.inDoubt(done)
		return
	}
	f.Broker.InDoubt(p, after, limit, done)
}

func (f *faultyLocal) Resolve(p message.BrokerID, refs []message.CopyRef,
	how network.Resolution) {
	if f.resolve != nil {
		f.resolve(p, refs, how)
		return
	}
	f.Broker.Resolve(p, refs, how)
}

func localPlant(change func(l *Life, f *faultyLocal)) *Plant {
	return &Plant{Local: func(l *Life, b *broker.Broker) bridge.Local {
		f := &faultyLocal{Broker: b}
		change(l, f)
		return f
	}}
}

func commitPlant(change func(s broker.Storage, b *store.Batch, done func(error))) *Plant {
	return &Plant{Store: func(_ *Life, s broker.Storage) broker.Storage {
		return faultyStorage{Storage: s, commit: func(b *store.Batch, done func(error)) {
			change(s, b, done)
		}}
	}}
}

// lossyEnv loses timers of a certain length.
type lossyEnv struct{ loop.Env }

func (e lossyEnv) After(d time.Duration, f func()) loop.Timer {
	if d > 5*time.Millisecond && d < 4*time.Second && e.Rand()%16 == 0 {
		f = func() {}
	}
	return e.Env.After(d, f)
}

// dropOfCancelled takes operations of a kind out of a batch that came with puts of which one was
// cancelled: there are more of them to a destination than puts.
func dropOfCancelled(b *store.Batch, kind store.OpKind) {
	more := map[store.DestID]int{}
	for _, op := range b.Ops {
		switch op.Kind {
		case kind:
			more[op.Dest]++
		case store.PutMessage:
			more[op.Dest]--
		}
	}
	for i, op := range b.Ops {
		if op.Kind == kind && more[op.Dest] > 0 {
			b.Ops[i] = store.Op{}
		}
	}
}

// receiptsAhead makes the receipts of what the store has no room for durable at once.
func receiptsAhead(_ *Life, s broker.Storage) broker.Storage {
	type place struct {
		dest store.DestID
		peer message.BrokerID
		n    uint64
	}
	ahead := map[place]bool{}
	return faultyStorage{Storage: s, commit: func(b *store.Batch, done func(error)) {
		rest, receipts := &store.Batch{Bytes: b.Bytes}, &store.Batch{}
		for _, op := range b.Ops {
			if op.Kind == store.PutReceipt {
				if ahead[place{op.Dest, op.Peer, op.Receipt.N}] {
					continue
				}
				receipts.Ops = append(receipts.Ops, op)
			}
			rest.Ops = append(rest.Ops, op)
		}
		s.Commit(rest, func(err error) {
			if message.KindOf(err) == message.Limit {
				for _, op := range receipts.Ops {
					ahead[place{op.Dest, op.Peer, op.Receipt.N}] = true
				}
				s.Commit(receipts, func(error) {})
			}
			done(err)
		})
	}}
}

// lateAcks executes what peers acknowledge once more a second later, by message id: a copy that
// came back meanwhile is deleted, as an ActiveMQ broker does.
func lateAcks(l *Life, f *faultyLocal) {
	ids := map[message.CopyRef]message.MessageID{}
	f.subscribe = func(s *network.Subscription) error {
		wrapped := *s
		wrapped.Sink = recorder{s.Sink, ids}
		return f.Broker.Subscribe(&wrapped)
	}
	f.settle = func(id message.ConsumerID, refs []message.CopyRef, how network.Settlement) {
		f.Broker.Settle(id, refs, how)
		for _, r := range refs {
			if how == network.Acked && r.Destination.Kind == message.Queue {
				l.Node.w.After(time.Second, func() {
					l.Post(func() { takeAway(f.Broker, r.Destination, ids[r]) })
				})
			}
		}
	}
}

// recorder notes the message of each copy that is forwarded.
type recorder struct {
	network.Sink
	ids map[message.CopyRef]message.MessageID
}

func (r recorder) Deliver(d network.Delivery) bool {
	r.ids[d.Ref] = d.Message.ID
	return r.Sink.Deliver(d)
}

// blind is a filter that lets everything go back.
type blind struct{ network.Filter }

func (b blind) Verdict(c network.Candidate) message.Verdict {
	v := b.Filter.Verdict(c)
	if v.Reason == message.ReplayOff {
		return message.Verdict{}
	}
	return v
}

// ghost is a connection that acknowledges what it gets, and nobody is behind it.
type ghost struct{ conn *broker.Connection }

func (*ghost) Respond(int32)        {}
func (*ghost) Send(message.Command) {}
func (*ghost) Close(string)         {}
func (*ghost) Room() bool           { return true }
func (*ghost) OnRoom(func())        {}
func (*ghost) Written() uint64      { return 1 }
func (*ghost) Cut()                 {}
func (*ghost) Finish()              {}
func (g *ghost) Deliver(c message.ConsumerID, d message.Destination, m *message.Message, _ int32) {
	g.conn.Handle(&message.MessageAck{Consumer: c, Destination: d, Type: message.StandardAck,
		Last: m.ID, HasLast: true, Count: 1})
}

// takeAway deletes a message from a queue by its id.
func takeAway(b *broker.Broker, d message.Destination, id message.MessageID) {
	g := &ghost{}
	g.conn = b.Connect(g, broker.Remote{}, nil)
	conn := message.ConnectionID("ghost " + id.String())
	g.conn.Handle(&message.ConnectionInfo{ID: conn, ClientID: string(conn)})
	g.conn.Handle(&message.SessionInfo{ID: message.SessionID{Connection: conn, Value: 1}})
	g.conn.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: conn, Session: 1},
		Destination: d, PrefetchSize: 1, Selector: "JMSMessageID='" + id.String() + "'"})
	b.EndTurn()
	g.conn.Gone()
}

// planted are the faults, with what the plan must have so that they matter, and the promise whose
// checker finds them.
var planted = []struct {
	name    string
	promise string
	plant   *Plant
	plan    func(*Plan)
	rare    bool // shown by one of some hundred seeds
}{
	{"timers get lost", "P1", &Plant{Clock: func(_ *Life, e loop.Env) loop.Env {
		return lossyEnv{e}
	}}, func(p *Plan) { p.Replay, p.Delay = true, 500*time.Millisecond }, true},
	{"a bridge's wake gets lost", "P1", localPlant(func(_ *Life, f *faultyLocal) {
		f.wake = func(message.ConsumerID) {}
	}), func(p *Plan) { p.Prefetch, p.Selector = 1000, true }, false},
	{"copies in doubt are never listed", "P1", localPlant(func(_ *Life, f *faultyLocal) {
		f.inDoubt = func(done func([]network.Doubt)) { done(nil) }
	}), func(p *Plan) { p.Cuts, p.InDoubt = true, bridge.NeverTimeout }, false},
	{"all copies in doubt count as taken", "P2", localPlant(func(_ *Life, f *faultyLocal) {
		f.resolve = func(p message.BrokerID, refs []message.CopyRef, _ network.Resolution) {
			f.Broker.Resolve(p, refs, network.WasTaken)
		}
	}), func(p *Plan) { p.Cuts = true }, false},
	{"a peer is answered before the message is stored", "P2", localPlant(
		func(_ *Life, f *faultyLocal) {
			f.receive = func(m *message.Message, from network.Peer, done func(error)) {
				f.Broker.Receive(m, from, func(error) {})
				done(nil)
			}
		}), func(p *Plan) { p.Duplex, p.Crashes, p.SlowDisks = true, true, true }, false},
	{"the disk lies about its sync", "P2", commitPlant(
		func(s broker.Storage, b *store.Batch, done func(error)) {
			s.Commit(b, func(error) {})
			done(nil)
		}), func(p *Plan) { p.Crashes, p.SlowDisks = true, true }, false},
	{"copies in doubt are offered to others", "P3", localPlant(func(_ *Life, f *faultyLocal) {
		f.settle = func(id message.ConsumerID, refs []message.CopyRef, how network.Settlement) {
			if how == network.Doubted {
				how = network.Returned
			}
			f.Broker.Settle(id, refs, how)
		}
	}), func(p *Plan) { p.Cuts, p.Hop = true, true }, false},
	{"nothing asked about is known", "P3", localPlant(func(_ *Life, f *faultyLocal) {
		f.known = func(_ message.BrokerID, keys []network.DoubtKey, done func([]bool, bool)) bool {
			done(make([]bool, len(keys)), false)
			return true
		}
	}), func(p *Plan) { p.Cuts, p.Duplex, p.Hop = true, true, true }, false},
	{"receipts are forgotten at a restart", "P3", &Plant{
		Store: func(_ *Life, s broker.Storage) broker.Storage {
			return faultyStorage{Storage: s, receipts: func(d store.DestID,
				done func(store.Receipts, error)) {
				s.Receipts(d, func(r store.Receipts, err error) {
					for i := range r.Peers {
						r.Peers[i].List = nil
					}
					done(r, err)
				})
			}}
		}}, func(p *Plan) { p.Crashes, p.Cuts, p.Hop = true, true, true }, false},
	{"a cancelled put takes its receipt along", "P3", commitPlant(
		func(s broker.Storage, b *store.Batch, done func(error)) {
			dropOfCancelled(b, store.PutReceipt)
			s.Commit(b, done)
		}), func(p *Plan) {
		p.Crashes, p.SlowDisks, p.Cuts, p.Clogs, p.Detect = true, true, true, true, 0
		p.Resend, p.Twin, p.Consumers = false, false, 5
	}, true},
	{"numbers of producers are forgotten at a restart", "P3", &Plant{
		Store: func(_ *Life, s broker.Storage) broker.Storage {
			return faultyStorage{Storage: s, receipts: func(d store.DestID,
				done func(store.Receipts, error)) {
				s.Receipts(d, func(r store.Receipts, err error) {
					r.Producers = nil
					done(r, err)
				})
			}}
		}}, func(p *Plan) { p.Crashes, p.SlowDisks, p.Resend = true, true, true }, false},
	{"acknowledgements by message id come late", "P2", localPlant(lateAcks),
		func(p *Plan) { p.Replay, p.Hop, p.Delay = true, true, 0 }, false},
	{"every third arrival is late", "P7", localPlant(func(l *Life, f *faultyLocal) {
		n := 0
		f.receive = func(m *message.Message, from network.Peer, done func(error)) {
			if n++; n%3 != 0 {
				f.Broker.Receive(m, from, done)
				return
			}
			l.Node.w.After(50*time.Millisecond, func() {
				l.Post(func() { f.Broker.Receive(m, from, done) })
			})
		}
	}), func(p *Plan) {
		*p = Plan{Seed: p.Seed, Topology: "line", Brokers: 2, Duplex: true, ActiveMQ: -1,
			TTL: 1, Prefetch: 1000, InDoubt: bridge.NeverTimeout, Queues: 1, Producers: 2,
			Messages: 60, Consumers: 1, Length: 10 * time.Second, Cuts: true, TurnEvents: 50}
	}, false},
	{"a bridge does not look at the path", "P4", localPlant(func(_ *Life, f *faultyLocal) {
		f.subscribe = func(s *network.Subscription) error {
			wrapped := *s
			wrapped.Filter = blind{s.Filter}
			return f.Broker.Subscribe(&wrapped)
		}
	}), func(p *Plan) { p.Replay, p.Hop = false, true }, false},
	{"nobody remembers after a kill what clients got", "P3", &Plant{
		Headers: func(h []store.Header) []store.Header {
			for i := range h {
				h[i].DeliveredBelow = 0
			}
			return h
		}}, func(p *Plan) { p.Crashes, p.Resend = true, false }, false},
	{"a peer hides that it was killed", "P3", ofOneRun(localPlant(func(_ *Life, f *faultyLocal) {
		f.known = func(peer message.BrokerID, keys []network.DoubtKey, done func([]bool, bool)) bool {
			f.Broker.Known(network.Asker{Peer: peer, Ours: true}, nil, keys,
				func(known []bool, _ bool) { done(known, false) })
			return true
		}
	})), func(p *Plan) {
		p.Crashes, p.SlowDisks, p.Duplex, p.Resend = true, true, true, false
		p.Locks, p.Static = false, false
	}, true},
	{"sequences are used again after a crash", "P", &Plant{
		Headers: func(h []store.Header) []store.Header {
			for i := range h {
				h[i].Reserved = h[i].Head
			}
			return h
		}}, func(p *Plan) { p.Crashes = true }, false},
}

func ofOneRun(p *Plant) *Plant {
	p.OneRun = true
	return p
}

// TestCheckersFindPlantedFaults plants one fault at a time and plays seeds until its checker
// speaks.
func TestCheckersFindPlantedFaults(t *testing.T) {
	for _, f := range planted {
		if f.rare && (raced || testing.Short()) {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= plantedSeeds; seed++ {
				p := Draw(seed)
				p.ActiveMQ, p.Ahead, p.Volatile = -1, false, false
				f.plan(&p)
				v := firstOf(Run(p, nil, f.plant).Violations, f.promise)
				if v == "" {
					continue
				}
				t.Logf("seed %d: %.150s", seed, v)
				for _, v := range Run(p, nil, nil).Violations {
					t.Errorf("seed %d without the fault: %s", seed, v)
				}
				return
			}
			t.Errorf("%d seeds do not show it (%s)", plantedSeeds, f.promise)
		})
	}
}

// firstOf gives the first violation of a promise, "" for none.
func firstOf(violations []string, promise string) string {
	for _, v := range violations {
		if strings.HasPrefix(v, promise) {
			return v
		}
	}
	return ""
}
