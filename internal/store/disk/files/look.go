package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Look gives the note of pebble's files, and what is not as it says; "" for nothing.
func Look(fs vfs.FS, db string) (n Note, bad string, err error) {
	n, inUse, err := readNote(fs, db)
	if err != nil {
		return n, "", err
	}
	found, err := troubles(fs, db, n, inUse)
	if len(found) > 0 {
		bad = found[0].tell()
	}
	return n, bad, err
}

// trouble is a file of pebble's that is not as it was noted.
type trouble struct{ file, what string }

func (t trouble) tell() string { return DB + "/" + t.file + " " + t.what }

// IsDamage tells what pebble says of the files that it finds from an error of the system.
func IsDamage(err error) bool {
	return pebble.IsCorruptionError(err) || Missing(err) || errors.Is(err, pebble.ErrDBNotPristine) ||
		errors.Is(err, pebble.ErrDBAlreadyExists) || strings.Contains(err.Error(), "size mismatch")
}

// troubles compares pebble's files with the note of them, the manifest first.
func troubles(fs vfs.FS, db string, n Note, current string) ([]trouble, error) {
	switch {
	case n.current == "":
		return nil, nil
	case current == "":
		return []trouble{{markerPrefix + "*", "is missing, which names the list of the tables, " +
			n.current}}, nil
	case fileNumber(current) < fileNumber(n.current):
		return []trouble{{n.current, "is the list of the tables, and " + current +
			", which is older, is named as it"}}, nil
	}
	var out []trouble
	for _, name := range slices.Sorted(maps.Keys(n.durable)) {
		if strings.HasPrefix(name, manifestPrefix) && name != current {
			continue
		}
		what, err := lookAt(fs, fs.PathJoin(db, name), name, n.durable[name])
		if err != nil {
			return nil, err
		}
		if what != "" {
			out = append(out, trouble{name, what})
		}
	}
	slices.SortStableFunc(out, func(a, b trouble) int {
		return strings.Compare(b.file[:1], a.file[:1]) // M before numbers
	})
	return out, nil
}

// lookAt says what is wrong with a file that was durable up to a length, "" for nothing.
func lookAt(fs vfs.FS, path, name string, length int64) (string, error) {
	f, err := fs.Open(path)
	if Missing(err) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	at, ok, err := SoundTo(f, fileNumber(name), length)
	if ok || err != nil {
		return "", err
	}
	if info, err := f.Stat(); err == nil && info.Size() < length {
		return fmt.Sprintf("has %d bytes, and had %d", info.Size(), length), nil
	}
	return fmt.Sprintf("is damaged at byte %d", at), nil
}

// currentManifest gives the name of the manifest in use, "" when nothing names one.
func currentManifest(fs vfs.FS, db string) (string, error) {
	names, err := fs.List(db)
	if Missing(err) {
		return "", nil
	}
	last := ""
	for _, name := range names {
		if strings.HasPrefix(name, markerPrefix) {
			last = max(last, name) // their numbers have six digits
		}
	}
	return manifestOf(last), err
}

// fileNumber gives the number that chunks of a log have in them: 000009.log. For manifests, which
// have none there, it tells which is the newer.
func fileNumber(name string) uint32 {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, manifestPrefix), logSuffix)
	n, _ := strconv.ParseUint(digits, 10, 64)
	return uint32(n) //nolint:gosec // of a log's number chunks have the lower half
}
