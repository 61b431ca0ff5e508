package transport

import (
	"net"
	"syscall"
)

// What listeners leave of the limit of open files for all else (the store and its tables, the
// spool, the control socket, bridges, who is refused): a quarter, of small limits more.
const (
	reserveParts = 4
	reserveLeast = 256
	reserveMost  = 2200
)

// ReservedFiles is how many of a limit of open files listeners leave to others; who is accepted
// beyond the rest is refused at once.
func ReservedFiles(limit uint64) uint64 {
	return min(max(limit/reserveParts, min(limit/2, reserveLeast)), reserveMost)
}

// leavesTooFew reports whether too few files can be opened beside this connection. The system gives
// the lowest descriptor that is free, so its number is how many are in use.
func leavesTooFew(c net.Conn, limit uint64) bool {
	x, ok := c.(syscall.Conn)
	if !ok || limit == 0 {
		return false
	}
	raw, err := x.SyscallConn()
	if err != nil {
		return false
	}
	few := false
	err = raw.Control(func(fd uintptr) { few = uint64(fd) >= limit-ReservedFiles(limit) })
	return err == nil && few
}
