package broker

import (
	"testing"
	"time"

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
