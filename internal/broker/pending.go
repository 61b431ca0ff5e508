package broker

import (
	"math"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// pendingLimit is how many messages of topics may wait behind a consumer's window, and which go
// first (pendingMessageLimitStrategy, messageEvictionStrategy). Bridges have none: who published
// does not know who is behind a bridge.
type pendingLimit struct {
	most     int // -1: any number
	eviction policy.Eviction
	soonest  int64 // no message that waits expires before it (ms since the epoch)
	came     int   // messages since it was last looked for what is expired
	known    values
}

const (
	// evictLooks is how many messages an eviction strategy looks at, the oldest.
	evictLooks = 1000
	// expiryPart: it is looked for what is expired when as many came as are this part of what waits.
	expiryPart = 16
)

// limitPending has the consumer follow a policy.
func (s *consumer) limitPending(e *policy.Entry) {
	s.pending = pendingLimit{most: -1, eviction: e.Eviction, soonest: math.MaxInt64}
	if s.conn.network || s.info.SubscriptionName != "" || s.info.Browser ||
		e.PendingLimit.Kind == policy.PendingUnlimited {
		return
	}
	// A window of 0 that is multiplied would leave nothing to pull.
	if s.topicMax > 0 || e.PendingLimit.Kind == policy.PendingConstant {
		s.pending.most = e.PendingLimit.Max(s.topicMax)
	}
	if own := int(s.info.MaximumPendingMessageLimit); own > 0 &&
		(s.pending.most < 0 || own < s.pending.most) {
		s.pending.most = own
	}
}

// await has a message of a topic wait for room in the window, as far as the limit lets it.
func (s *consumer) await(it backlogItem) {
	p := &s.pending
	if it.dest == nil || p.most < 0 {
		s.backlog.push(it)
		return
	}
	if p.most == 0 {
		s.discard(it)
		return
	}
	s.backlog.push(it)
	p.came++
	if until := it.m.Expiration; until > 0 {
		p.soonest = min(p.soonest, until)
	}
	if s.backlog.messages > min(p.most, max(1, p.eviction.ExpiredHighWater)) {
		s.shedExpired()
	}
	for s.backlog.messages > p.most {
		for _, it := range s.evicted() {
			if it.m.Expired(s.b.env.Wall()) {
				s.expires(it)
			} else {
				s.discard(it)
			}
		}
	}
}

// shedExpired takes what is expired out of what waits; not for each message, since it looks at all.
func (s *consumer) shedExpired() {
	p, n := &s.pending, s.backlog.len()
	if s.b.env.Wall() < p.soonest || p.came < n/expiryPart {
		return
	}
	p.soonest, p.came = math.MaxInt64, 0
	for _, it := range s.backlog.takeOut(func(it *backlogItem) bool {
		if it.dest == nil || it.m.Expiration == 0 {
			return false
		}
		if it.m.Expired(s.b.env.Wall()) {
			return true
		}
		p.soonest = min(p.soonest, it.m.Expiration)
		return false
	}) {
		s.expires(it)
	}
}

// expires ends a message whose time was over before the limit's was. It is told of as expired, not
// as discarded, as with ActiveMQ.
func (s *consumer) expires(it backlogItem) {
	if s.b.expiredInBacklog(it) {
		s.b.adviseExpired(it.dest, it.m)
	}
}

// evicted takes out what goes first: at least one message.
func (s *consumer) evicted() []backlogItem {
	q := &s.backlog
	switch s.pending.eviction.Kind {
	case policy.EvictLowestPriority:
		return []backlogItem{q.removeAt(q.leastImportant())}
	case policy.EvictUniqueProperty:
		if out := q.superseded(&s.pending.known, s.pending.eviction.Property); len(out) > 0 {
			return out
		}
	}
	return []backlogItem{q.removeAt(q.oldest())}
}

// oldest gives the place of the first message of a topic. There is one.
func (q *backlog) oldest() int {
	i := 0
	for q.items.at(i).dest == nil {
		i++
	}
	return i
}

// leastImportant gives the place of the first one of the lowest priority. There is one.
func (q *backlog) leastImportant() int {
	least := q.oldest()
	for i := least; i < min(q.items.len(), evictLooks); i++ {
		if it := q.items.at(i); it.dest != nil && it.m.Priority < q.items.at(least).m.Priority {
			least = i
		}
	}
	return least
}

// takeOut takes those out that go; it asks in their order.
func (q *backlog) takeOut(goes func(*backlogItem) bool) (out []backlogItem) {
	all := q.items.all()
	kept := all[:0]
	for _, it := range all {
		if goes(&it) {
			out = append(out, it)
			continue
		}
		kept = append(kept, it)
	}
	clear(all[len(kept):])
	q.items.list = q.items.list[:q.items.start+len(kept)]
	for _, it := range out {
		q.out(it)
	}
	return out
}

// removeAt takes one out; those before it are few.
func (q *backlog) removeAt(i int) backlogItem {
	all := q.items.all()
	it := all[i]
	copy(all[1:], all[:i])
	all[0] = it
	return q.pop()
}

// discard ends a message that waited longer than the limit lets it. What is not kept at all is no
// dead letter, as with ActiveMQ.
func (s *consumer) discard(it backlogItem) {
	b := s.b
	b.countDropped(it.dest, message.PendingLimit, 1)
	b.tell(Event{Kind: MessageDropped, Reason: message.PendingLimit, Dest: it.dest.name,
		Of: string(s.conn.id), Text: s.tooSlow(), Count: 1})
	if it.dest.gone || s.pending.most == 0 {
		return
	}
	it.dest.counts.Dequeued++
	b.counts.Dequeued++
	b.tellDiscarded(it.dest, s, it.m)
	if target, ok := b.graveOf(it.dest, it.m, false); ok {
		defer b.journal.leave(b.journal.enter())
		b.bury(nil, it.dest, it.m, target, "java.lang.Throwable: TopicSubDiscard. ID:"+s.info.ID.String())
	}
}

// tooSlow names the consumer and its limit, for the log.
func (s *consumer) tooSlow() string {
	return who(s) + " is slow, and more than its pending message limit wait for it"
}
