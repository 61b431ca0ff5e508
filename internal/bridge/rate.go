package bridge

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// rates are the windows of a demand's destinations whose policy limits their rate: a pattern has
// many, each with its own.
type rates map[message.Destination]*rateWindow

// rateWindow is what was taken since start, under the policy at the last take.
type rateWindow struct {
	limit  int
	length time.Duration
	start  time.Duration
	taken  int
}

// ratesKept is how many windows there may be before those that are over are looked for.
const ratesKept = 100

func (w *rateWindow) over(now time.Duration) bool { return now >= w.start+w.length }

// verdict refuses copies of a destination whose window is used up, until its end.
func (r rates) verdict(dest message.Destination, now time.Duration) message.Verdict {
	w := r[dest]
	if w == nil || w.over(now) || w.taken < w.limit {
		return message.Verdict{}
	}
	return message.RefusedUntil(message.RateLimit, w.start+w.length)
}

// take counts one copy. A policy that changed counts for the window that runs.
func (r *rates) take(dest message.Destination, p network.Replay, now time.Duration) {
	w := (*r)[dest]
	if p.RateLimit <= 0 {
		if w != nil {
			delete(*r, dest)
		}
		return
	}
	if w == nil {
		if *r == nil {
			*r = rates{}
		}
		r.tidy(now)
		w = &rateWindow{start: now}
		(*r)[dest] = w
	}
	if w.over(now) {
		w.start, w.taken = now, 0
	}
	w.taken++
	w.limit, w.length = p.RateLimit, p.RateDuration
	if w.length <= 0 {
		w.length = time.Second
	}
}

// tidy drops windows that are over when there are many.
func (r rates) tidy(now time.Duration) {
	if len(r) < ratesKept {
		return
	}
	for d, w := range r {
		if w.over(now) {
			delete(r, d)
		}
	}
}
