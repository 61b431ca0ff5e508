package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// advice is for whoever meets a lock that no Hopwire is known to have.
const advice = " (an ActiveMQ? stop it first)"

// lockFile takes an open file description lock on the whole lock file. Such a lock conflicts with
// the POSIX locks that Java takes, which flock(2) does not, and with a second one of this process.
func lockFile(dir string) (lock io.Closer, holder string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		if pid := posixHolder(f); pid > 0 {
			f.Close()
			return nil, fmt.Sprintf("pid %d that is no Hopwire%s", pid, advice), errInUse
		}
		text := make([]byte, 200)
		n, _ := f.ReadAt(text, 0)
		f.Close()
		line, _, _ := strings.Cut(string(text[:n]), "\n")
		if !strings.HasPrefix(line, "pid ") {
			line = "another process" + advice // a Java broker writes its time here
		}
		return nil, line, errInUse
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	host, _ := os.Hostname()
	text := fmt.Sprintf("pid %d on %s\n", os.Getpid(), host)
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(text), 0) // for people only; a full disk is no reason to fail
	}
	return f, "", nil
}

// posixHolder is the process that has the file locked as Java does; 0 when none is known. Locks of
// Hopwire belong to no process.
func posixHolder(f *os.File) int32 {
	held := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &held) != nil || held.Type == unix.F_UNLCK {
		return 0
	}
	return held.Pid
}

// locked asks for a lock as lockFile takes it, without taking it.
func locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return true
	}
	defer f.Close()
	held := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &held)
	return err != nil || held.Type != unix.F_UNLCK
}
