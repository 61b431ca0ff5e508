//go:build linux || darwin

package transport

import "syscall"

// RaiseOpenFiles raises the process's limit of open files to what the system allows it and gives
// the limit. Each connection needs one.
func RaiseOpenFiles() (limit uint64, err error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, err
	}
	if r.Cur >= r.Max {
		return r.Cur, nil
	}
	before := r.Cur
	r.Cur = r.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return before, err
	}
	return r.Cur, nil
}

// OpenFileLimit is the process's limit of open files, 0 when it is not known.
func OpenFileLimit() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return r.Cur
}
