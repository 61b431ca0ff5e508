package cli

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestMemoryIsGivenBackOnceItIsCalmAfterMuchWasAllocated(t *testing.T) {
	const mib = 1 << 20
	var tr trimmer
	for i, c := range []struct {
		allocated uint64
		want      bool
	}{
		{63 * mib, false}, {63*mib + 1000, false}, // little
		{1000 * mib, false}, {1010 * mib, false}, {1011 * mib, true}, // much, and then calm
		{1011 * mib, false}, {1012 * mib, false}, {1013 * mib, false}, // once
		{2000 * mib, false}, {2000 * mib, true},
	} {
		if got := tr.due(c.allocated); got != c.want {
			t.Errorf("[%d] after %d MiB: %t", i, c.allocated/mib, got)
		}
	}
}

func TestTheCushionLetsGarbageLie(t *testing.T) {
	held := cushion()
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	if g := goal[0].Value.Uint64(); g < 2*cushionBytes {
		t.Errorf("garbage is collected when the heap has %d bytes", g)
	}
	runtime.KeepAlive(held)
}
