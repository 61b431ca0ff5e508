package files

import (
	"cmp"
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

// Lock takes two locks. One is on the folder itself, which stays when somebody removes the
// lock file of a running broker. The other is an open file description lock on the whole lock file,
// which conflicts with the POSIX locks that Java takes, as flock(2) does not. Both conflict with a
// second one of this process.
func Lock(dir string) (lock io.Closer, holder string, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	// Other failures are of file systems that have no such lock on a folder.
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		holder := holderIn(filepath.Join(dir, LockName))
		if pid := flockHolder(d); holder == "" && pid != "" {
			holder = "pid " + pid + ", whose lock file was removed"
		}
		d.Close()
		return nil, holder, ErrInUse
	}
	f, holder, err := lockInside(dir)
	if err != nil {
		d.Close()
		return nil, holder, err
	}
	return locks{f, d}, "", nil
}

// locks are the locks of a folder.
type locks struct{ file, dir *os.File }

// Close implements io.Closer.
func (l locks) Close() error { return errors.Join(l.file.Close(), l.dir.Close()) }

func lockInside(dir string) (f *os.File, holder string, err error) {
	f, err = os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		defer f.Close()
		if pid := posixHolder(f); pid > 0 {
			return nil, fmt.Sprintf("pid %d that is no Hopwire%s", pid, advice), ErrInUse
		}
		return nil, cmp.Or(holderIn(f.Name()), "another process"+advice), ErrInUse
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

// holderIn gives who has a lock, as its file says; "" when it does not.
func holderIn(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, 200)
	n, _ := f.ReadAt(text, 0)
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	if !strings.HasPrefix(line, "pid ") {
		return "" // a Java broker writes its time here
	}
	return line
}

// flockHolder gives the process that has the lock of an open folder, as the system lists it; ""
// when nobody has it, or nobody knows.
func flockHolder(d *os.File) (pid string) {
	var st unix.Stat_t
	text, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(d.Fd()), &st) != nil {
		return ""
	}
	// 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF
	at := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "FLOCK" && f[5] == at {
			return f[4]
		}
	}
	return ""
}

// Locked asks for a lock as Lock takes it, without taking it.
func Locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return true
	}
	defer f.Close()
	if d, err := os.Open(filepath.Dir(name)); err == nil {
		defer d.Close()
		if flockHolder(d) != "" {
			return true
		}
	}
	held := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &held)
	return err != nil || held.Type != unix.F_UNLCK
}
