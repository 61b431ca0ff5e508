package control

import (
	"fmt"
	"net"
	"os/user"
	"strconv"
	"syscall"
)

// asker names the user and the process at the other end of a connection.
func asker(c net.Conn) string {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ""
	}
	var who *syscall.Ucred
	if raw.Control(func(fd uintptr) {
		who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return ""
	}
	name := strconv.Itoa(int(who.Uid))
	if x, err := user.LookupId(name); err == nil {
		name = x.Username
	}
	return fmt.Sprintf("user %s, pid %d", name, who.Pid)
}
