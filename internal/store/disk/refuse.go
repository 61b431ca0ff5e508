package disk

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store/disk/files"
)

// remedy ends what is told of damage that keeps a store from being opened.
const remedy = "run hopwire repair FILE, which copies what can be read, or put a copy of the" +
	" folder from before the damage in its place"

// damagedStore is an error of a store that cannot be opened as it is.
func damagedStore(dir, what string) error {
	return message.Errorf(message.Corrupt, "store %s: %s; nothing was changed: %s", dir, what, remedy)
}

// look gives the note of pebble's files, or an error when they are not as it says.
func (s *Store) look(fs vfs.FS, db string) (files.Note, error) {
	noted, bad, err := files.Look(fs, db)
	if err != nil {
		return files.Note{}, message.Errorf(message.Unavailable, "store %s: %w", s.opts.Dir, err)
	}
	if bad != "" {
		return files.Note{}, damagedStore(s.opts.Dir, bad)
	}
	if name, why := files.BadOptions(fs, db); why != nil {
		s.warn(fmt.Sprintf("%s/%s is damaged, and made anew: %s", files.DB, name,
			oneLined(why.Error())))
		if err := fs.Remove(fs.PathJoin(db, name)); err != nil {
			return files.Note{}, message.Errorf(message.Unavailable, "store %s: %w", s.opts.Dir, err)
		}
	}
	return noted, nil
}

// openError is what is told when pebble cannot open its files.
func (s *Store) openError(err error) error {
	if files.LacksTable(err) {
		return damagedStore(s.opts.Dir, "a table is missing, or has another length than it had, and only"+
			" a copy of it has what it had: "+oneLine{err}.Error())
	}
	if files.IsDamage(err) {
		return damagedStore(s.opts.Dir, "what is in db is damaged: "+oneLine{err}.Error())
	}
	return message.Errorf(message.Unavailable, "store %s: cannot open it: %w", s.opts.Dir, err)
}
