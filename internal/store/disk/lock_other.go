//go:build !linux

package disk

import (
	"io"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile takes the lock that pebble's file system offers. On systems without open file
// description locks a second open by the same process is excluded by pebble itself.
func lockFile(dir string) (lock io.Closer, holder string, err error) {
	lock, err = vfs.Default.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, "", errInUse
	}
	return lock, "", nil
}

// locked takes the lock and gives it back.
func locked(name string) bool {
	lock, err := vfs.Default.Lock(name)
	return err != nil || lock.Close() != nil
}
