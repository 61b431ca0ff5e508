package disk

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store/disk/files"
)

// The formats of a folder. It begins with the first, and is raised by the first Apply that puts
// what programs of the last cannot read: to the second by a message of a log, a subscription, or a
// header that tells what clients may have had (DeliveredBelow), to the third by a prepared branch,
// to the fourth by the numbers of a producer, to the fifth by a body in pieces. Until then an older
// program may have it back.
const (
	formatFirst  = 1
	formatSecond = 2
	formatThird  = 3
	formatFourth = 4
	formatFifth  = 5
	formatNewest = formatFifth
)

const (
	formatName = "format" // the file that tells the format of the folder
	formatLine = "hopwire store "
)

// checkFormat gives the format of a folder. It refuses the one of a newer program, and marks a new
// one. The format is marked when there is a note beside pebble's files: a folder that has the one
// without the other has lost what was in it.
func checkFormat(fs vfs.FS, dir string) (int, error) {
	has, err := files.Has(fs, dir)
	if err != nil {
		return 0, message.Errorf(message.Unavailable, "store %s: %w", dir, err)
	}
	name := fs.PathJoin(dir, formatName)
	f, err := files.Open(fs, name)
	if files.Missing(err) {
		if has == files.OfPebble {
			return 0, badFormat(dir, "is missing beside "+files.DB)
		}
		return formatFirst, begin(fs, dir)
	}
	if err != nil {
		return 0, message.Errorf(message.Unavailable, "store %s: %w", dir, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 100))
	if err != nil {
		return 0, message.Errorf(message.Unavailable, "store %s: %w", dir, err)
	}
	var n int
	line := strings.TrimSpace(string(text))
	if _, err := fmt.Sscanf(line, formatLine+"%d", &n); err != nil {
		if has != files.OfPebble {
			return 0, message.Errorf(message.Corrupt, "store %s: %s says %q: this is no Hopwire store",
				dir, formatName, line)
		}
		return 0, badFormat(dir, fmt.Sprintf("says %q, which is no format of a store", line))
	}
	if n > formatNewest {
		return 0, message.Errorf(message.IllegalState,
			"store %s: it has format %d, this program knows up to %d: use the newer program",
			dir, n, formatNewest)
	}
	if has == files.Nothing {
		return 0, message.Errorf(message.Corrupt, "store %s: %s is empty or missing, and the file %s"+
			" says that a store was there: put a copy of it in its place, or remove %s to begin anew",
			dir, files.DB, formatName, formatName)
	}
	return n, nil
}

func badFormat(dir, what string) error {
	return message.Errorf(message.Corrupt, "store %s: the file %s %s: run hopwire repair FILE, which"+
		" makes it anew", dir, formatName, what)
}

// begin marks a new folder.
func begin(fs vfs.FS, dir string) error {
	db := fs.PathJoin(dir, files.DB)
	err := files.MakeDir(fs, db)
	if err == nil {
		var k *files.Known
		if k, err = files.OpenKnown(fs, db, files.Note{}); err == nil {
			err = k.Close()
		}
	}
	if err != nil {
		return message.Errorf(message.Unavailable, "store %s: cannot make it: %w", dir, err)
	}
	return writeFormat(fs, dir, formatFirst)
}

// mendFormat makes the format of a folder anew that has a store and no format that makes sense. It
// is the newest: which it was is not known, and an older program may not read it.
func mendFormat(fs vfs.FS, dir string) (n int, told string, err error) {
	n, err = checkFormat(fs, dir)
	if has, no := files.Has(fs, dir); message.KindOf(err) != message.Corrupt || no != nil ||
		has != files.OfPebble {
		return n, "", err
	}
	return formatNewest, "the file " + formatName + " made no sense or was missing, and was made anew",
		writeFormat(fs, dir, formatNewest)
}

// raiseFormat keeps older programs from a folder in which they would misread what is to come. It
// runs in the writer.
func (s *Store) raiseFormat(n int) error {
	if s.format >= n {
		return nil
	}
	if err := writeFormat(s.fs, s.opts.Dir, n); err != nil {
		return err
	}
	s.format = n
	return nil
}

func writeFormat(fs vfs.FS, dir string, n int) error {
	name := fs.PathJoin(dir, formatName)
	write := func() error {
		f, err := fs.Create(name+".new", vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "%s%d\n", formatLine, n)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := fs.Rename(name+".new", name); err != nil {
			return err
		}
		return files.SyncDir(fs, dir)
	}
	if err := write(); err != nil {
		return message.Errorf(message.Unavailable, "store %s: cannot write its format: %w", dir, err)
	}
	return nil
}
