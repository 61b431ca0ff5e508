package broker

import (
	"testing"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// short sends n persistent messages that expire in ten seconds.
func (h *house) short(d message.Destination, n int) {
	g := h.connect("short"+d.Name, "short"+d.Name, "", nil)
	p := message.ProducerID{Connection: message.ConnectionID("short" + d.Name), Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	for i := range n {
		g.Handle(&message.Message{Producer: p, Destination: d, Persistent: true,
			Expiration: h.Wall() + 10_000 + int64(i%7),
			ID:         message.MessageID{Producer: p, Sequence: int64(i)}})
	}
	h.turn()
}

func TestExpiredMessagesThatAreOnlyStoredEndWithinAPeriod(t *testing.T) {
	never := policy.NewEntry()
	never.Destination, never.Expiry.Period = queueNamed("never"), 0
	policies := func(o *Options) { o.Policies = &policy.Map{Entries: []*policy.Entry{never}} }
	h := open(t, nil, policies)
	// These expire first and stay: they must not be all that a search ever sees.
	h.short(queueNamed("never"), 900)
	h.short(queueNamed("doubt"), 500)
	h.bridge("ID:p", queueNamed("doubt"), &bridgeEnd{})
	h.short(queueNamed("q"), 3000)
	g := h.connect("long", "long", "", nil)
	g.produce("long", queueNamed("q"), 1)
	now := h.now
	h = open(t, h.disk, policies)
	h.now = now
	h.b.InDoubt("ID:p", message.CopyRef{}, 1000, func([]network.Doubt) {})
	h.turn()
	h.pass(31 * time.Second)
	for _, x := range []struct {
		name                  string
		size, expired, stored int64
	}{{"never", 900, 0, 900}, {"doubt", 500, 0, 500}, {"q", 1, 3000, 1}} {
		d := h.b.find(queueNamed(x.name))
		if n := d.queue.Len(); n != x.size || d.counts.Expired != x.expired || d.stored != x.stored {
			t.Errorf("%s: %d messages, %d expired, %d stored; want %d, %d, %d", x.name, n,
				d.counts.Expired, d.stored, x.size, x.expired, x.stored)
		}
	}
	if n := h.b.find(queueNamed("q")).queue.Resident(); n != 0 {
		t.Errorf("%d messages that did not expire came into memory", n)
	}
	if h.b.expiring {
		t.Error("the search does not end")
	}
}

func TestASearchThatCannotReadIsMadeAgain(t *testing.T) {
	h := open(t, nil, nil)
	h.short(queueNamed("q"), 10)
	h = open(t, h.disk, nil)
	h.broken = 1
	h.pass(31 * time.Second)
	if n := h.b.find(queueNamed("q")).queue.Len(); n != 10 {
		t.Fatalf("%d are left though nothing could be read", n)
	}
	h.pass(30 * time.Second)
	if n := h.b.find(queueNamed("q")).queue.Len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestExpiredMessagesInMemoryEndInSlices(t *testing.T) {
	h := open(t, nil, nil)
	h.short(queueNamed("q"), 2*expiryCopies+100)
	h.short(queueNamed("r"), 100)
	h.now += 20 * time.Second
	s := &expirySearch{b: h.b, now: h.Wall()}
	s.memory()
	q := h.b.find(queueNamed("q")).queue
	if n := q.Len(); n != expiryCopies+100 {
		t.Errorf("%d are left after one slice, want %d", n, expiryCopies+100)
	}
	h.turn()
	if n := q.Len() + h.b.find(queueNamed("r")).queue.Len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestWhatExpiresWhileTheStoreIsFullIsDeadLetteredOnce(t *testing.T) {
	h := open(t, nil, nil)
	h.short(queueNamed("q"), 50)
	h.short(queueNamed("r"), 9*queue.PageCopies)
	now := h.now
	h = open(t, h.disk, nil)
	h.now = now
	h.disk.SetCapacity(1, 1000)
	const all = 50 + 9*queue.PageCopies
	for range 6 {
		h.pass(time.Minute)
		if err := h.b.Check(); err != nil {
			t.Fatal(err)
		}
	}
	q, r := h.b.find(queueNamed("q")), h.b.find(queueNamed("r"))
	d := h.b.find(queueNamed("ActiveMQ.DLQ"))
	if n := d.queue.Len(); n != h.b.counts.Expired || n+q.queue.Len()+r.queue.Len() != all {
		t.Errorf("%d dead letters, %d expired, %d and %d left", n, h.b.counts.Expired,
			q.queue.Len(), r.queue.Len())
	}
	if n := d.queue.Len(); n < 50 || n > 3*queue.PageCopies {
		t.Errorf("%d dead letters wait for the store", n)
	}
	// Whoever reads the queue now does not get what ended.
	c := h.connect("c", "c", "", nil)
	c.consume("c", q.name)
	h.pass(time.Second)
	if err := h.b.Check(); err != nil || len(c.got) > 0 || q.queue.Len() != 0 {
		t.Errorf("%v; %d came, %d left", err, len(c.got), q.queue.Len())
	}
	h.disk.SetCapacity(0, 0)
	h.pass(time.Minute)
	if n := len(h.stored(d.name)); n != all || d.queue.Len() != all || h.b.counts.Expired != all {
		t.Errorf("%d dead letters stored, %d there, %d expired; want %d", n, d.queue.Len(),
			h.b.counts.Expired, all)
	}
	if n := len(h.stored(q.name)) + len(h.stored(r.name)); n != 0 || q.stored+r.stored != 0 {
		t.Errorf("%d stay stored, counted %d", n, q.stored+r.stored)
	}
}
