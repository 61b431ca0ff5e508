package queue

import (
	"container/list"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// groups remembers which slot has which message group (JMSXGroupID). A group belongs to the slot
// that got its first message, until that goes or a message with a negative JMSXGroupSeq closes the
// group; one with sequence 1 gives it to whoever takes it. A bridge has it only as long as it takes
// what comes: what may not cross the link would otherwise wait as long as that is up.
type groups struct {
	rule policy.Groups
	of   map[string]*list.Element // by group, or by the text of a bucket's number
	used *list.List               // of *group, the latest used first
	lost [laneCount]uint64        // the lowest of refused of the groups lost since regroup
}

type group struct {
	key     string
	owner   *Slot
	refused [laneCount]uint64 // the lowest keys that others refused because of it; none = noKey
}

func newGroups(rule policy.Groups) groups {
	return groups{rule: rule, of: map[string]*list.Element{}, used: list.New(),
		lost: [laneCount]uint64{noKey, noKey}}
}

// key is what owners are remembered under: the group, or its bucket.
func (g *groups) key(id string) string {
	if g.rule.Kind != policy.GroupsBucket || g.rule.Buckets < 1 {
		return id
	}
	hash := int32(0) // as Java hashes a text, so that the same groups share a bucket
	for _, r := range id {
		hash = 31*hash + r
	}
	bucket := max(hash%int32(g.rule.Buckets), -(hash % int32(g.rule.Buckets)))
	return string(binary4(bucket))
}

func binary4(n int32) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }

// owner gives the slot that has a group, nil when nobody has.
func (g *groups) owner(id string) *Slot {
	if e := g.of[g.key(id)]; e != nil {
		return e.Value.(*group).owner
	}
	return nil
}

// refused is the lowest key in the copy's lane that was refused because of its group, which
// somebody has.
func (g *groups) refused(c *Copy) *uint64 {
	return &g.of[g.key(c.Message.GroupID)].Value.(*group).refused[c.lane]
}

// give makes a slot the owner of a group, whoever had it. Of a map with a bound, the group used
// longest ago may be forgotten for it.
func (g *groups) give(id string, s *Slot) {
	key := g.key(id)
	if e := g.of[key]; e != nil {
		g.lose(e)
	}
	g.of[key] = g.used.PushFront(&group{key, s, [laneCount]uint64{noKey, noKey}})
	s.groups++
	most := g.rule.CacheSize
	if g.rule.Kind == policy.GroupsSimple || most < 1 {
		return
	}
	for g.used.Len() > most {
		g.lose(g.used.Back())
	}
}

func (g *groups) use(id string) { g.used.MoveToFront(g.of[g.key(id)]) }

func (g *groups) lose(e *list.Element) {
	x := g.used.Remove(e).(*group)
	x.owner.groups--
	delete(g.of, x.key)
	for l, key := range x.refused {
		g.lost[l] = min(g.lost[l], key)
	}
}

// close ends the ownership of a group.
func (g *groups) close(id string) {
	if e := g.of[g.key(id)]; e != nil {
		g.lose(e)
	}
}

// leave ends the ownership of all groups of a slot.
func (g *groups) leave(s *Slot) {
	for e := g.used.Front(); e != nil && s.groups > 0; {
		next := e.Next()
		if e.Value.(*group).owner == s {
			g.lose(e)
		}
		e = next
	}
}

// verdict asks whether a slot takes a copy.
func (q *Queue) verdict(s *Slot, c *Copy, now time.Duration) message.Verdict {
	if v := q.grouped(s, c); v.Outcome != message.Deliver {
		return v
	}
	return s.Sub.Verdict(c, now)
}

// grouped refuses a copy whose group another slot has; not to one that has the queue for itself,
// since the other gets nothing meanwhile.
func (q *Queue) grouped(s *Slot, c *Copy) message.Verdict {
	m := c.Message
	if m.GroupID == "" || m.GroupSequence == 1 {
		return message.Verdict{}
	}
	o := q.groups.owner(m.GroupID)
	if o == nil || o == s || q.owner == s || o.Network && o.passed(c) {
		return message.Verdict{}
	}
	return message.Verdict{Outcome: message.Refuse, Wake: message.WakeConsumers,
		Reason: message.GroupOwned}
}

// passed reports whether the slot refused the copy, and will not look at it again by itself.
func (s *Slot) passed(c *Copy) bool {
	p := place{c.lane, c.key}
	return s.position(c.lane) > c.key && s.times[p] == nil && !s.hasAgain(p)
}

// passOn takes the group of a copy that a bridge refused from it.
func (q *Queue) passOn(s *Slot, c *Copy) {
	if id := c.Message.GroupID; s.Network && id != "" && q.groups.owner(id) == s {
		q.groups.close(id)
		q.regroup()
	}
}

// joinGroup notes that the slot takes the copy: it has the group now, or no longer.
func (q *Queue) joinGroup(s *Slot, c *Copy) {
	m := c.Message
	if m.GroupID == "" {
		return
	}
	o := q.groups.owner(m.GroupID)
	c.GroupFirst = o != s || m.GroupSequence == 1
	if o == s {
		q.groups.use(m.GroupID)
	} else {
		q.groups.give(m.GroupID, s)
	}
	if m.GroupSequence < 0 {
		q.groups.close(m.GroupID)
	}
	q.regroup()
}

// regroup has everybody look again at what was refused because of groups that were lost.
func (q *Queue) regroup() {
	for l, key := range q.groups.lost {
		if key == noKey {
			continue
		}
		q.groups.lost[l] = noKey
		for _, s := range q.slots {
			s.lookFrom(int8(l), key)
		}
		q.wake()
	}
}

// fewest moves the ready slot with the fewest groups before others of its priority, when the copy
// begins a group: so groups are spread.
func (q *Queue) fewest(c *Copy) {
	if c.Message.GroupID == "" || c.Message.GroupSequence != 1 &&
		q.groups.owner(c.Message.GroupID) != nil {
		return
	}
	best := 0
	for i, s := range q.ready {
		if s.Priority != q.ready[0].Priority {
			break
		}
		if s.groups < q.ready[best].groups {
			best = i
		}
	}
	if best > 0 {
		s := q.ready[best]
		copy(q.ready[1:best+1], q.ready[:best])
		q.ready[0] = s
	}
}
