package queue

import (
	"time"

	"hopwire/internal/message"
)

// Claimer is a Subscriber that gets copies only when they are durable and marked. A copy whose turn
// it is before that is claimed: nobody else gets it, it counts in the window, and Take follows.
type Claimer interface {
	// Claim charges the window for a copy; it reports whether there is room for more.
	Claim(c *Copy) bool
	// Unclaim gives the room back: Take follows, or the copy goes elsewhere.
	Unclaim(c *Copy)
}

// claimBytes is how much one slot may claim: what is claimed is in memory.
const claimBytes = 4 << 20

// claim keeps a copy for the slot until it is durable and below the mark.
func (q *Queue) claim(s *Slot, c *Copy) bool {
	s.claims = append(s.claims, c)
	s.claimed += c.Message.Size()
	if c.Durable {
		q.wake()
	}
	return s.Sub.(Claimer).Claim(c) && !s.sated()
}

// sated reports whether the slot claims no more before what it has is delivered.
func (s *Slot) sated() bool { return s.claimed >= claimBytes }

// deliverClaims hands the claimed copies over that are durable and marked, each slot's in order.
func (q *Queue) deliverClaims(now time.Duration) {
	for i := 0; i < len(q.slots); i++ {
		if s := q.slots[i]; len(s.claims) > 0 {
			q.deliverClaimsOf(s, now)
		}
	}
}

func (q *Queue) deliverClaimsOf(s *Slot, now time.Duration) {
	gate, left := false, false // left: a claim made room
	defer func() {
		if left {
			s.Ready()
		}
	}()
	for len(s.claims) > 0 {
		c := s.claims[0]
		if c.Owner != any(s) {
			q.unclaim(s)
			left = true
			continue
		}
		if s.held(c) {
			if c.Durable && s.raising <= c.Seq {
				s.raising = c.Seq + 1
				q.host.RaiseMark(s, c.Seq)
			}
			if s.held(c) {
				return
			}
		}
		q.unclaim(s)
		if q.expired(c) {
			left = true
			continue
		}
		if !gate {
			if v := q.gate(s, now); v.Outcome != message.Deliver {
				q.Place(c)
				q.Unclaim(s)
				q.blockSlot(s, v)
				left = false
				return
			}
			gate = true
		}
		if v := q.verdict(s, c, now); v.Outcome != message.Deliver {
			q.placeBut(c, s)
			q.refused(s, c, v)
			left = true
			continue
		}
		// A claim that was taken makes room for another, unless the subscription wants no more.
		if gate = s.Sub.Take(c); !gate {
			q.removeReady(s)
		}
		left = gate
	}
}

// unclaim takes the first copy off the slot's claims.
func (q *Queue) unclaim(s *Slot) {
	c := s.claims[0]
	s.claims[0] = nil
	s.claims = s.claims[1:]
	s.claimed -= c.Message.Size()
	s.Sub.(Claimer).Unclaim(c)
}

// Unclaim gives back everything the slot has claimed.
func (q *Queue) Unclaim(s *Slot) {
	for len(s.claims) > 0 {
		c := s.claims[0]
		q.unclaim(s)
		if c.Owner == any(s) {
			q.Place(c)
		}
	}
}
