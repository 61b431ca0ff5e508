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

// lockFile takes an open file description lock on the whole lock file. Such a lock conflicts with
// the POSIX locks that Java takes, which flock(2) does not, and with a second one of this process.
func lockFile(dir string) (lock io.Closer, holder string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		text := make([]byte, 200)
		n, _ := f.ReadAt(text, 0)
		f.Close()
		line, _, _ := strings.Cut(string(text[:n]), "\n")
		if !strings.HasPrefix(line, "pid ") {
			line = "" // a Java broker writes its time here
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
