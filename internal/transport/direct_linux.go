package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// direct does a TCP socket's reads and writes by bare system calls, which cannot block. Go's own
// tell the scheduler each time that they might. In a process that was at rest this wakes its
// monitor thread, which then looks around for a while: half of what a lone message costs.
//
// A busy process needs its monitor. So reads that do not wait for data are not all bare, nor are
// the writer's writes, and package loop shows that it is busy by itself.
type direct struct {
	raw syscall.RawConn // nil when this is no TCP socket

	in       []byte // of the reader
	readable func(fd uintptr) bool
	n        int
	errno    syscall.Errno
	hot      int // bare reads in a row that did not wait

	out      []byte // of whoever writes
	writable func(fd uintptr) bool
	written  int
}

const (
	// hotReads is how many reads in a row may be bare without one having to wait.
	hotReads = 4
	// bareBytes bounds what a bare call moves: nothing stops the goroutine meanwhile.
	bareBytes = 64 << 10
)

func (d *direct) init(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	d.raw, d.readable, d.writable = raw, d.tryRead, d.tryWrite
}

// able tells whether write can do anything.
func (d *direct) able() bool { return d.raw != nil }

// read is c's Read.
func (d *direct) read(c net.Conn, p []byte) (int, error) {
	if !d.able() || len(p) == 0 || len(p) > bareBytes || d.hot == hotReads {
		d.hot = 0
		return c.Read(p)
	}
	d.in = p
	err := d.raw.Read(d.readable)
	d.in = nil
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			op.Op = "read"
		}
		return 0, err
	}
	switch {
	case d.errno != 0:
		return 0, &net.OpError{
			Op: "read", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(),
			Err: os.NewSyscallError("read", d.errno),
		}
	case d.n == 0:
		return 0, io.EOF
	}
	return d.n, nil
}

func (d *direct) tryRead(fd uintptr) bool {
	d.n, d.errno = bare(syscall.SYS_READ, fd, d.in)
	if d.errno == syscall.EAGAIN {
		d.hot = 0
		return false
	}
	d.hot++
	return true
}

// write writes what the socket takes without waiting, and gives how much that was. What goes wrong
// the next ordinary write finds as well.
func (d *direct) write(p []byte) int {
	if !d.able() || len(p) == 0 {
		return 0
	}
	d.out, d.written = p[:min(len(p), bareBytes)], 0
	_ = d.raw.Write(d.writable)
	d.out = nil
	return d.written
}

func (d *direct) tryWrite(fd uintptr) bool {
	if n, errno := bare(syscall.SYS_WRITE, fd, d.out); errno == 0 {
		d.written = n
	}
	return true
}

// bare reads or writes once. p is not empty.
func bare(call, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}
