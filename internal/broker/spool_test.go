package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// wantSpool stands in Options for a spool in memory, which the house makes.
type wantSpool struct{ SpoolStorage }

// storage gives what the broker's storage is: the house, or that with a spool over it.
func (h *house) storage(o *Options) Storage {
	if _, wanted := o.Spool.(wantSpool); !wanted {
		return h
	}
	h.spool = mem.New()
	overlay := store.NewOverlay(h, second{h})
	o.Spool = overlay.Spool()
	return overlay
}

// second is the spool of a house, whose answers wait as those of its disk do.
type second struct{ *house }

func (s second) Space() store.Space { return s.spool.Space() }

func (s second) Commit(b *store.Batch, done func(error)) {
	s.jobs = append(s.jobs, func() {
		err := s.spool.Apply([]*store.Batch{b})
		if !s.unchecked {
			if err := s.spool.Check(); err != nil {
				s.t.Error(err)
			}
		}
		done(err)
	})
}

func (s second) Page(r store.PageRequest, done func([]store.Stored, error)) {
	s.jobs = append(s.jobs, func() {
		if err := s.unreadable(); err != nil {
			done(nil, err)
			return
		}
		done(s.spool.Page(r))
	})
}

func (s second) Expired(after *store.ExpiredRef, before int64, n int,
	done func([]store.ExpiredRef, error)) {
	s.jobs = append(s.jobs, func() { done(s.spool.Expired(after, before, n)) })
}

// spooling has 1 MiB for messages, and a spool.
func spooling(o *Options) {
	limited(o)
	o.Spool = wantSpool{}
}

// burst sends messages from..to to a queue, every n-th of them persistent, and wants answers.
func (h *house) burst(d message.Destination, from, to, n int64) {
	h.t.Helper()
	p := h.connect("burst", "burst", "", nil)
	for i := from; i <= to; i++ {
		if e := p.do(p.big("burst", d, i, 10_000, n > 0 && i%n == 0)); e != nil {
			h.t.Fatal(e)
		}
	}
	p.Gone()
	h.turn()
}

// drains has a consumer take what there is, and gives the numbers; one that is away again then.
func (h *house) drains(d message.Destination) string {
	h.t.Helper()
	r := &reader{guest: h.connect("drain", "drain", "", nil)}
	r.id = r.consume("drain", d)
	all := ""
	for len(r.got) > 0 {
		all += " " + r.bodies()
		got := r.got
		r.got = nil
		for _, id := range got {
			r.ack(r.id, d, id, message.IndividualAck, message.TransactionID{})
		}
	}
	r.leave()
	return strings.TrimSpace(all)
}

// drainsAll drains a queue and fails unless that is what came, and nothing is left.
func (h *house) drainsAll(d message.Destination, want, what string) {
	h.t.Helper()
	if got := h.drains(d); got != want {
		h.t.Errorf("%s: got %s", what, got)
	}
	h.holdsNothing()
}

// holdsNothing fails unless nothing is left, in memory, in the spool or in the books of it.
func (h *house) holdsNothing() {
	h.t.Helper()
	if err := h.nothing(); err != nil {
		h.t.Error(err)
	}
}

func (h *house) nothing() error {
	h.turn()
	s := &h.b.spool
	if used := h.spool.Space().UsedBytes; used != 0 || s.count != 0 || s.bytes != 0 ||
		h.b.memory.Used() != 0 {
		return fmt.Errorf("%d bytes are in the spool, which counts %d messages of %d bytes; %d are in"+
			" memory", used, s.count, s.bytes, h.b.memory.Used())
	}
	return h.balance()
}

// Without a spool sends wait at the memory limit; with one they go on until that is full.
func TestABurstIsSpooled(t *testing.T) {
	for _, every := range []int64{0, 1, 2, 7, 150} {
		h, q := open(t, nil, spooling), queueNamed("q")
		h.burst(q, 1, 400, every)
		if used := h.b.memory.Used(); used > 1<<20 || h.b.find(q).queue.Len() != 400 {
			t.Errorf("every %d: %d bytes are in memory, %d messages in the queue", every, used,
				h.b.find(q).queue.Len())
		}
		if x := h.b.Status().Spool; every != 1 && (x.Count < 100 || x.Bytes < 100*10_000 ||
			x.Total < x.Count || x.DiskBytes == 0 || x.Full) {
			t.Errorf("every %d: of the spool it is told %+v", every, x)
		}
		x := h.explain(q)
		if n := h.b.find(q).queue.SpooledOnly(); x.Spooled != n || every != 1 && n < 100 {
			t.Errorf("every %d: explained as %+v, %d are in the spool alone", every, x, n)
		}
		h.drainsAll(q, numbered(1, 400, 0, 0), fmt.Sprintf("every %d", every))
	}
}

func TestWhatMayNotBeIsNotSpooled(t *testing.T) {
	temp := message.Destination{Kind: message.TempQueue, Name: "ID:burst:1"}
	vm, vmTopic, limited := policy.NewEntry(), policy.NewEntry(), policy.NewEntry()
	vm.Destination, vm.Cursors.Queue = queueNamed("vm"), policy.CursorVM
	vmTopic.Destination, vmTopic.Cursors.Subscriber = topicNamed("vm"), policy.CursorVM
	limited.Destination = topicNamed("limited") // by the number of messages
	limited.PendingLimit = policy.PendingLimit{Kind: policy.PendingConstant, Limit: 1000}
	for _, d := range []message.Destination{temp, vm.Destination, vmTopic.Destination,
		limited.Destination} {
		h := open(t, nil, func(o *Options) {
			spooling(o)
			o.Policies = &policy.Map{Entries: []*policy.Entry{vm, vmTopic, limited}}
		})
		owner := h.connect("ID:burst", "o", "", nil)
		if d == temp {
			owner.do(&message.DestinationInfo{Connection: "ID:burst", Destination: d})
		}
		owner.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "ID:burst", Session: 1},
			Destination: d, PrefetchSize: 1})
		p := h.connect("p", "p", "", nil)
		for i := range int64(300) {
			p.Handle(p.big("p", d, i+1, 10_000, false))
		}
		h.turn()
		if n := h.b.find(d).parkedCount(); n == 0 || h.b.spool.total != 0 {
			t.Errorf("%s: %d sends wait, %d were spooled", d, n, h.b.spool.total)
		}
		if r := h.b.find(d).lack[0]; r != message.MemoryFull {
			t.Errorf("%s: sends wait for %s", d, r)
		}
	}
}

// A queue near its own limit is spooled, whatever room the broker has; its durable messages leave
// memory before. Without flow control its limit is nothing else.
func TestAQueueNearItsOwnLimitIsSpooled(t *testing.T) {
	for _, every := range []int64{0, 2} {
		for _, control := range []bool{false, true} {
			h, q := open(t, nil, func(o *Options) {
				e := policy.NewEntry()
				e.Memory.LimitBytes, e.Memory.ProducerFlowControl = 500_000, control
				e.Memory.CursorHighWaterPercent = 40
				o.Policies, o.Spool = &policy.Map{Default: e}, wantSpool{}
			}), queueNamed("q")
			h.burst(q, 1, 400, every)
			if used := h.b.find(q).usage.Used(); used > 220_000 || h.b.spool.total == 0 {
				t.Errorf("every %d, flow control %v: %d bytes are in memory, %d were spooled", every,
					control, used, h.b.spool.total)
			}
			h.drainsAll(q, numbered(1, 400, 0, 0), fmt.Sprintf("every %d, flow control %v", every, control))
		}
	}
}

// park sends messages from..to until some wait, and gives the guest.
func (h *house) park(d message.Destination, from, to int64) *guest {
	h.t.Helper()
	p := h.connect("parks", "parks", "", nil)
	for i := from; i <= to; i++ {
		p.Handle(p.big("parks", d, i, 10_000, false))
	}
	h.turn()
	if h.b.find(d).parkedCount() == 0 {
		h.t.Fatal("no send waits")
	}
	return p
}

// When the spool is full memory fills, and sends wait with that reason; they go on when there is
// room, in order.
func TestSendsWaitWhileTheSpoolIsFull(t *testing.T) {
	releases := map[string]string{"the disk": "room on the disk", "tempUsage": "larger tempUsage"}
	for name, full := range map[string]func(h *house, on bool){
		"the disk": func(h *house, on bool) {
			h.spool.SetCapacity(0, 0)
			if on {
				h.spool.SetCapacity(1_000_000, 300_000)
			}
		},
		"tempUsage": func(h *house, on bool) {
			h.b.opt.TempLimitBytes = 0
			if on {
				h.b.opt.TempLimitBytes = 700_000
			}
		},
		"it refuses": func(h *house, on bool) {
			h.spool.SetFault(func([]*store.Batch) error {
				if !on {
					return nil
				}
				return message.Errorf(message.Limit, "no room")
			})
		},
	} {
		h, q := open(t, nil, spooling), queueNamed("q")
		full(h, true)
		h.park(q, 1, 500)
		h.pass(3 * time.Second)
		d := h.b.find(q)
		if d.lack[0] != message.TempFull || d.parkedCount() == 0 {
			t.Errorf("%s: %d sends wait for %s", name, d.parkedCount(), d.lack[0])
		}
		x := h.explain(q)
		if !slices.ContainsFunc(x.Rows, func(r ExplainRow) bool {
			return r.Reason == message.TempFull && strings.Contains(r.Releases, releases[name])
		}) || !h.b.Status().Spool.Full {
			t.Errorf("%s: explained as %+v", name, x.Rows)
		}
		if n := h.toldOfParked(q, message.TempFull); n != 1 {
			t.Errorf("%s: it is told %d times that they wait for the spool", name, n)
		}
		full(h, false)
		h.pass(3 * time.Second)
		if n := d.parkedCount(); n != 0 {
			t.Errorf("%s: %d sends wait when there is room", name, n)
		}
		h.drainsAll(q, numbered(1, 500, 0, 0), name)
	}
}

// Consumers make room while the spool takes nothing: what they end is deleted there, too.
func TestAFullSpoolIsDrained(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	h.spool.SetCapacity(1_500_000, 300_000)
	h.park(q, 1, 400)
	if got := h.drains(q); got != numbered(1, 400, 0, 0) {
		t.Errorf("got %s", got)
	}
	h.pass(2 * time.Second)
	h.holdsNothing()
}

func TestASendIsRefusedWhenTheSpoolIsFull(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		h, q := open(t, nil, func(o *Options) {
			spooling(o)
			o.SendFailIfNoSpace, o.SendFailIfNoSpaceAfter = after == 0, after
		}), queueNamed("q")
		h.spool.SetCapacity(1, 300_000)
		p := h.connect("p", "p", "", nil)
		var e *message.Throwable
		for i := int64(1); i <= 300 && e == nil; i++ {
			n := p.hand(p.big("p", q, i, 10_000, false))
			h.turn()
			if r := p.answer(n); r == nil {
				h.pass(2 * time.Second)
			}
			e = p.answer(n).Exception
		}
		how := "Limit reached"
		if after > 0 {
			how = "Limit Wait Timeout"
		}
		if e == nil || !strings.HasPrefix(e.Message, "Usage Manager Temp Store "+how+
			". Stopping producer (") || h.b.counts.Reasons[message.TempFull] != 1 {
			t.Errorf("refused with %v, counted %v", e, h.b.counts.Reasons)
		}
	}
}

// under sends until a batch is on its way to the spool, and leaves it there.
func (h *house) under(d message.Destination) *guest {
	h.t.Helper()
	p := h.connect("under", "under", "", nil)
	for i := int64(1); h.b.spool.batch == nil; i++ {
		if i > 200 {
			h.t.Fatal("nothing is spooled")
		}
		p.hand(p.big("under", d, i, 10_000, false))
		h.b.EndTurn()
		for h.b.spool.batch == nil && h.step() {
		}
	}
	return p
}

// What is consumed while it is on its way to the spool is deleted there when it has come.
func TestACopyMayEndOnItsWayToTheSpool(t *testing.T) {
	for _, refused := range []bool{false, true} {
		h, q := open(t, nil, spooling), queueNamed("q")
		h.under(q)
		d := h.b.find(q)
		var ended []*queue.Copy
		d.queue.EachPending(func(c *queue.Copy) bool { ended = append(ended, c); return true })
		if refused {
			h.spool.SetCapacity(1, 1000)
		}
		for _, c := range ended {
			h.b.consume(d, c)
		}
		h.b.EndTurn()
		h.turn()
		h.spool.SetCapacity(0, 0)
		h.pass(2 * time.Second)
		h.holdsNothing()
	}
}

// toldOfParked counts the events of sends that wait for a reason.
func (h *house) toldOfParked(d message.Destination, r message.Reason) (n int) {
	for _, e := range h.events {
		if e.Kind == SendParked && e.Dest == d && e.Reason == r {
			n++
		}
	}
	return n
}
