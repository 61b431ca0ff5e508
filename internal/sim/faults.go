package sim

import "time"

// fault makes something go wrong, and gives how to make it good again.
type fault func(r *runner) (repair func())

// startFaults plans the faults that the plan has.
func (r *runner) startFaults() {
	var kinds []fault
	for _, k := range []struct {
		on bool
		f  fault
	}{{r.p.Cuts, cutLink}, {r.p.Lingers, lingerLink}, {r.p.Clogs, clogLink}, {r.p.Crashes, crashNode},
		{r.p.Stops, stopNode}, {r.p.FullDisks, fillDisk}, {r.p.SlowDisks, slowDisk},
		{r.p.Jumps, jumpClock}, {r.p.Locks, lockNode}, {r.p.BadReads, spoilReads}} {
		if k.on {
			kinds = append(kinds, k.f)
		}
	}
	if len(kinds) == 0 {
		return
	}
	var next func()
	next = func() {
		if !r.faulty {
			return
		}
		if repair := kinds[r.w.rnd.IntN(len(kinds))](r); repair != nil {
			r.w.After(r.w.within(4*time.Second), func() {
				if r.faulty {
					repair()
				}
			})
		}
		r.w.After(r.w.within(r.p.Length/4), next)
	}
	r.w.After(r.w.within(r.p.Length/4), next)
}

func (r *runner) anyPair() (a, b string) {
	pairs := r.p.pairs()
	x := pairs[r.w.rnd.IntN(len(pairs))]
	a, b = nameOf(x[0]), nameOf(x[1])
	if r.w.rnd.IntN(2) == 0 {
		return b, a
	}
	return a, b
}

func cutLink(r *runner) func() {
	a, b := r.anyPair()
	if r.w.rnd.IntN(2) == 0 {
		r.w.Reset(a, b, r.p.Detect)
		return nil
	}
	r.w.Cut(a, b, r.p.Detect)
	return func() { r.w.Heal(a, b) }
}

func lingerLink(r *runner) func() {
	a, b := r.anyPair()
	r.w.Linger(a, b, r.w.within(4*time.Second))
	return nil
}

func clogLink(r *runner) func() {
	a, b := r.anyPair()
	r.w.Clog(a, b)
	return func() { r.w.Heal(a, b) }
}

func crashNode(r *runner) func() {
	n := r.anyNode()
	n.Crash(r.w.rnd.IntN(2) == 0, r.p.Detect)
	return n.Start
}

func stopNode(r *runner) func() {
	n := r.anyNode()
	if !n.Up() {
		return nil
	}
	n.Stop(func() {
		if r.faulty {
			r.w.After(r.w.within(2*time.Second), n.Start)
			return
		}
		n.Start()
	})
	return nil
}

func fillDisk(r *runner) func() {
	n := r.anyNode()
	used := n.disk.store.Space().UsedBytes
	n.Capacity(used+int64(r.w.rnd.IntN(20_000)), 8_000)
	if n.spool != nil {
		n.SpoolCapacity(n.spool.store.Space().UsedBytes+int64(r.w.rnd.IntN(20_000)), 8_000)
	}
	return func() { n.Capacity(0, 0); n.SpoolCapacity(0, 0) }
}

func slowDisk(r *runner) func() {
	n := r.anyNode()
	n.Slow(r.w.within(time.Second))
	return func() { n.Slow(0) }
}

func spoilReads(r *runner) func() {
	n := r.anyNode()
	n.Spoil(r.w.rnd.IntN(101))
	return func() { n.Spoil(0) }
}

func jumpClock(r *runner) func() {
	n := r.anyNode()
	n.Skew(r.w.within(2*time.Hour) - time.Hour)
	return nil
}

// lockNode makes a broker refuse bridges; links that are there end.
func lockNode(r *runner) func() {
	n := r.anyNode()
	n.Lock(true)
	for _, x := range r.p.pairs() {
		if a, b := nameOf(x[0]), nameOf(x[1]); a == n.cfg.Name || b == n.cfg.Name {
			r.w.Reset(a, b, r.p.Detect)
		}
	}
	return func() { n.Lock(false) }
}
