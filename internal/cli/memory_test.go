package cli

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
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
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	held := cushion()
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	if g := goal[0].Value.Uint64(); g < 2*cushionBytes {
		t.Errorf("garbage is collected when the heap has %d bytes", g)
	}
	runtime.KeepAlive(held)
}

func TestWhoSaysHowMuchGarbageMayLieHasNoCushion(t *testing.T) {
	for name, value := range map[string]string{"GOGC": "400", "GOMEMLIMIT": "64MiB"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, value)
			if c := cushion(); c != nil {
				t.Errorf("it has %d bytes", len(c))
			}
		})
	}
}

func TestNoMemoryIsBehindWhatIsVacated(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is given back on Linux alone")
	}
	b := make([]byte, cushionBytes)
	for i := range b {
		b[i] = 1
	}
	before := residentBytes(t)
	vacate(b)
	if freed := before - residentBytes(t); freed < cushionBytes/2 {
		t.Errorf("%d bytes less are resident", freed)
	}
	if b[0] != 0 || b[len(b)-1] != 0 {
		t.Error("it is not zeros")
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
