package cli

import "golang.org/x/sys/unix"

// vacate gives back the memory behind b, whose bytes are zeros then. Where the system refuses, it
// only stays resident.
func vacate(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
