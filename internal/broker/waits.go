package broker

import (
	"cmp"
	"maps"
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
)

// How many waiting copies a Status looks at: of one queue, and of all, so that it takes some
// milliseconds at most. Explain looks at all.
const (
	waitsOfQueue = 50
	waitsOfAll   = 5000
)

// waits gives the reasons that keep the oldest copies of a queue waiting, the most frequent first.
// budget is what may still be looked at.
func (d *destination) waits(b *Broker, budget *int) []message.Reason {
	if d.idles() {
		return nil
	}
	if d.queue == nil {
		return d.shutOut(nil)
	}
	counts := map[message.Reason]int{}
	if n := min(waitsOfQueue, *budget); n > 0 {
		e := &explainer{b: b, now: b.env.Mono(), d: d, rows: map[rowKey]*ExplainRow{}}
		d.queue.Oldest(n, func(c *queue.Copy) {
			*budget -= max(1, len(d.queue.Slots()))
			e.look(c)
		})
		for k, row := range e.rows {
			counts[k.reason] += int(row.Count)
		}
	}
	if len(counts) == 0 && d.queue.Pending() > d.queue.Damage().Count && len(d.queue.Slots()) == 0 {
		counts[message.NoConsumer]++
	}
	out := slices.SortedFunc(maps.Keys(counts), func(x, y message.Reason) int {
		return cmp.Or(counts[y]-counts[x], cmp.Compare(x, y))
	})
	if d.queue.Damage().Places > 0 {
		out = append(out, message.Unreadable)
	}
	if d.queue.Withheld() > 0 {
		out = append(out, message.InTransaction)
	}
	if d.queue.Doubted() {
		out = append(out, message.InDoubt)
	}
	return d.shutOut(out)
}

// shutOut adds the reasons for which sends wait.
func (d *destination) shutOut(out []message.Reason) []message.Reason {
	if d.loads.sends > 0 {
		out = append(out, message.ReceiptsUnread)
	}
	for k, n := range d.parkedOf {
		if n > 0 && !slices.Contains(out, d.lack[k]) {
			out = append(out, d.lack[k])
		}
	}
	return out
}

// idles reports whether nothing is in a queue, or waits to come in.
func (d *destination) idles() bool {
	return (d.queue == nil || d.queue.Len()+d.queue.Withheld() == 0 &&
		d.queue.Damage().Places == 0) && d.loads.sends+d.parkedCount() == 0
}

// nowLacks notes what a class that waits lacks, and tells of each thing once: it may go to and fro.
func (d *destination) nowLacks(b *Broker, k class, reason message.Reason) {
	was := d.lack[k]
	d.lack[k] = reason
	if was != "" && !slices.Contains(d.lacked, reason) {
		d.lacked = append(d.lacked, reason)
		b.tell(Event{Kind: SendParked, Reason: reason, Dest: d.name, Text: plural.Of(d.parkedOf[k],
			"send") + ", for " + string(was) + " before"})
	}
}
