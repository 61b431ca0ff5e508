package files

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Check gives an error when what was read of a table at a place is damaged. What pebble reads is
// blocks, each with its trailer, and the footer at the end.
func Check(f vfs.File, path string, b []byte, at int64) error {
	if sound(b) {
		return nil
	}
	if info, err := f.Stat(); err == nil && at+int64(len(b)) == info.Size() {
		return nil
	}
	return fmt.Errorf("the block of %d bytes at %d of %s does not have its checksum: %w", len(b), at,
		filepath.Base(path), pebble.ErrCorruption)
}

// checkedFile is a table of which each block that is read is checked.
type checkedFile struct {
	vfs.File
	path string
}

// ReadAt implements vfs.File.
func (f *checkedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err == nil {
		err = Check(f.File, f.path, b[:n], at)
	}
	return n, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sound reports whether a block has the checksum that its trailer ends with, as LevelDB makes it:
// turned by 15 bits, with a constant added.
func sound(b []byte) bool {
	if len(b) < 5 {
		return true
	}
	n := len(b) - 4
	return binary.LittleEndian.Uint32(b[n:]) == masked(crc32.Checksum(b[:n], castagnoli))
}

func masked(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

func unmasked(c uint32) uint32 {
	c -= 0xa282ead8
	return c>>17 | c<<15
}
