package broker

import (
	"container/list"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// denialsMost is how many different refusals explanations tell of; the latest.
const denialsMost = 1000

// denials are the latest refusals, for explanations.
type denials struct {
	by    map[denialKey]*list.Element
	order list.List // of *denial, the latest first
}

type denialKey struct {
	user, words string
	dest        message.Destination // or a consumer's pattern
}

type denial struct {
	denialKey
	n     int64
	by    *rights // of who was refused last
	right Right
	last  time.Duration // when, by the loop's clock
}

// Refusal is what a user was refused since the start.
type Refusal struct {
	User  string
	What  string // that it may not do
	Who   string // who was refused last: a client, a bridge
	Count int64
	Ago   time.Duration // since the last
	// Groups are those that the user is in, Given those whose users may do it; "*" is everybody who
	// is in one.
	Groups, Given []string
	Stranger      bool // nobody authenticates users here, so that nobody may do anything
}

// add counts a refusal. For a new one, that whose last is longest ago is forgotten.
func (s *denials) add(k denialKey, right Right, r *rights) {
	if s.by == nil {
		s.by = map[denialKey]*list.Element{}
	}
	e := s.by[k]
	switch {
	case e != nil:
		s.order.MoveToFront(e)
	default:
		if oldest := s.order.Back(); s.order.Len() >= denialsMost {
			delete(s.by, oldest.Value.(*denial).denialKey)
			s.order.Remove(oldest)
		}
		e = s.order.PushFront(&denial{denialKey: k})
		s.by[k] = e
	}
	x := e.Value.(*denial)
	x.n++
	x.by, x.right, x.last = r, right, r.b.env.Mono()
}

// of tells who was refused what of a destination, the latest first.
func (s *denials) of(d message.Destination, now time.Duration) (out []Refusal) {
	for e := s.order.Front(); e != nil; e = e.Next() {
		if x := e.Value.(*denial); policy.Matches(x.dest, d) {
			out = append(out, Refusal{User: x.user, What: x.words + " " + x.dest.String(), Who: x.by.who,
				Count: x.n, Ago: now - x.last, Groups: x.by.user.Groups, Stranger: x.by.stranger,
				Given: x.by.b.opt.Authorizer.Groups(x.right, x.dest)})
		}
	}
	return out
}
