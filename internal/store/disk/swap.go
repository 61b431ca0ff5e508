package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A repair makes its tables in newName. When they are whole they are called readyName, and then the
// old ones get a name that begins with damagedName, and the new ones theirs. So there is no moment
// at which neither of both is there as a whole under a name that tells.
const (
	newName     = dbName + ".new"
	readyName   = dbName + ".ready"
	damagedName = dbName + ".damaged-"
)

// swap puts new tables in the place of the old ones.
func swap(fs vfs.FS, dir, kept string) error {
	for _, x := range [][2]string{{newName, readyName}, {dbName, kept}, {readyName, dbName}} {
		if err := syncDir(fs, fs.PathJoin(dir, x[0])); err != nil {
			return err
		}
		if err := fs.Rename(fs.PathJoin(dir, x[0]), fs.PathJoin(dir, x[1])); err != nil {
			return err
		}
		if err := syncDir(fs, dir); err != nil {
			return err
		}
	}
	return nil
}

// settle ends what a repair that was killed began: it goes on when the old tables were moved away,
// and is undone when they were not.
func settle(fs vfs.FS, dir string) error {
	ready := fs.PathJoin(dir, readyName)
	_, noDB := fs.Stat(fs.PathJoin(dir, dbName))
	_, noReady := fs.Stat(ready)
	if missing(noDB) && noReady == nil {
		return errors.Join(fs.Rename(ready, fs.PathJoin(dir, dbName)), syncDir(fs, dir))
	}
	for _, left := range []string{ready, fs.PathJoin(dir, newName)} {
		if _, err := fs.Stat(left); err == nil {
			if err := errors.Join(fs.RemoveAll(left), syncDir(fs, dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

func missing(err error) bool { return os.IsNotExist(err) || errors.Is(err, os.ErrNotExist) }

// leftByRepair tells of tables from before a repair; "" when there are none.
func leftByRepair(fs vfs.FS, dir string) string {
	names, err := fs.List(dir)
	if err != nil {
		return ""
	}
	var left []string
	for _, name := range names {
		if strings.HasPrefix(name, damagedName) {
			left = append(left, fs.PathJoin(dir, name))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, from before a repair, takes room: remove it when nobody needs it any"+
		" more", strings.Join(left, ", "))
}
