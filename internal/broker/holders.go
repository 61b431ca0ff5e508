package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hopwire/internal/broker/queue"
	"hopwire/internal/plural"
)

// How many are named of those that hold memory: destinations, and at each who has most of it. Less
// than one part in holderParts of the memory is not worth a word.
const (
	holdersMost   = 3
	holdersOfMost = 2
	holderParts   = 20
)

// holders tells what holds the memory that sends to a destination wait for: that of its own limit,
// when that is reached, or the broker's; "" when it is nothing in particular.
func (b *Broker) holders(d *destination) string {
	list, all := b.order, b.memory.Used()
	if l := d.usage.Limit(); l > 0 && d.usage.Used() >= l {
		list, all = []*destination{d}, d.usage.Used()
	}
	least := max(1, all/holderParts)
	list = slices.DeleteFunc(slices.Clone(list), func(d *destination) bool {
		return d.usage.Used() < least
	})
	slices.SortStableFunc(list, func(x, y *destination) int {
		return cmp.Compare(y.usage.Used(), x.usage.Used())
	})
	var texts []string
	for _, d := range list[:min(len(list), holdersMost)] {
		texts = append(texts, d.holds(least))
	}
	if len(texts) == 0 {
		return ""
	}
	return "the memory is held by " + strings.Join(texts, "; ")
}

// holds tells how much memory a destination holds, and for whom.
func (d *destination) holds(least int64) string {
	bytes := map[string]int64{}
	if d.queue != nil {
		d.queue.EachOut(func(c *queue.Copy) { bytes[holderName(c.Owner)] += c.Message.Size() })
	} else {
		of := func(who any, q *backlog) {
			q.each(func(it backlogItem) {
				if it.dest == d {
					bytes[holderName(who)] += it.m.Size()
				}
			})
		}
		for _, s := range d.consumers {
			of(s, &s.backlog)
		}
		for _, n := range d.nets {
			of(n, &n.backlog)
		}
	}
	delete(bytes, "")
	maps.DeleteFunc(bytes, func(_ string, n int64) bool { return n < least })
	names := slices.SortedFunc(maps.Keys(bytes), func(x, y string) int {
		return cmp.Or(cmp.Compare(bytes[y], bytes[x]), cmp.Compare(x, y))
	})
	text := d.name.String()
	if d.sub != nil {
		text = "durable subscription " + d.sub.String()
	}
	text += " (" + plural.Bytes(d.usage.Used())
	for _, name := range names[:min(len(names), holdersOfMost)] {
		text += fmt.Sprintf(", of which %s for %s", plural.Bytes(bytes[name]), name)
	}
	return text + ")"
}

// holderName is who with its address; "" for nobody that can be named.
func holderName(of any) string {
	if s, ok := of.(*consumer); ok {
		return who(s) + " at " + s.conn.remote.Address
	}
	return who(of)
}
