//go:build !linux && !darwin

package transport

// RaiseOpenFiles does nothing where open files are not limited in this way.
func RaiseOpenFiles() (limit uint64, err error) { return 0, nil }

// OpenFileLimit is 0: not known.
func OpenFileLimit() uint64 { return 0 }
