package broker

import (
	"fmt"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// lose ends a stored, or spooled, message that cannot be read, before the head of its queue or log
// rises over it. One that is read by several meanwhile ends once.
func (h *queueHost) lose(s *store.Stored) {
	b, d := h.b, h.dest
	if !h.queue.Lose(uint64(s.Seq), s.Spooled) {
		return
	}
	defer b.journal.leave(b.journal.enter())
	what := "stored"
	if s.Spooled {
		what = "spooled"
		b.spool.lose(d, s)
	} else {
		b.journal.lose(d, s)
	}
	b.whenErased(s.Spooled, func() { h.queue.Erased(uint64(s.Seq)) })
	b.trouble(d, message.Unreadable, 1, "a "+what+" message is lost: "+s.Damage.Error())
}

// unreadable notes that stored messages cannot be read. They stay: a later read may find them, or a
// copy of the folder that was made before.
func (h *queueHost) unreadable(s *store.Stored) {
	if !h.queue.Unreadable(uint64(s.Seq), uint64(s.To)) {
		return
	}
	h.b.trouble(h.dest, message.Unreadable, 1, fmt.Sprintf("what is stored at %s cannot be read, and"+
		" is passed over; it stays on the disk until it is purged or can be read: %v",
		sequences(uint64(s.Seq), uint64(s.To)), s.Damage))
}

func sequences(from, to uint64) string {
	if to-from == 1 {
		return fmt.Sprintf("sequence %d", from)
	}
	return fmt.Sprintf("sequences %d to %d", from, to-1)
}

// miss takes messages off the books that were counted and are not there: what could not be read was
// taken out of the store by hand.
func (h *queueHost) miss() {
	stored, spooled := h.queue.Missing()
	if stored > 0 {
		h.b.journal.writeOff(h.dest, stored)
	}
	h.b.spool.writeOff(h.dest, spooled)
	n := max(0, stored) + spooled
	if n == 0 {
		return
	}
	h.b.trouble(h.dest, message.Unreadable, n, plural.Of(n, "stored message")+
		" that could not be read "+plural.Form(n, "is", "are")+" gone")
}

// dropDamage ends what cannot be read of a queue, or of a durable subscription, and gives how many
// messages that are.
func (h *queueHost) dropDamage() (n int64) {
	j, d := &h.b.journal, h.dest
	defer j.leave(j.enter())
	stored, spooled := h.queue.DropDamage(func(from, to uint64) {
		j.add(store.Op{Kind: store.DeleteRange, Dest: d.id, Seq: store.Seq(from), To: store.Seq(to)})
		h.b.spool.deleteRange(d, from, to)
	})
	j.writeOff(d, stored)
	h.b.spool.writeOff(d, spooled)
	return stored + spooled
}

// writeOff takes messages off the books of a destination whose sizes are not known: they are
// taken to be as others, and bytes are right again when nothing is left.
func (j *journal) writeOff(d *destination, n int64) (size int64) {
	if d.stored > 0 {
		size = d.storedBytes / d.stored * n
	}
	j.ends(d, n, size)
	if d.sub != nil {
		for _, k := range d.sub.keeps {
			j.look(k.log)
		}
	}
	return size
}

// dropDamageOf ends what cannot be read of a topic's durable subscriptions: all that can be purged
// of a topic.
func (b *Broker) dropDamageOf(topic *destination) (n int64, some bool) {
	if topic == nil {
		return 0, false
	}
	for _, h := range topic.shares {
		if d := h.sub.dest; d.queue.Damage().Places > 0 {
			some = true
			dropped := d.host.dropDamage()
			b.countDropped(d, message.Purged, dropped)
			n += dropped
		}
	}
	return n, some
}

// damaged explains what cannot be read of a queue.
func (e *explainer) damaged(x queue.Damage) {
	if x.Places == 0 {
		return
	}
	row := e.row(message.Unreadable, e.nobody())
	row.Count += x.Count
	row.Oldest.Unknown = true
	row.Remark = damageText(x)
}

func damageText(x queue.Damage) string {
	text := "at " + sequences(x.From, x.To)
	if x.Places > 1 {
		text += fmt.Sprintf(", in %d places", x.Places)
	}
	if !x.Sure {
		text += "; how many are there is known when the rest was read"
	}
	return text
}
