package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store/disk/files"
)

// acquire takes the folder's lock, waiting for it unless NoWait is set.
func (o *Options) acquire(ctx context.Context) (io.Closer, error) {
	told := false
	for {
		lock, holder, err := o.tryLock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, files.ErrInUse) {
			return nil, message.Errorf(message.Unavailable, "store %s: cannot lock it: %w", o.Dir, err)
		}
		if holder == "" {
			holder = "another process"
		}
		if o.NoWait {
			return nil, message.Errorf(message.Unavailable,
				"store %s: in use by %s: stop it or use another folder", o.Dir, holder)
		}
		if !told && o.OnWait != nil {
			told = true
			o.OnWait(fmt.Sprintf("store %s: in use by %s: waiting as slave until it is free",
				o.Dir, holder))
		}
		select {
		case <-ctx.Done():
			return nil, message.Errorf(message.Unavailable,
				"store %s: still in use by %s: %w", o.Dir, holder, context.Cause(ctx))
		case <-time.After(o.Poll):
		}
	}
}

// tryLock gives the lock, or files.ErrInUse with the holder as far as it is known.
func (o *Options) tryLock() (lock io.Closer, holder string, err error) {
	if o.FS == nil {
		return files.Lock(o.Dir)
	}
	lock, err = o.FS.Lock(o.FS.PathJoin(o.Dir, files.LockName))
	if err != nil {
		return nil, "", files.ErrInUse
	}
	return lock, "", nil
}

// Exists reports whether a folder has a store of Hopwire.
func Exists(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, formatName))
	return err == nil && strings.HasPrefix(string(text), formatLine)
}

// InUse reports whether somebody has a folder's lock. It takes the lock from nobody and writes
// nothing; a folder that cannot be looked at counts as in use.
func InUse(dir string) bool { return files.Locked(filepath.Join(dir, files.LockName)) }
