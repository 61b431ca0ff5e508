package files

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Content is what a folder has of a store.
type Content int

// What there may be.
const (
	Nothing  Content = iota // it has none
	OfUs                    // the note of a store that was never opened
	OfPebble                // a store
)

// Has tells what a folder has of a store, its format aside.
func Has(fs vfs.FS, dir string) (Content, error) {
	names, err := fs.List(fs.PathJoin(dir, DB))
	if Missing(err) {
		return Nothing, nil
	}
	has := Nothing
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, manifestPrefix), strings.HasSuffix(name, ".sst"):
			return OfPebble, nil
		case name == knownName:
			has = OfUs
		}
	}
	return has, err
}
