package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// house is a broker under a clock that the test moves, over a store in memory whose answers wait
// for turn.
type house struct {
	t      *testing.T
	b      *Broker
	now    time.Duration
	timers []*timer
	soon   []func()
	disk   *mem.Store
	spool  *mem.Store // nil: there is none
	jobs   []func()
	events []Event
	rnd    uint64
	broken int                  // so many reads fail from here on
	bad    map[store.Seq]bool   // messages that cannot be read
	lost   bool                 // some receipts cannot be read
	reads  func()               // hears of reads of receipts
	odd    message.ConnectionID // of whose producers the numbers cannot be read
	space  func() store.Space   // instead of the disk's

	committing func(*store.Batch) // sees all batches
	mono       func() time.Duration
	answers    func(f func()) // runs what a batch is answered with; nil just runs it
	unchecked  bool           // the disk is not looked through after each batch
}

type timer struct {
	at time.Duration
	f  func()
}

func (t *timer) Stop() { t.f = nil }

func (h *house) Wall() int64 { return int64(h.now/time.Millisecond) + 1_000_000 }
func (h *house) Mono() time.Duration {
	if h.mono != nil {
		return h.mono()
	}
	return h.now
}

func (h *house) Soon(f func()) { h.soon = append(h.soon, f) }
func (h *house) Rand() uint64  { h.rnd++; return h.rnd }

func (h *house) After(d time.Duration, f func()) loop.Timer {
	t := &timer{h.now + d, f}
	h.timers = append(h.timers, t)
	return t
}

func (h *house) Space() store.Space {
	if h.space != nil {
		return h.space()
	}
	return h.disk.Space()
}

func (h *house) Commit(b *store.Batch, done func(error)) {
	if h.committing != nil {
		h.committing(b)
	}
	h.jobs = append(h.jobs, func() {
		err := h.disk.Apply([]*store.Batch{b})
		if !h.unchecked {
			if err := h.disk.Check(); err != nil {
				h.t.Error(err)
			}
		}
		if h.answers != nil {
			h.answers(func() { done(err) })
			return
		}
		done(err)
	})
}

func (h *house) Page(r store.PageRequest, done func([]store.Stored, error)) {
	h.jobs = append(h.jobs, func() {
		if err := h.unreadable(); err != nil {
			done(nil, err)
			return
		}
		page, err := h.disk.Page(r)
		for i, st := range page {
			if h.bad[st.Seq] {
				page[i] = store.Stored{Seq: st.Seq, Expiration: st.Message.Expiration,
					Damage: message.Errorf(message.Corrupt, "%d is damaged", st.Seq)}
			}
		}
		done(page, err)
	})
}

func (h *house) Receipts(d store.DestID, done func(store.Receipts, error)) {
	h.jobs = append(h.jobs, func() {
		if err := h.unreadable(); err != nil {
			done(store.Receipts{}, err)
			return
		}
		if h.reads != nil {
			h.reads()
		}
		r, err := h.disk.Receipts(d)
		for i, p := range r.Producers {
			if p.Producer.Connection == h.odd {
				r.Producers[i] = store.ProducerNumbers{Producer: p.Producer,
					Damage: message.Errorf(message.Corrupt, "the numbers of %v are damaged", p.Producer)}
			}
		}
		if h.lost {
			r.Damage, r.From = message.Errorf(message.Corrupt, "receipts are damaged"), 1<<40
		}
		done(r, err)
	})
}

func (h *house) Expired(after *store.ExpiredRef, before int64, n int,
	done func([]store.ExpiredRef, error)) {
	h.jobs = append(h.jobs, func() {
		if err := h.unreadable(); err != nil {
			done(nil, err)
			return
		}
		done(h.disk.Expired(after, before, n))
	})
}

func (h *house) unreadable() error {
	if h.broken == 0 {
		return nil
	}
	h.broken--
	return message.Errorf(message.Unavailable, "the disk cannot be read")
}

// open makes a house, over the disk of an earlier one if there is one.
func open(t *testing.T, disk *mem.Store, change func(*Options)) *house {
	t.Helper()
	return openAt(t, 0, disk, change)
}

// openAt is open at a time.
func openAt(t *testing.T, now time.Duration, disk *mem.Store, change func(*Options)) *house {
	t.Helper()
	if disk == nil {
		disk = mem.New()
	}
	h := &house{t: t, now: now, disk: disk}
	headers, err := disk.Headers()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Name: "b", ID: "ID:b", Persistent: true, Advisories: true,
		Observe: func(e Event) { h.events = append(h.events, e) }}
	if change != nil {
		change(&o)
	}
	if o.NextDest, err = NextDest(disk); err != nil {
		t.Fatal(err)
	}
	if o.NextSequence, err = NextSequence(disk); err != nil {
		t.Fatal(err)
	}
	if o.PeersSeen, err = PeersSeen(disk); err != nil {
		t.Fatal(err)
	}
	h.b = New(h, h.storage(&o), headers, o)
	return h
}

// turn ends the turn and lets the store answer, until nothing more happens.
func (h *house) turn() {
	for n := 0; ; n++ {
		if n == 10_000 {
			h.t.Fatal("the broker does not come to rest")
		}
		if !h.step() {
			return
		}
	}
}

// step ends the turn and lets one thing happen that waits; false means that nothing did.
func (h *house) step() bool {
	h.b.EndTurn()
	var list *[]func()
	switch {
	case len(h.soon) > 0:
		list = &h.soon
	case len(h.jobs) > 0:
		list = &h.jobs
	default:
		return false
	}
	f := (*list)[0]
	*list = (*list)[1:]
	f()
	return true
}

func headersOf(t *testing.T, h *house) []store.Header {
	t.Helper()
	headers, err := h.disk.CrashClone(0).Headers()
	if err != nil {
		t.Fatal(err)
	}
	return headers
}

// stop ends the broker, as if nobody said anything more.
func (h *house) stop() {
	h.t.Helper()
	ended := 0
	h.b.Stop(func() {}, func() { ended++ })
	if h.pass(settleSilence + settleTick); ended != 1 {
		h.t.Fatalf("the broker ended %d times", ended)
	}
}

// pass lets time go by.
func (h *house) pass(d time.Duration) {
	end := h.now + d
	for {
		next := -1
		for i, t := range h.timers {
			if t.f != nil && t.at <= end && (next < 0 || t.at < h.timers[next].at) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := h.timers[next]
		h.timers = append(h.timers[:next], h.timers[next+1:]...)
		h.now = t.at
		t.f()
		h.turn()
	}
	h.now = end
}

// guest is one connection and what came out of it.
type guest struct {
	*Connection
	h      *house
	sent   []message.Command
	got    []message.MessageID
	data   []message.Command // of the advisories in got
	from   map[message.MessageID]message.Destination
	counts []int32            // redelivery counts of got
	heard  []*message.Message // advisories
	closed string
	gone   bool
	number int32
	held   bool // is not read
	full   bool // does not read
	ended  bool // has read the end
	stays  bool // and does not close then
	cut    bool
	unsent uint64
	looked int // how often it was asked what was written
	onCut  func()
	onRoom func()
}

// Hold implements Holder.
func (g *guest) Hold(on bool) { g.held = on }

func (g *guest) Deliver(_ message.ConsumerID, d message.Destination, m *message.Message,
	n int32) {
	if g.cut {
		return
	}
	g.got = append(g.got, m.ID)
	if m.Data != nil {
		g.data = append(g.data, m.Data)
	}
	if m.Type == "Advisory" {
		g.heard = append(g.heard, m)
	}
	g.counts = append(g.counts, n)
	if g.from == nil {
		g.from = map[message.MessageID]message.Destination{}
	}
	g.from[m.ID] = d
}
func (g *guest) Room() bool      { return !g.full }
func (g *guest) OnRoom(f func()) { g.onRoom = f }
func (g *guest) Written() uint64 { g.looked++; return uint64(len(g.got)) - g.unsent }
func (g *guest) Cut() {
	g.cut = true
	if g.onCut != nil {
		g.onCut()
	}
}
func (g *guest) Respond(id int32) {
	if g.ended {
		return
	}
	g.sent = append(g.sent, &message.Response{Correlation: id})
}
func (g *guest) Send(c message.Command) {
	if !g.ended {
		g.sent = append(g.sent, c)
	}
}
func (g *guest) Close(why string) { g.closed, g.gone = why, true }

// Finish reads the end, and closes at once unless the guest stays.
func (g *guest) Finish() {
	if g.ended {
		return
	}
	g.ended = true
	if !g.stays {
		g.h.Soon(func() { g.gone = true; g.Gone() })
	}
}

// connect opens a connection; peer makes it a bridge's.
func (h *house) connect(id, clientID, user string, peer *message.BrokerInfo) *guest {
	g := &guest{h: h}
	level := 0
	if peer != nil {
		level = 1
	}
	g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: level}, nil)
	if peer != nil {
		g.do(peer)
	}
	g.do(&message.ConnectionInfo{ID: message.ConnectionID(id), ClientID: clientID, UserName: user})
	g.do(&message.SessionInfo{ID: message.SessionID{Connection: g.cid(id), Value: 1}})
	return g
}

func (g *guest) cid(id string) message.ConnectionID { return message.ConnectionID(id) }

// do executes a command and gives the exception it was answered with.
func (g *guest) do(c message.Command) *message.Throwable {
	g.h.t.Helper()
	n := g.hand(c)
	g.h.turn()
	r := g.answer(n)
	if r == nil {
		g.h.t.Fatalf("%T is not answered", c)
	}
	return r.Exception
}

// tell executes a command whose answer does not come yet: it waits, or the broker does.
func (g *guest) tell(c message.Command) {
	g.h.t.Helper()
	n := g.hand(c)
	g.h.turn()
	if r := g.answer(n); r != nil {
		g.h.t.Fatalf("%T is answered (%v), and was to wait", c, r.Exception)
	}
}

// hand gives a command to the broker, as one that wants an answer, and tells its number.
func (g *guest) hand(c message.Command) int32 {
	g.number++
	c.Head().CommandID, c.Head().ResponseRequired = g.number, true
	g.Handle(c)
	return g.number
}

// answer gives what came of the command with that number; nil when it was not answered.
func (g *guest) answer(n int32) *message.Response {
	for _, s := range g.sent {
		if r, ok := s.(*message.Response); ok && r.Correlation == n {
			return r
		}
	}
	return nil
}

func (g *guest) consume(id string, d message.Destination) message.ConsumerID {
	c := message.ConsumerID{Connection: g.cid(id), Session: 1, Value: int64(g.number)}
	if e := g.do(&message.ConsumerInfo{ID: c, Destination: d, PrefetchSize: 1000}); e != nil {
		g.h.t.Fatal(e)
	}
	return c
}

// produce sends message number n of the guest's producer.
func (g *guest) produce(id string, d message.Destination, n int64,
	path ...message.BrokerID) *message.Throwable {
	p := message.ProducerID{Connection: g.cid(id), Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	return g.do(&message.Message{Producer: p, Destination: d, Persistent: true, BrokerPath: path,
		ID: message.MessageID{Producer: p, Sequence: n}, Content: fmt.Append(nil, n)})
}
