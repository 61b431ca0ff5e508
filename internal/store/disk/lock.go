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
)

// lockName is the file whose lock owns the folder. KahaDB's is called the same, so that a Java
// broker and this one exclude each other.
const lockName = "lock"

// errInUse says that somebody else holds the lock.
var errInUse = errors.New("in use")

// acquire takes the folder's lock, waiting for it unless NoWait is set.
func (o *Options) acquire(ctx context.Context) (io.Closer, error) {
	told := false
	for {
		lock, holder, err := o.tryLock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, errInUse) {
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
			o.OnWait(fmt.Sprintf("store %s: in use by %s: waiting as slave until it is free"+
				" (--no-wait exits instead)", o.Dir, holder))
		}
		select {
		case <-ctx.Done():
			return nil, message.Errorf(message.Unavailable,
				"store %s: still in use by %s: %w", o.Dir, holder, context.Cause(ctx))
		case <-time.After(o.Poll):
		}
	}
}

// tryLock gives the lock, or errInUse with the holder as far as it is known.
func (o *Options) tryLock() (lock io.Closer, holder string, err error) {
	if o.FS == nil {
		return lockFile(o.Dir)
	}
	lock, err = o.FS.Lock(o.FS.PathJoin(o.Dir, lockName))
	if err != nil {
		return nil, "", errInUse
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
func InUse(dir string) bool { return locked(filepath.Join(dir, lockName)) }
