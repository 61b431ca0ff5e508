package cli

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The runtime makes zeros of memory that was in use before: that must not stay resident.
func TestNoMemoryIsBehindTheCushion(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	func() {
		used := make([]byte, cushionBytes)
		for i := range used {
			used[i] = 1
		}
		runtime.KeepAlive(used)
	}()
	runtime.GC()
	c := cushion()
	pages := make([]byte, len(c)/unix.Getpagesize())
	if _, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&c[0])), uintptr(len(c)),
		uintptr(unsafe.Pointer(&pages[0]))); err != 0 {
		t.Skip("the system does not tell: ", err)
	}
	resident := 0
	for _, p := range pages {
		resident += int(p & 1)
	}
	if resident > len(pages)/100 {
		t.Errorf("%d of %d pages are resident", resident, len(pages))
	}
}
