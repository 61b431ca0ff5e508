package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
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
// one.
func checkFormat(fs vfs.FS, dir string) (int, error) {
	name := fs.PathJoin(dir, formatName)
	f, err := fs.Open(name)
	if os.IsNotExist(err) || errors.Is(err, os.ErrNotExist) {
		if _, err := fs.Stat(fs.PathJoin(dir, dbName)); err == nil {
			return 0, message.Errorf(message.Corrupt,
				"store %s: the file %s is missing beside %s: restore it from a backup",
				dir, formatName, dbName)
		}
		return formatFirst, writeFormat(fs, dir, formatFirst)
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
		return 0, message.Errorf(message.Corrupt, "store %s: %s says %q: this is no Hopwire store",
			dir, formatName, line)
	}
	if n > formatNewest {
		return 0, message.Errorf(message.IllegalState,
			"store %s: it has format %d, this program knows up to %d: use the newer program",
			dir, n, formatNewest)
	}
	return n, nil
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
		return syncDir(fs, dir)
	}
	if err := write(); err != nil {
		return message.Errorf(message.Unavailable, "store %s: cannot write its format: %w", dir, err)
	}
	return nil
}
