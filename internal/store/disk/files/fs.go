package files

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Missing reports whether an error says that a file is not there.
func Missing(err error) bool { return os.IsNotExist(err) || errors.Is(err, os.ErrNotExist) }

// Read gives what a file has; what is no file is missing.
func Read(fs vfs.FS, path string) ([]byte, error) {
	f, err := Open(fs, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// MakeDir makes a folder and those above it, durably.
func MakeDir(fs vfs.FS, dir string) error {
	var parents []string
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || d == fs.PathDir(d) {
			break
		}
		parents = append(parents, fs.PathDir(d))
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range parents {
		if err := SyncDir(fs, p); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes names in a folder durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
