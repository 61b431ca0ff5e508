package queue

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
)

// eager takes or refuses everything, without an end.
type eager struct{ refuse bool }

func (*eager) Gate(time.Duration) message.Verdict { return message.Verdict{} }

func (s *eager) Verdict(*Copy, time.Duration) message.Verdict {
	if s.refuse {
		return message.Refused(message.SelectorNoMatch)
	}
	return message.Verdict{}
}

func (*eager) Take(c *Copy) bool { return true }

// BenchmarkDispatch is the cost of one copy: added, offered to the subscriptions that do not want
// it, taken by one, removed.
func BenchmarkDispatch(b *testing.B) {
	const batch = 100
	for _, n := range []int{1, 10, 100} {
		for _, refusing := range []bool{false, true} {
			b.Run(fmt.Sprintf("slots=%d/refusing=%v", n, refusing), func(b *testing.B) {
				h := &testHost{stored: map[uint64]*Copy{}}
				h.q = New(message.Destination{Kind: message.Queue, Name: "q"}, &wall{}, h, 1)
				for i := range n {
					h.q.Attach(&eager{refuse: refusing && i > 0}, Traits{})
				}
				m := &message.Message{}
				copies := make([]*Copy, batch)
				for i := 0; i < b.N; i += batch {
					for k := range copies {
						copies[k] = h.q.Add(m, 0)
					}
					for h.woken {
						h.woken = false
						h.q.Dispatch(NewSlice(h.q.env))
					}
					for _, c := range copies {
						h.q.Remove(c)
					}
				}
			})
		}
	}
}

// wall is an Env over the real clock.
type wall struct{ clock }

var began = time.Now()

func (*wall) Mono() time.Duration { return time.Since(began) }
