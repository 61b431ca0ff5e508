package files

import (
	"errors"
	"fmt"
	"slices"
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

	pebbleLock = "LOCK"           // is in each of pebble's folders
	made       = "made-by-repair" // is in a folder that a repair made, until that has its name
)

// Make makes the folder of new tables. What is there already is somebody else's.
func Make(fs vfs.FS, dir string) error {
	folder := fs.PathJoin(dir, New)
	if err := MakeDir(fs, folder); err != nil {
		return err
	}
	f, err := fs.Create(fs.PathJoin(folder, made), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), SyncDir(fs, folder))
}

// foreign gives what is in a folder that no repair made; nothing when it is all a repair's, or
// there is nothing.
func foreign(fs vfs.FS, folder string) (name string, err error) {
	names, err := fs.List(folder)
	if Missing(err) {
		return "", nil
	}
	if err != nil || len(names) == 0 {
		return "", err
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(folder, name))
		if err == nil && info.IsDir() || !isOurs(name) && name != made &&
			name != pebbleLock && !strings.HasPrefix(name, "temporary.") {
			return name, nil
		}
	}
	if !slices.Contains(names, made) {
		return names[0], nil
	}
	return "", nil
}

// Foreign tells of a folder in the place of a repair's that has what no repair made; "" for none.
func Foreign(fs vfs.FS, dir string) string {
	for _, name := range []string{New, ready} {
		folder := fs.PathJoin(dir, name)
		if _, err := fs.Stat(folder); err != nil {
			continue
		}
		if in, err := foreign(fs, folder); err != nil || in != "" {
			return fmt.Sprintf("%s is kept, as nothing tells that a repair made what is in it (%s), and"+
				" keeps repairs from being made: move it away", folder, in)
		}
	}
	return ""
}

// Swap puts new tables in the place of the old ones.
func Swap(fs vfs.FS, dir, kept string) error {
	for i, x := range [][2]string{{New, ready}, {DB, kept}, {ready, DB}} {
		if err := SyncDir(fs, fs.PathJoin(dir, x[0])); err != nil {
			return err
		}
		if err := fs.Rename(fs.PathJoin(dir, x[0]), fs.PathJoin(dir, x[1])); err != nil {
			return err
		}
		if err := SyncDir(fs, dir); err != nil {
			return err
		}
		if i == 2 {
			unmark(fs, dir)
		}
	}
	return nil
}

// unmark removes what marks tables as made by a repair from those that have their name. It harms
// nobody where it stays.
func unmark(fs vfs.FS, dir string) { _ = fs.Remove(fs.PathJoin(dir, DB, made)) }

// Settle ends what a repair that was killed began: it goes on when the old tables were moved away,
// and is undone when they were not. What no repair made stays; see Foreign.
func Settle(fs vfs.FS, dir string) error {
	ready := fs.PathJoin(dir, ready)
	_, noDB := fs.Stat(fs.PathJoin(dir, DB))
	_, noReady := fs.Stat(ready)
	if Missing(noDB) && noReady == nil {
		defer unmark(fs, dir)
		return errors.Join(fs.Rename(ready, fs.PathJoin(dir, DB)), SyncDir(fs, dir))
	}
	for _, left := range []string{ready, fs.PathJoin(dir, New)} {
		if _, err := fs.Stat(left); err == nil {
			if in, err := foreign(fs, left); err != nil || in != "" {
				continue
			}
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
