//go:build !linux

package files

import (
	"io"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Lock takes the lock that pebble's file system offers. On systems without open file
// description locks a second open by the same process is excluded by pebble itself.
func Lock(dir string) (lock io.Closer, holder string, err error) {
	lock, err = vfs.Default.Lock(filepath.Join(dir, LockName))
	if err != nil {
		return nil, "", ErrInUse
	}
	return lock, "", nil
}

// Locked takes the lock and gives it back.
func Locked(name string) bool {
	lock, err := vfs.Default.Lock(name)
	return err != nil || lock.Close() != nil
}
