package files

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DB is pebble's folder inside the store's.
const DB = "db"

// A repair makes its tables in New. When they are whole they are called ready, and then the
// old ones get a name that begins with Damaged, and the new ones theirs. So there is no moment
// at which neither of both is there as a whole under a name that tells.
const (
	New     = DB + ".new"
	ready   = DB + ".ready"
	Damaged = DB + ".damaged-"
)

// Swap puts new tables in the place of the old ones.
func Swap(fs vfs.FS, dir, kept string) error {
	for _, x := range [][2]string{{New, ready}, {DB, kept}, {ready, DB}} {
		if err := SyncDir(fs, fs.PathJoin(dir, x[0])); err != nil {
			return err
		}
		if err := fs.Rename(fs.PathJoin(dir, x[0]), fs.PathJoin(dir, x[1])); err != nil {
			return err
		}
		if err := SyncDir(fs, dir); err != nil {
			return err
		}
	}
	return nil
}

// Settle ends what a repair that was killed began: it goes on when the old tables were moved away,
// and is undone when they were not.
func Settle(fs vfs.FS, dir string) error {
	ready := fs.PathJoin(dir, ready)
	_, noDB := fs.Stat(fs.PathJoin(dir, DB))
	_, noReady := fs.Stat(ready)
	if Missing(noDB) && noReady == nil {
		return errors.Join(fs.Rename(ready, fs.PathJoin(dir, DB)), SyncDir(fs, dir))
	}
	for _, left := range []string{ready, fs.PathJoin(dir, New)} {
		if _, err := fs.Stat(left); err == nil {
			if err := errors.Join(fs.RemoveAll(left), SyncDir(fs, dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Left tells of tables from before a repair; "" when there are none.
func Left(fs vfs.FS, dir string) string {
	names, err := fs.List(dir)
	if err != nil {
		return ""
	}
	var left []string
	for _, name := range names {
		if strings.HasPrefix(name, Damaged) {
			left = append(left, fs.PathJoin(dir, name))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, from before a repair, takes room: remove it when nobody needs it any"+
		" more", strings.Join(left, ", "))
}
