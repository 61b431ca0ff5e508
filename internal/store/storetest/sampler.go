package storetest

import "sync"

// sampler takes some of the points that a world offers: all at first, then ever fewer, so that a
// long run stays affordable and every kind of point is met over many runs.
type sampler struct {
	mu      sync.Mutex
	take    func()
	points  int
	taken   int
	skip    int
	stopped bool
}

func newSampler(take func(), skip int) *sampler { return &sampler{take: take, skip: skip} }

func (s *sampler) point() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points++
	if s.stopped || s.taken >= 4 || s.points%(s.skip+1) != 0 {
		return
	}
	s.taken++
	s.take()
}

func (s *sampler) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *sampler) stop() { s.locked(func() { s.stopped = true }) }
