package files

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	tableSuffix   = ".sst"
	formatMarker  = "marker.format-version."
	optionsPrefix = "OPTIONS-"
)

// isOurs reports whether a file of the name is made by us, or by pebble, to be read again.
func isOurs(name string) bool {
	return name == knownName || slices.ContainsFunc([]string{manifestPrefix, markerPrefix,
		formatMarker, optionsPrefix}, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		strings.HasSuffix(name, logSuffix) || strings.HasSuffix(name, tableSuffix)
}

// irregular tells what is in the place of a file, "" when that is one, or nothing. It is asked
// before a file is opened: who opens a pipe waits for who writes to it.
func irregular(fsys vfs.FS, path string) string {
	info, err := fsys.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		return ""
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Open opens a file to read it. What is there and no file counts as missing.
func Open(fsys vfs.FS, path string) (vfs.File, error) {
	if what := irregular(fsys, path); what != "" {
		return nil, fmt.Errorf("%s is %s: %w", path, what, os.ErrNotExist)
	}
	return fsys.Open(path)
}
