package transport

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unanswered tells for how long the peer's machine has acknowledged nothing, 0 when nothing waits
// for it to. A machine that is there acknowledges what was sent, or the question whether there is
// room, whatever its program reads. ok is false where that is not known.
func unanswered(c net.Conn) (since time.Duration, ok bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return 0, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); e != nil || err != nil {
		return 0, false
	}
	if info.Unacked == 0 && info.Notsent_bytes == 0 && info.Probes == 0 {
		return 0, true
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, true
}
