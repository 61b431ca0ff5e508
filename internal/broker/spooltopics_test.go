package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// listener is a consumer of topics that takes its time.
type listener struct {
	*reader
	name     string
	topics   string
	durable  bool
	from, to int // it began somewhere between these of what was published
	took     []int64
}

// theatre is a machine of two topics with a spool: every listener hears all that is published while
// it is there, in order and once; a durable one also what is published while it is away. What is
// published is what a witness gets, which never has too little room.
type theatre struct {
	*house
	p         *guest
	sent      int64
	witness   *guest
	expires   map[int64]bool
	listeners []*listener
	away      []*listener
	ids       int
}

// published gives what was published to the topics.
func (x *theatre) published(topics string) (n []int64) {
	for _, id := range x.witness.got {
		if topics == ">" || strings.Contains(topics, x.witness.from[id].Name) {
			n = append(n, id.Sequence)
		}
	}
	return n
}

func (x *theatre) send(t *rapid.T) {
	d := topicNamed(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "topic"))
	for range rapid.SampledFrom([]int{1, 10, 60, 200}).Draw(t, "n") {
		x.sent++
		m := x.p.big("p", d, x.sent, rapid.IntRange(0, 3000).Draw(t, "size"),
			rapid.IntRange(0, 3).Draw(t, "persistent") == 0)
		if rapid.IntRange(0, 5).Draw(t, "expires") == 0 {
			m.Expiration = x.Wall() + 20_000
			x.expires[x.sent] = true
		}
		x.p.Handle(m)
	}
}

func (x *theatre) comes(l *listener, prefetch int32) {
	l.reader = &reader{guest: x.connect(l.name, l.name, "", nil)}
	name := ""
	if l.durable {
		name = "durable"
	}
	if e := l.subscribe(name, l.topics, func(i *message.ConsumerInfo) {
		i.PrefetchSize = prefetch
	}); e != nil {
		x.t.Fatal(e)
	}
	x.listeners = append(x.listeners, l)
}

func (x *theatre) opens(t *rapid.T) {
	x.ids++
	l := &listener{name: fmt.Sprint("l", x.ids), durable: rapid.IntRange(0, 3).Draw(t, "durable") == 0,
		topics: rapid.SampledFrom([]string{"A", "B", "A,topic://B", ">"}).Draw(t, "topics")}
	if l.durable && l.topics == ">" {
		l.topics = "A"
	}
	l.from = len(x.published(l.topics))
	x.comes(l, rapid.SampledFrom([]int32{1, 10, 100}).Draw(t, "prefetch"))
	l.to = len(x.published(l.topics))
}

func (x *theatre) acks(t interface{ Errorf(string, ...any) }, l *listener, n int) {
	for ; n > 0 && len(l.got) > 0; n-- {
		id := l.got[0]
		l.got = l.got[1:]
		l.took = append(l.took, id.Sequence)
		l.do(&message.MessageAck{Consumer: l.id, Destination: l.reader.from[id], Last: id, HasLast: true,
			Count: 1, Type: message.StandardAck})
	}
	if why := x.wrong(l); why != "" {
		t.Errorf("%s of %s: %s", l.name, l.topics, why)
	}
}

// wrong tells what is wrong with what a listener heard so far.
func (x *theatre) wrong(l *listener) string {
	all := x.published(l.topics)
	for first := l.from; first <= l.to; first++ {
		if x.follows(l, all[first:]) {
			return ""
		}
	}
	return fmt.Sprintf("it heard %s of %s", spans(l.took), spans(all[l.from:]))
}

// spans writes numbers in few words.
func spans(list []int64) string {
	var out []string
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j] == list[j-1]+1 {
			j++
		}
		out = append(out, fmt.Sprintf("%d-%d", list[i], list[j-1]))
		i = j
	}
	return strings.Join(out, " ")
}

// follows reports whether a listener heard all in order, from the first on, but for what expired;
// and for what was dropped as it was away while there was no room for it.
func (x *theatre) follows(l *listener, all []int64) bool {
	for _, n := range l.took {
		for len(all) > 0 && all[0] != n && (x.expires[all[0]] || x.dropped(l)) {
			all = all[1:]
		}
		if len(all) == 0 || all[0] != n {
			return false
		}
		all = all[1:]
	}
	return true
}

func (x *theatre) dropped(l *listener) bool {
	return l.durable && x.b.counts.Reasons[message.MemoryFull] > 0
}

func (x *theatre) one(t *rapid.T, list []*listener) *listener {
	if len(list) == 0 {
		return nil
	}
	return rapid.SampledFrom(list).Draw(t, "listener")
}

func TestListenersHearAllThatIsSpooledInOrder(t1 *testing.T) {
	used := int64(0)
	rapid.Check(t1, func(t *rapid.T) {
		x := &theatre{expires: map[int64]bool{}, house: open(t1, nil, func(o *Options) {
			o.Spool, o.MemoryLimitBytes = wantSpool{}, 100_000
			e := policy.NewEntry()
			e.Memory.LimitBytes = rapid.SampledFrom([]int64{0, 0, 20_000, 90_000}).Draw(t, "limit")
			kept := policy.NewEntry()
			kept.Destination = topicNamed("B")
			kept.Cursors.Subscriber = rapid.SampledFrom([]policy.CursorKind{policy.CursorStore,
				policy.CursorStore, policy.CursorVM}).Draw(t, "B")
			o.Policies = &policy.Map{Default: e, Entries: []*policy.Entry{kept}}
		})}
		x.p = x.connect("p", "p", "", nil)
		w := &reader{guest: x.connect("w", "w", "", nil)}
		if e := w.subscribe("", "A,topic://B", func(i *message.ConsumerInfo) {
			i.PrefetchSize = 1_000_000
		}); e != nil {
			t1.Fatal(e)
		}
		x.witness = w.guest
		t.Repeat(x.actions())
		x.ends(t)
		used += x.b.spool.total
	})
	if t1.Logf("%d messages were spooled", used); used == 0 && !testing.Short() {
		t1.Error("nothing was ever spooled")
	}
}

func (x *theatre) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"send": x.send, "send again": x.send, "opens": x.opens,
		"goes": func(t *rapid.T) {
			l := x.one(t, x.listeners)
			if l == nil {
				return
			}
			drop(&x.listeners, l)
			l.leave()
			if l.durable {
				x.away = append(x.away, l)
			}
		},
		"comes back": func(t *rapid.T) {
			if l := x.one(t, x.away); l != nil {
				drop(&x.away, l)
				x.comes(l, 10)
			}
		},
		"ack": func(t *rapid.T) {
			if l := x.one(t, x.listeners); l != nil {
				x.acks(t, l, rapid.IntRange(1, 30).Draw(t, "acks"))
			}
		},
	}
	maps.Copy(actions, x.spoolFaults())
	return actions
}

// ends frees all, has every listener hear what is left, and looks at what became of everything.
func (x *theatre) ends(t *rapid.T) {
	x.freeSpool()
	x.broken = 0
	for _, l := range slices.Clone(x.away) {
		x.comes(l, 100)
	}
	x.pass(5 * time.Second)
	x.turn()
	for again := true; again; {
		again = false
		for _, l := range x.listeners {
			again = again || len(l.got) > 0
			x.acks(t, l, len(l.got))
			x.turn()
		}
	}
	for _, l := range x.listeners {
		if missing := slices.DeleteFunc(x.published(l.topics)[l.to:], func(n int64) bool {
			return x.expires[n] || slices.Contains(l.took, n)
		}); len(missing) > 0 && !x.dropped(l) {
			t.Errorf("%s of %s did not hear %s", l.name, l.topics, spans(missing))
		}
		l.do(&message.RemoveInfo{Object: l.id, LastDelivered: message.LastDeliveredUnset})
		if l.durable {
			l.do(&message.RemoveSubscriptionInfo{Connection: l.Connection.id, ClientID: l.name,
				SubscriptionName: "durable"})
		}
		l.Gone()
	}
	x.pass(40 * time.Second)
	if d := x.b.find(queueNamed("ActiveMQ.DLQ")); d != nil {
		x.drains(d.name)
	}
	if err := x.nothing(); err != nil {
		t.Error(err)
	}
}

// slowly opens a consumer of the topic t with a prefetch, and publishes from..to of 10,000 bytes.
func (h *house) slowly(prefetch int32, to int64) *reader {
	h.t.Helper()
	r := &reader{guest: h.connect("r", "r", "", nil)}
	if e := r.subscribe("", "t", func(i *message.ConsumerInfo) {
		i.PrefetchSize = prefetch
	}); e != nil {
		h.t.Fatal(e)
	}
	h.burst(topicNamed("t"), 1, to, 0)
	return r
}

// A slow consumer of a topic holds no producer while there is room in the spool; explain counts
// what is there.
func TestASlowConsumerHoldsNoProducerOfATopic(t *testing.T) {
	h := open(t, nil, spooling)
	r := h.slowly(1, 400)
	if used := h.b.memory.Used(); used > 1<<20 || h.b.find(topicNamed("t")).parkedCount() != 0 {
		t.Errorf("%d bytes are in memory", used)
	}
	x := h.explain(topicNamed("t"))
	if len(x.Rows) != 1 || x.Rows[0].Count != 399 || x.Spooled < 100 ||
		x.Rows[0].Oldest.ID.Sequence != 2 {
		t.Errorf("explained as %+v", x)
	}
	for n := 0; len(r.got) > n; h.turn() {
		n++
		r.acksFirst(r.id, topicNamed("t"))
	}
	if len(r.got) != 400 {
		t.Errorf("%d came", len(r.got))
	}
	h.holdsNothing()
	r.Gone()
	h.holdsNothing()
}

// At the limit of a topic of its own its producers wait, as with ActiveMQ: for memory, whatever the
// spool has room for.
func TestATopicHoldsItsProducersAtItsOwnLimit(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		spooling(o)
		e := policy.NewEntry()
		e.Memory.LimitBytes = 500_000
		o.Policies = &policy.Map{Default: e}
	})
	r := &reader{guest: h.connect("r", "r", "", nil)}
	if e := r.subscribe("", "t", func(i *message.ConsumerInfo) { i.PrefetchSize = 1 }); e != nil {
		t.Fatal(e)
	}
	for _, full := range []bool{false, true} {
		if full {
			h.spool.SetCapacity(1, 1)
		}
		h.park(topicNamed("t"), 1, 100)
		if d := h.b.find(topicNamed("t")); d.lack[0] != message.MemoryFull || h.b.spool.total != 0 {
			t.Errorf("sends wait for %s; %d were spooled", d.lack[0], h.b.spool.total)
		}
	}
}

// What is pulled waits for the page that has it: no pull is answered with nothing while something
// is in the spool.
func TestAPullWaitsForWhatIsSpooled(t *testing.T) {
	h := open(t, nil, spooling)
	r := h.slowly(0, 400)
	waited := 0
	for n := 1; n <= 400; n++ {
		r.Handle(&message.MessagePull{Consumer: r.id, Destination: topicNamed("t"), Timeout: -1})
		if len(r.got) < n { // nothing was read since the last one
			waited++
			h.turn()
		}
		if len(r.got) != n || r.got[n-1].Sequence != int64(n) || r.emptyAnswers() != 0 {
			t.Fatalf("pull %d: %d came, and %d empty answers", n, len(r.got), r.emptyAnswers())
		}
	}
	if waited == 0 {
		t.Error("no pull waited")
	}
	r.Handle(&message.MessagePull{Consumer: r.id, Destination: topicNamed("t"), Timeout: -1})
	if h.turn(); r.emptyAnswers() != 1 {
		t.Errorf("%d answers say that there is nothing", r.emptyAnswers())
	}
	r.Gone()
	h.holdsNothing()
}

// What cannot be read is lost and counted, and what is behind it comes.
func TestDamageOfWhatWaitsForAListener(t *testing.T) {
	h := open(t, nil, spooling)
	r := h.slowly(1, 400)
	q := h.b.spool.backlogs[0]
	h.spool.Damage(q.dest.id, q.first+300, q.first+320)
	h.unchecked = true
	for n := 0; len(r.got) > n; h.turn() {
		n = len(r.got)
		r.acksFirst(r.id, topicNamed("t"))
	}
	if len(r.got) != 380 || h.b.counts.Reasons[message.Unreadable] != 20 {
		t.Errorf("%d came, %d are told as lost", len(r.got), h.b.counts.Reasons[message.Unreadable])
	}
	r.Gone()
	h.unchecked = false
	h.holdsNothing()
}

// A bridge's subscription to a topic is no other: what waits for it is spooled, and what its end
// takes with it is counted.
func TestWhatWaitsForABridgeIsSpooled(t *testing.T) {
	h, tp := open(t, nil, spooling), topicNamed("t")
	e := &bridgeEnd{}
	id := message.ConsumerID{Connection: "n", Value: 1}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: tp, PrefetchSize: 2}}); err != nil {
		t.Fatal(err)
	}
	h.burst(tp, 1, 400, 0)
	if h.b.spool.total < 100 {
		t.Errorf("%d were spooled", h.b.spool.total)
	}
	for i := range 300 {
		h.b.Settle(id, e.got[i:i+1], network.Acked)
		h.turn()
	}
	h.b.Unsubscribe(id)
	if n := h.b.find(tp).counts.Forwarded; n != 300 {
		t.Errorf("%d were forwarded", n)
	}
	h.dropped(message.BridgeDown, 100)
	h.holdsNothing()
}

// A pull that waits for a page of which nothing can be read is answered with nothing.
func TestAPullIsAnsweredWhenWhatIsSpooledIsLost(t *testing.T) {
	h := open(t, nil, spooling)
	r := h.slowly(0, 400)
	q := h.b.spool.backlogs[0]
	h.b.spool.target, h.b.spool.next = 1, 0
	if h.turn(); q.tail.len() > 0 || q.records == 0 {
		t.Fatalf("%d in the spool, %d behind", q.records, q.tail.len())
	}
	h.spool.Damage(q.dest.id, q.first, q.end)
	h.unchecked = true
	for n := 1; r.emptyAnswers() == 0; n++ {
		r.Handle(&message.MessagePull{Consumer: r.id, Destination: topicNamed("t"), Timeout: -1})
		if len(r.got) == n {
			continue // and a page is on its way, when that was the last one in memory
		}
		if h.turn(); len(r.got)+r.emptyAnswers() != n {
			t.Fatalf("pull %d: %d came, %d empty answers", n, len(r.got), r.emptyAnswers())
		}
	}
	r.Gone()
	h.unchecked = false
	h.holdsNothing()
}

// emptyAnswers is how many pulls were answered with nothing.
func (g *guest) emptyAnswers() (n int) {
	for _, x := range g.sent {
		if d, ok := x.(*message.MessageDispatch); ok && d.Message == nil {
			n++
		}
	}
	return n
}

// What a durable subscription has in the spool goes with it; and it is spooled at the limit that a
// policy gives it, too.
func TestADurableSubscriptionEndsWithWhatIsSpooled(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.Spool = wantSpool{}
		e := policy.NewEntry()
		e.Memory.LimitBytes = 500_000
		o.Policies = &policy.Map{Default: e}
	})
	r := h.subscribe("c", "n", "t", nil)
	r.leave()
	h.burst(topicNamed("t"), 1, 400, 0)
	if used := h.b.memory.Used(); used > 500_000 || h.b.spool.count < 300 {
		t.Errorf("%d bytes are in memory, %d messages in the spool", used, h.b.spool.count)
	}
	g := h.connect("c", "c", "", nil)
	if e := g.do(&message.RemoveSubscriptionInfo{Connection: "c", ClientID: "c",
		SubscriptionName: "n"}); e != nil {
		t.Fatal(e)
	}
	h.holdsNothing()
}

// A durable subscription keeps what is not persistent while it is away, though memory is full.
func TestWhatADurableSubscriptionKeepsIsSpooled(t *testing.T) {
	h := open(t, nil, spooling)
	h.subscribe("c", "n", "t", nil).leave()
	h.burst(topicNamed("t"), 1, 400, 3)
	if n := h.b.counts.Reasons[message.MemoryFull]; n != 0 {
		t.Errorf("%d were dropped", n)
	}
	r := h.subscribe("c", "n", "t", nil)
	for n := 0; n < len(r.got); n++ {
		if r.got[n].Sequence != int64(n+1) {
			t.Fatalf("behind %d comes %s", n, r.got[n])
		}
		r.do(&message.MessageAck{Consumer: r.id, Destination: topicNamed("t"), Last: r.got[n],
			HasLast: true, Count: 1, Type: message.StandardAck})
		h.turn()
	}
	if len(r.got) != 400 {
		t.Errorf("%d came", len(r.got))
	}
	r.leave()
	h.holdsNothing()
}
