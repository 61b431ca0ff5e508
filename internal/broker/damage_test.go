package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// corrupt counts what was told of what cannot be read.
func (h *house) corrupt() (n int) {
	for _, e := range h.events {
		if e.Kind == StoreTrouble && e.Reason == message.Unreadable {
			n++
		}
	}
	return n
}

// numbered lists from to to, both in, leaving some out.
func numbered(from, to int64, but ...int64) string {
	var out []string
	for n := from; n <= to; n++ {
		if n < but[0] || n > but[1] {
			out = append(out, fmt.Sprint(n))
		}
	}
	return strings.Join(out, " ")
}

// What is damaged stops nobody: consumers and browsers go on behind it at once. It counts, it is
// told of once, and it comes when it can be read again.
func TestWhoReadsGoesOnBehindDamage(t *testing.T) {
	q := queueNamed("q")
	for _, c := range []struct{ from, to store.Seq }{{11, 21}, {1, 5}, {26, 31}, {26, 900}} {
		h := filled(t, q, 30)
		id := h.b.find(q).id
		h.disk.Damage(id, c.from, c.to)
		lost := int64(min(c.to, 31) - c.from)
		want := numbered(1, 30, int64(c.from), int64(c.to)-1)
		b := h.connect("b", "b", "", nil)
		b.browse("b", q, 1000)
		if got := (&reader{guest: b}).bodies(); got != want {
			t.Errorf("%v: a browser sees %s, want %s", c, got, want)
		}
		a := &reader{guest: h.connect("c", "c", "", nil)}
		a.id = a.consume("c", q)
		if got := a.bodies(); got != want {
			t.Errorf("%v: a consumer gets %s, want %s", c, got, want)
		}
		a.ackAll()
		h.has(q, lost)
		h.pass(10 * time.Minute)
		if n := h.corrupt(); n != 1 {
			t.Errorf("%v: told %d times: %v", c, n, h.events)
		}
		a.produce("c", q, 31)
		h.disk.Repair()
		h.pass(time.Minute)
		if got, want := a.bodies(), "31 "+numbered(int64(c.from), min(30, int64(c.to)-1), 0,
			0); got != want {
			t.Errorf("%v: when it can be read, a consumer gets %s, want %s", c, got, want)
		}
		a.ackAll()
		h.has(q, 0)
	}
}

func TestDamageIsExplainedAndPurged(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 1000)
	id := h.b.find(q).id
	h.disk.Damage(id, 11, 21)
	h.disk.Damage(id, 501, 502)
	a := &reader{guest: h.connect("c", "c", "", nil)}
	a.id = a.consume("c", q)
	for len(a.got) > 0 {
		a.ackAll()
	}
	h.has(q, 11)
	x := h.explain(q)
	if len(x.Rows) != 1 || x.Rows[0].Reason != message.Unreadable || x.Rows[0].Count != 11 ||
		x.Rows[0].Remark != "at sequences 11 to 501, in 2 places" || x.Stored != 0 ||
		!x.Rows[0].Oldest.Unknown ||
		!strings.Contains(x.Rows[0].Releases, "hopwire purge") {
		t.Errorf("explained as %+v", x)
	}
	want := []message.Reason{message.Unreadable}
	if w := h.b.Status().Destinations[0].Waits; !slices.Equal(w, want) {
		t.Errorf("it waits for %v", w)
	}
	if got := h.purge(q); got.Dropped != 11 {
		t.Errorf("the purge is %+v", got)
	}
	h.has(q, 0)
	h.disk.Repair()
	if n := len(h.stored(q)); n != 0 {
		t.Errorf("%d messages stay on the disk", n)
	}
	h.pass(time.Hour)
	if x := h.explain(q); len(x.Rows) != 0 {
		t.Errorf("after the purge it is explained as %+v", x)
	}
}

// A purge that meets damage, with nobody there before it, ends and leaves nothing; also of what
// expires.
func TestAPurgeThatMeetsDamageEnds(t *testing.T) {
	q := queueNamed("q")
	h := open(t, nil, nil)
	h.short(q, 300)
	now := h.now
	id := h.b.find(q).id
	h = openAt(t, now, h.disk, nil)
	h.disk.Damage(id, 100, 300)
	if got := h.purge(q); got.Dropped != 300 {
		t.Errorf("the purge is %+v", got)
	}
	h.has(q, 0)
	refs, err := h.disk.Expired(nil, 1<<60, 1000)
	if err != nil || len(refs) != 0 {
		t.Errorf("expirations %v stay, %v", refs, err)
	}
}

// Of what is damaged and was consumed nothing is there: it is no damage of the queue.
func TestDamageOfWhatIsGoneIsNone(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 30)
	a := &reader{guest: h.connect("c", "c", "", nil)}
	a.id = a.consume("c", q)
	for _, n := range a.got[10:20] {
		a.ack(a.id, q, n, message.IndividualAck, message.TransactionID{})
	}
	id := h.b.find(q).id
	h = open(t, h.disk.CrashClone(0), nil)
	h.disk.Damage(id, 11, 21)
	b := h.connect("b", "b", "", nil)
	b.consume("b", q)
	if len(b.got) != 20 {
		t.Errorf("got %d", len(b.got))
	}
	if x := h.b.find(q).queue.Damage(); x.Places != 0 {
		t.Errorf("it is told of %+v", x)
	}
}

// A durable subscription goes on behind damage of its references and of its topic's log, which
// keeps its messages until a purge of the topic drops what cannot be read.
func TestADurableSubscriptionGoesOnBehindDamage(t *testing.T) {
	for _, of := range []string{"references", "log"} {
		h := open(t, nil, nil)
		h.subscribe("a", "s", "T", nil).leave()
		h.publish("T", 1, 30)
		seqs := h.storedOf("a")
		h = open(t, h.disk, nil)
		id := h.b.durables.list[0].dest.id
		if of == "log" {
			id = h.b.find(topicNamed("T")).id
		}
		h.disk.Damage(id, seqs[10].Seq, seqs[19].Seq+1)
		a := h.subscribe("a", "s", "T", nil)
		if got, want := a.bodies(), numbered(1, 30, 11, 20); got != want {
			t.Errorf("%s: got %s, want %s", of, got, want)
		}
		a.ackAll()
		h.publish("T", 31, 31)
		a.ackAll()
		d := h.b.durables.list[0].dest
		if d.queue.Len() != 10 || d.stored != 10 {
			t.Errorf("%s: %d messages count, %d are stored", of, d.queue.Len(), d.stored)
		}
		x := h.explain(topicNamed("T"))
		if len(x.Rows) != 1 || x.Rows[0].Reason != message.Unreadable || x.Rows[0].Count != 10 {
			t.Errorf("%s: explained as %+v", of, x)
		}
		if got := h.purge(topicNamed("T")); got.Dropped != 10 ||
			h.b.counts.Reasons[message.Purged] != 10 || d.reasons[message.Purged] != 10 {
			t.Errorf("%s: the purge is %+v, counted %v", of, got, h.b.counts.Reasons)
		}
		h.disk.Repair()
		if d.queue.Len() != 0 || d.stored != 0 || d.storedBytes != 0 || len(h.storedOf("a")) != 0 ||
			h.loggedOf("T") != 0 {
			t.Errorf("%s: %d stay, %d logged", of, d.queue.Len(), h.loggedOf("T"))
		}
	}
}

// Nobody would be answered when what is dropped is not written any more.
func TestDamageOfATopicIsNotPurgedByABrokerThatStops(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	h.publish("T", 1, 3)
	seq := h.storedOf("a")[0].Seq
	h = open(t, h.disk, nil)
	h.disk.Damage(h.b.durables.list[0].dest.id, seq, seq+1)
	h.subscribe("a", "s", "T", nil).leave()
	if x := h.b.durables.list[0].dest.queue.Damage(); x.Count != 1 {
		t.Fatalf("the damage is %+v", x)
	}
	h.stop()
	var err error
	h.b.Purge(topicNamed("T"), "root", func(_ Purged, e error) { err = e })
	h.turn()
	if message.KindOf(err) != message.Unavailable {
		t.Errorf("a purge after the stop is answered %v", err)
	}
}

// What was counted and could not be read may be taken out of the store: it is off the books when
// that is known.
func TestWhatIsGoneForGoodIsOffTheBooks(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 30)
	id := h.b.find(q).id
	h.disk.Damage(id, 11, 21)
	a := &reader{guest: h.connect("c", "c", "", nil)}
	a.id = a.consume("c", q)
	h.unchecked = true
	gone := store.Op{Kind: store.DeleteRange, Dest: id, Seq: 11, To: 21}
	if err := h.disk.Apply([]*store.Batch{{Ops: []store.Op{gone}}}); err != nil {
		t.Fatal(err)
	}
	h.disk.Repair()
	h.pass(time.Minute)
	h.unchecked = false
	h.has(q, 20)
	if n := h.b.counts.Reasons[message.Unreadable]; n != 11 {
		t.Errorf("counted %d, want the place and what was there", n)
	}
	a.ackAll()
	h.has(q, 0)
}

// Receipts that cannot be read stop nothing that comes; new ones are kept, with numbers that none
// had, and those that can be read stay.
func TestReceiptsThatCannotBeReadStopNobody(t *testing.T) {
	from := network.Peer{ID: "ID:p", Name: "p"}
	h := open(t, nil, nil)
	for n := range int64(3) {
		h.receive(from, n+1, true)
	}
	h = h.killed()
	h.lost = true
	for n := range int64(5) {
		if answers := h.receive(from, n+1, true); answers != 1 {
			t.Errorf("message %d is answered %d times", n+1, answers)
		}
	}
	if n := h.b.find(queueQ).queue.Len(); n != 5 { // these can be read, and others might not
		t.Errorf("%d messages are there, want 5", n)
	}
	if h.corrupt() != 1 || h.b.counts.Reasons[message.Unreadable] != 1 {
		t.Errorf("it is told %d times", h.corrupt())
	}
	h.lost = false
	h = h.killed()
	for n := range int64(5) {
		h.receive(from, n+1, true)
	}
	if n := h.b.find(queueQ).queue.Len(); n != 5 {
		t.Errorf("%d messages are there after a restart, want 5", n)
	}
}
