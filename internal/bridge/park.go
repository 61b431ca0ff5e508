package bridge

import (
	"sort"
	"time"

	"hopwire/internal/message"
)

// Waits of a parked destination: the first, and the longest.
const (
	parkFirst = time.Second
	parkMax   = time.Minute
)

// park is a destination the peer refuses messages for.
type park struct {
	reason  message.Reason
	text    string
	until   time.Duration
	wait    time.Duration
	probing bool // one copy is on its way to see whether the peer takes it now
}

// parking holds the destinations that wait, so that a refused one parks only itself.
type parking map[message.Destination]*park

// verdict lets one copy through when the wait is over; the others follow if it is taken.
func (p parking) verdict(d message.Destination, now time.Duration) message.Verdict {
	if len(p) == 0 {
		return message.Verdict{}
	}
	k := p[d]
	switch {
	case k == nil:
		return message.Verdict{}
	case k.probing:
		return message.RefusedUntil(k.reason, now+parkFirst)
	case now < k.until:
		return message.RefusedUntil(k.reason, k.until)
	}
	return message.Verdict{}
}

// sent notes that a copy goes out to d.
func (p parking) sent(d message.Destination) {
	if k := p[d]; k != nil {
		k.probing = true
	}
}

// refuse parks d, or parks it for longer. Refusals of copies that were sent before it was parked
// do not count again.
func (p parking) refuse(d message.Destination, r message.Reason, text string,
	now time.Duration) (first bool) {
	k := p[d]
	switch {
	case k == nil:
		p[d] = &park{reason: r, text: text, until: now + parkFirst, wait: parkFirst}
		return true
	case k.probing:
		k.probing = false
		k.wait = min(2*k.wait, parkMax)
		k.until = now + k.wait
	}
	k.reason, k.text = r, text
	return false
}

// taken ends the wait of d; true when it had been parked.
func (p parking) taken(d message.Destination) bool {
	if len(p) == 0 || p[d] == nil || !p[d].probing {
		return false
	}
	delete(p, d)
	return true
}

// Parked is a destination that waits because the peer refuses its messages.
type Parked struct {
	Destination message.Destination
	Reason      message.Reason
	Text        string        // what the peer said
	Until       time.Duration // on the loop's monotonic clock
}

// unprobe gives up waiting for the copy that tries d.
func (p parking) unprobe(d message.Destination) {
	if k := p[d]; k != nil {
		k.probing = false
	}
}

func (p parking) rows() []Parked {
	var out []Parked
	for d, k := range p {
		out = append(out, Parked{Destination: d, Reason: k.reason, Text: k.text, Until: k.until})
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Destination.String() < out[j].Destination.String()
	})
	return out
}
