package broker

import (
	"container/heap"
	"slices"
)

// share is what one durable subscription has in the log of one of its topics. There is one for each
// pair; what an acknowledgement touches are the shares that it ends, not all of its subscription.
type share struct {
	sub *subscription
	log *destination

	last  uint64 // the highest sequence that sub may keep of the log; 0: it keeps nothing
	until uint64 // <= last: when sub keeps nothing up to it, last is looked at; place in sub.keeps
	at    int    // its place in log.keepers; valid while last > 0
}

// shares are those of one subscription that keep messages: a heap by until.
type shares []*share

func (h shares) Len() int           { return len(h) }
func (h shares) Less(i, j int) bool { return h[i].until < h[j].until }
func (h shares) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *shares) Push(x any)        { *h = append(*h, x.(*share)) }
func (h *shares) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// join has a topic keep its messages for the subscription, which is of the topic.
func (s *subscription) join(topic *destination) {
	h := &share{sub: s, log: topic}
	topic.shares = append(topic.shares, h)
	s.shares = append(s.shares, h)
}

// keep notes that the subscription keeps messages of the log, up to a sequence.
func (h *share) keep(seq uint64) {
	kept := h.last > 0
	if h.last = max(h.last, seq); kept || seq == 0 {
		return
	}
	h.until, h.at = seq, len(h.log.keepers)
	h.log.keepers = append(h.log.keepers, h)
	heap.Push(&h.sub.keeps, h)
}

// let notes that the log's messages are not kept for the subscription any more.
func (h *share) let() {
	t := h.log
	end := len(t.keepers) - 1
	t.keepers[h.at] = t.keepers[end]
	t.keepers[h.at].at = h.at
	t.keepers[end] = nil
	t.keepers = t.keepers[:end]
	h.last, h.until = 0, 0
}

// through ends the shares that the subscription keeps nothing of, as no stored copy of it is below
// head, or it has none at all, and calls f with their logs.
func (s *subscription) through(head uint64, keeps bool, f func(*destination)) {
	for len(s.keeps) > 0 && (!keeps || s.keeps[0].until < head) {
		h := s.keeps[0]
		if keeps && h.last >= head {
			h.until = h.last
			heap.Fix(&s.keeps, 0)
			continue
		}
		heap.Pop(&s.keeps)
		h.let()
		f(h.log)
	}
}

// part takes the subscription off a topic that goes.
func (s *subscription) part(topic *destination) {
	is := func(h *share) bool { return h.log == topic }
	if i := slices.IndexFunc(s.keeps, is); i >= 0 {
		heap.Remove(&s.keeps, i).(*share).let()
	}
	s.shares = slices.DeleteFunc(s.shares, is)
}

// blocked reports whether a subscription keeps a log's head from rising above a sequence. It goes
// on at the one that did so when it was asked last, so that not all of many are asked each time.
func (h *holding) blocked(t *destination, above uint64) bool {
	for n := range t.keepers {
		i := (t.blocker + n) % len(t.keepers)
		if x, keeps := h.head(t.keepers[i].sub.dest); keeps && uint64(x) <= above {
			t.blocker = i
			return true
		}
	}
	return false
}
