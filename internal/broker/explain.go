package broker

import (
	"sort"
	"strings"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/plural"
)

// Explanation says why the messages of a queue, or of a topic's durable subscriptions, are where
// they are.
type Explanation struct {
	Status DestinationStatus
	Rows   []ExplainRow // by number of messages, the most first
	// Stored is how many messages wait in the store alone and are in no row. Of all messages, only
	// those in memory are looked at; one that is asked for is looked for in the store, too, and the
	// others do not count.
	Stored       int64
	StoredOldest Oldest
	Spooled      int64  // messages that wait in the spool alone, whether in a row or not
	Found        bool   // the message asked for is here
	Remark       string // about the destination as a whole; "" for nothing
	// Refused is what users were refused here, which holds no message that is here.
	Refused []Refusal
}

// ExplainRow is one reason that holds for a number of messages.
type ExplainRow struct {
	Reason   message.Reason
	Who      string // the subscription that refuses, or who has the message
	Address  string // of a client's consumer; "" for all others
	Selector string // likewise
	Count    int64
	Oldest   Oldest // of them; without an ID, all came before that
	Releases string // what would release them
	Remark   string // what the subscription has to say about it, or what holds memory; "" for nothing

	last *queue.Copy // counted; a bridge may have several subscriptions
}

// explainSlice is how many copies one slice of an explanation looks at.
const explainSlice = 1000

// Explain looks at every message that is in memory of a queue, or of a topic's durable
// subscriptions, or at one, and tells what holds it. It works in slices and reads the store by
// pages; done is called when it is through, with nil when there is no such destination or it was
// removed meanwhile.
func (b *Broker) Explain(name message.Destination, id *message.MessageID,
	done func(*Explanation)) {
	d := b.find(name)
	if d == nil {
		done(b.explainAbsent(name, id))
		return
	}
	e := &explainer{b: b, now: b.env.Mono(), named: d, id: id, done: done,
		rows: map[rowKey]*ExplainRow{}}
	if d.queue != nil {
		e.todo = []*destination{d}
	}
	for _, h := range d.shares {
		e.todo = append(e.todo, h.sub.dest)
	}
	e.begin()
}

// explainAbsent explains a destination that is not there: nil when nothing is known of it.
func (b *Broker) explainAbsent(name message.Destination, id *message.MessageID) *Explanation {
	x := b.replies.explain(name, id, b.env.Mono())
	if id != nil {
		return x
	}
	refused := b.denials.of(name, b.env.Mono())
	if x == nil && len(refused) > 0 {
		x = &Explanation{Status: DestinationStatus{Name: name}}
	}
	if x != nil {
		x.Refused = refused
	}
	return x
}

type rowKey struct {
	reason message.Reason
	who    string
}

type explainer struct {
	b       *Broker
	now     time.Duration  // since when ages are told: one for all, as they are compared
	named   *destination   // what was asked about
	todo    []*destination // the queues that are left
	d       *destination   // the queue that is looked at
	id      *message.MessageID
	next    uint64 // sequence to go on with
	rows    map[rowKey]*ExplainRow
	found   bool
	stored  int64
	oldest  Oldest      // of stored
	spooled int64       // messages in the spool alone
	view    *queue.View // of what is in the store alone
	first   *queue.Copy // of the queue, in the store alone
	unread  bool        // a page could not be read
	kept    []keptCopy  // what prepared branches keep of it, while a message is looked for
	blind   int64       // messages that cannot be read, while a message is looked for
	done    func(*Explanation)
	// foundFor is for whom of a topic the message asked for waits in memory.
	foundFor any
}

// begin goes on with the next queue.
func (e *explainer) begin() {
	if len(e.todo) == 0 {
		e.finish()
		return
	}
	e.d, e.todo = e.todo[0], e.todo[1:]
	e.next = 0
	e.readFirst()
}

func (e *explainer) slice() {
	switch {
	case e.named.gone:
		e.done(nil)
		return
	case e.d.gone:
		e.begin()
		return
	}
	e.next = e.d.queue.Walk(e.next, explainSlice, func(c *queue.Copy) {
		if e.id == nil || c.Message.ID == *e.id {
			e.found = true
			e.look(c)
		}
	})
	if e.next > 0 {
		e.b.env.Soon(e.slice)
		return
	}
	e.branches()
	if e.id != nil && !e.found {
		e.view = e.d.queue.View()
		e.page(queue.PageCopies, e.inPage, e.inBranches)
		return
	}
	e.through()
}

// through counts what is in the store alone, unless one message was asked for, and goes on.
func (e *explainer) through() {
	if x := e.d.queue.Damage(); e.id == nil {
		e.damaged(x)
	} else if !e.found {
		e.blind += x.Count
	}
	e.spooled += e.d.queue.SpooledOnly()
	if n := e.d.queue.StoredOnly() - e.d.queue.Damage().Count; n > 0 && e.id == nil {
		if len(e.d.queue.Slots()) == 0 {
			row := e.row(message.NoConsumer, e.nobody())
			row.Count += n
			row.Oldest.add(e.oldestStored())
		} else {
			e.stored += n
			e.oldest.add(e.oldestStored())
		}
	}
	e.begin()
}

// nobody names who should consume: the durable subscription, "" for a queue.
func (e *explainer) nobody() string {
	if e.d.sub != nil {
		return "durable subscription " + e.d.sub.String()
	}
	return ""
}

// inPage looks for the message in a page of what is in the store alone.
func (e *explainer) inPage(page []*queue.Copy) {
	for _, c := range page {
		if c.Message.ID != *e.id {
			continue
		}
		e.found = true
		if len(c.Doubts) > 0 {
			e.add(message.InDoubt, "peer "+e.b.peerText(c.Doubts[0]), c)
		} else {
			e.look(c)
		}
		e.through()
		return
	}
	e.page(queue.PageCopies, e.inPage, e.inBranches)
}

// look finds what holds one copy.
func (e *explainer) look(c *queue.Copy) {
	if c.Out() {
		reason, who := e.holder(c)
		e.remark(e.add(reason, who, c), c.Owner)
		return
	}
	if c.Message.Expired(e.b.env.Wall()) {
		e.add(message.Expired, "", c)
		return
	}
	if len(e.d.queue.Slots()) == 0 {
		e.add(message.NoConsumer, e.nobody(), c)
		return
	}
	e.d.queue.Refusals(c, func(s *queue.Slot, v message.Verdict) {
		if v.Outcome == message.Refuse {
			e.remark(e.add(v.Reason, who(s.Sub), c), s.Sub)
		}
	})
}

// holder tells who has a copy that is out.
func (e *explainer) holder(c *queue.Copy) (message.Reason, string) {
	if len(c.Doubts) > 0 {
		return message.InDoubt, "peer " + e.b.peerText(c.Doubts[0])
	}
	switch o := c.Owner.(type) {
	case *transaction:
		if !o.committing {
			return message.InTransaction, o.who()
		}
		return message.Committing, o.id.String()
	case *netSub:
		return message.InFlight, who(o)
	case *consumer:
		if tx, ok := c.Tx.(*transaction); ok && tx.branch.isPrepared() {
			return message.InTransaction, tx.who()
		} else if ok {
			return message.InTransaction, who(o)
		}
		return message.InFlight, who(o)
	}
	return message.Committing, ""
}

// ofBridge begins the name of a bridge's subscription.
const ofBridge = "bridge to "

func who(s any) string {
	switch s := s.(type) {
	case *consumer:
		return "consumer " + s.info.ID.String() + " of client " + s.conn.clientID
	case *netSub:
		return ofBridge + s.b.peerText(s.sub.Peer)
	}
	return ""
}

// peerText names a peer, with its id behind the name. Only peers that are linked, or were since the
// start, have a name here.
func (b *Broker) peerText(id message.BrokerID) string {
	name := b.networks.names[id]
	for _, e := range b.networks.peers {
		if e.Peer.ID == id {
			name = e.Peer.Name
		}
	}
	if name == "" || name == string(id) {
		return string(id)
	}
	return name + " (" + string(id) + ")"
}

// remark adds to a row where its consumer is and what it selects, or what a bridge's subscription
// says about it.
func (e *explainer) remark(row *ExplainRow, of any) {
	if c, ok := of.(*consumer); ok {
		row.Address, row.Selector = c.conn.remote.Address, c.info.Selector
		return
	}
	n, ok := of.(*netSub)
	if !ok || row.Remark != "" {
		return
	}
	if x, ok := n.sub.Sink.(network.Remarker); ok {
		row.Remark = x.Remark(row.Reason, replayOf(e.d.policy), e.b.env.Mono())
	}
}

func (e *explainer) add(r message.Reason, who string, c *queue.Copy) *ExplainRow {
	row := e.row(r, who)
	if row.last == c {
		return row
	}
	row.last = c
	row.Count++
	row.Oldest.add(Oldest{ID: c.Message.ID, Age: e.now - c.Arrived})
	return row
}

func (e *explainer) row(r message.Reason, who string) *ExplainRow {
	k := rowKey{r, who}
	if e.rows[k] == nil {
		e.rows[k] = &ExplainRow{Reason: r, Who: who, Releases: e.releases(r, who)}
	}
	return e.rows[k]
}

func (e *explainer) releases(r message.Reason, who string) string {
	switch {
	case r == message.InFlight && strings.HasPrefix(who, ofBridge):
		return "the peer's answer, or the end of the link"
	case r == message.NoConsumer && e.d.sub != nil:
		return "its subscriber, or the end of the subscription"
	case r == message.MemoryFull:
		return e.b.memoryReleases(e.named)
	case r == message.StoreFull:
		return e.b.storeReleases(e.named)
	case r == message.TempFull:
		return e.b.tempReleases()
	}
	return r.Releases()
}

// parked counts the sends that wait, and finds the oldest of each class: they are in the order of
// their parking. Of one that is asked for it tells alone.
func (e *explainer) parked() {
	d := e.named
	if e.id != nil {
		e.parkedOne()
		return
	}
	var rows [classes]*ExplainRow
	left := 0
	for k, n := range d.parkedOf {
		if n > 0 {
			rows[k] = e.parkedRow(class(k))
			rows[k].Count += int64(n)
			left++
		}
	}
	for _, a := range d.parked {
		if left == 0 {
			return
		}
		if d.parks(a) && rows[a.wait.class] != nil {
			rows[a.wait.class].Oldest.add(e.oldestParked(a))
			rows[a.wait.class] = nil
			left--
		}
	}
}

// parkedOne looks for the message asked for among the sends that wait.
func (e *explainer) parkedOne() {
	for _, a := range e.named.parked {
		if e.named.parks(a) && a.m.ID == *e.id {
			e.found = true
			row := e.parkedRow(a.wait.class)
			row.Count++
			row.Oldest.add(e.oldestParked(a))
		}
	}
}

func (e *explainer) parkedRow(k class) *ExplainRow {
	r := e.named.lack[k]
	row := e.row(r, "sends that wait for space")
	if row.Remark == "" && (r == message.MemoryFull || r == message.TempFull) {
		row.Remark = e.b.holders(e.named)
	}
	return row
}

func (e *explainer) oldestParked(a *arrival) Oldest {
	return Oldest{ID: a.m.ID, Age: e.now - a.wait.since}
}

func (e *explainer) finish() {
	e.parked()
	e.loads()
	e.listeners(e.named.listeners())
}

// answer gives what was found.
func (e *explainer) answer() {
	x := &Explanation{Status: e.named.status(), Stored: e.stored, StoredOldest: e.oldest,
		Spooled: e.spooled,
		Found:   e.found, Remark: remarkOn(e.named)}
	for _, h := range e.named.shares { // a topic has no copies itself
		x.Status.Size += h.sub.dest.queue.Len()
		x.Status.InFlight += h.sub.dest.queue.OutCount()
	}
	if e.blind > 0 && !e.found {
		x.Remark = plural.Of(e.blind, "message") + " here cannot be read, and may be it (CORRUPT)"
	}
	for _, r := range e.rows {
		x.Rows = append(x.Rows, *r)
	}
	if e.id == nil {
		x.Refused = e.b.denials.of(e.named.name, e.b.env.Mono())
	}
	sort.Slice(x.Rows, func(i, j int) bool {
		a, b := &x.Rows[i], &x.Rows[j]
		if a.Count != b.Count {
			return a.Count > b.Count
		}
		if a.Reason != b.Reason {
			return a.Reason < b.Reason
		}
		return a.Who < b.Who
	})
	e.done(x)
}
