// Package recall is what one topic keeps for consumers that come later: a subscription recovery
// policy with the messages that it has. It knows no clock: who uses it says what time it is.
package recall

import (
	"iter"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// Memory is what a topic keeps: the message that was marked as retained last, whatever the policy
// is, and the policy's own messages.
//
// Invariants: bytes is the sum of the sizes of image and kept[start:]; no rule's limit is exceeded;
// the times in kept[start:] do not fall.
type Memory struct {
	rule  rule
	image *message.Message
	kept  []entry // kept[start:], the oldest first
	start int
	sum   int64 // bytes of kept[start:]
}

type entry struct {
	m  *message.Message
	at time.Duration // monotonic
}

// rule is a policy as limits; 0 is none.
type rule struct {
	keeps  bool
	count  int
	bytes  int64
	timed  bool
	during time.Duration
}

func ruleOf(p policy.Recovery) rule {
	switch p.Kind {
	case policy.RecoverLastImage:
		return rule{keeps: true, count: 1}
	case policy.RecoverFixedCount:
		return rule{keeps: true, count: p.MaxMessages}
	case policy.RecoverFixedSize:
		return rule{keeps: true, bytes: int64(p.MaxBytes)}
	case policy.RecoverTimed:
		return rule{keeps: true, timed: true, during: p.Duration}
	case policy.RecoverRetained:
		if p.Wrapped != nil {
			return ruleOf(*p.Wrapped)
		}
	}
	return rule{}
}

// Keeps reports whether a policy keeps messages that are not marked as retained.
func Keeps(p policy.Recovery) bool { return ruleOf(p).keeps }

// New makes the empty memory of a topic.
func New(p policy.Recovery) *Memory { return &Memory{rule: ruleOf(p)} }

// Add takes in a message that came at now, and forgets what the policy keeps no more for it.
func (k *Memory) Add(m *message.Message, now time.Duration) {
	if !k.rule.keeps {
		return
	}
	k.kept = append(k.kept, entry{m, now})
	k.sum += m.Size()
	for k.rule.count > 0 && k.Len() > k.rule.count || k.rule.bytes > 0 && k.sum > k.rule.bytes {
		k.pop()
	}
	k.Trim(now)
}

// Retain makes a message the retained one; nil forgets it.
func (k *Memory) Retain(m *message.Message) { k.image = m }

// Image is the retained message, nil for none.
func (k *Memory) Image() *message.Message { return k.image }

// Len is how many messages are kept beside the image.
func (k *Memory) Len() int { return len(k.kept) - k.start }

// Bytes is the size of everything kept.
func (k *Memory) Bytes() int64 {
	if k.image != nil {
		return k.sum + k.image.Size()
	}
	return k.sum
}

// Kept gives the policy's messages, the oldest first, without the one that is the image, too: who
// is given the image has it.
func (k *Memory) Kept() iter.Seq[*message.Message] {
	return func(yield func(*message.Message) bool) {
		for _, e := range k.kept[k.start:] {
			if k.image != nil && k.image.ID == e.m.ID {
				continue
			}
			if !yield(e.m) {
				return
			}
		}
	}
}

// Trim forgets what is older than the policy keeps it at now.
func (k *Memory) Trim(now time.Duration) {
	for k.rule.timed && k.Len() > 0 && now-k.kept[k.start].at >= k.rule.during {
		k.pop()
	}
}

// Due tells when the oldest message will be too old; ok is false when none ever will be.
func (k *Memory) Due() (at time.Duration, ok bool) {
	if !k.rule.timed || k.Len() == 0 {
		return 0, false
	}
	return k.kept[k.start].at + k.rule.during, true
}

// Expire forgets what has expired at wall, in ms since the epoch, and tells how many messages.
func (k *Memory) Expire(wall int64) (n int64) {
	if k.image != nil && k.image.Expired(wall) {
		k.image = nil
		n++
	}
	left := k.kept[:k.start]
	for _, e := range k.kept[k.start:] {
		if e.m.Expired(wall) {
			k.sum -= e.m.Size()
			n++
			continue
		}
		left = append(left, e)
	}
	clear(k.kept[len(left):])
	k.kept = left
	return n
}

// Shed forgets the oldest messages, and the image last, until so many bytes are free or nothing is
// left. It tells how many messages.
func (k *Memory) Shed(bytes int64) (n int64) {
	for ; bytes > 0 && k.Len() > 0; n++ {
		bytes -= k.pop()
	}
	if bytes > 0 && k.image != nil {
		k.image = nil
		n++
	}
	return n
}

// pop forgets the oldest message and gives its size.
func (k *Memory) pop() int64 {
	size := k.kept[k.start].m.Size()
	k.sum -= size
	k.kept[k.start] = entry{}
	k.start++
	switch {
	case k.start == len(k.kept):
		k.kept, k.start = k.kept[:0], 0
	case k.start > 64 && k.start > len(k.kept)/2:
		n := copy(k.kept, k.kept[k.start:])
		clear(k.kept[n:])
		k.kept, k.start = k.kept[:n], 0
	}
	return size
}
