package broker

import (
	"reflect"

	"hopwire/internal/message"
)

// values are what is known of the values that a property has in the messages at the front of a
// backlog. Invariant: of those that were looked at and wait, each is the newest of its value, or
// none has one. Messages are known by their broker sequences, so that none is kept in memory.
type values struct {
	newest map[any]dated // of some that left, too
	last   int64         // the last one that was looked at
}

type dated struct{ sequence, timestamp int64 }

// superseded takes out what is not the newest of its value of a property, if any has a value. It
// looks at what came to the front since. Places are told from the start, which a removal moves.
func (q *backlog) superseded(known *values, property string) (out []backlogItem) {
	n := min(q.ready(), evictLooks)
	next := n
	for next > 0 && !q.items.at(next-1).is(known.last) {
		next--
	}
	if next == 0 || len(known.newest) > 2*evictLooks {
		next, known.newest = 0, map[any]dated{}
	}
	remove := func(i int) {
		out = append(out, q.removeAt(i))
		n--
		next--
	}
	for ; next < n; next++ {
		it := *q.items.at(next)
		if it.dest == nil {
			continue
		}
		value := message.View{Message: it.m}.Field(property)
		has := value != nil && reflect.TypeOf(value).Comparable()
		if has && len(known.newest) == 0 {
			for i := 0; i < next; {
				if q.items.at(i).dest == nil {
					i++
					continue
				}
				remove(i)
			}
		}
		gone := -1
		if has {
			gone = q.supersedes(known, value, next)
		} else if len(known.newest) > 0 {
			gone = next
		}
		if gone != next {
			known.last = it.m.BrokerSequence
		}
		if gone >= 0 {
			remove(gone)
		}
	}
	return out
}

// supersedes notes the value of the message at i, and gives the place of the one that is not the
// newest of that value any more; -1 is none.
func (q *backlog) supersedes(known *values, value any, i int) int {
	m := q.items.at(i).m
	now := dated{m.BrokerSequence, m.Timestamp}
	before, again := known.newest[value]
	j := i - 1
	for again && j >= 0 && !q.items.at(j).is(before.sequence) {
		j--
	}
	switch {
	case !again || j < 0:
		known.newest[value] = now
		return -1
	case now.timestamp > before.timestamp:
		known.newest[value] = now
		return j
	}
	return i
}

// is reports whether it is the topic's message of that broker sequence.
func (it *backlogItem) is(sequence int64) bool {
	return it.dest != nil && it.m.BrokerSequence == sequence
}
