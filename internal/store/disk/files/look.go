package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Look gives the note of pebble's files, and what is not as it says; "" for nothing.
func Look(fs vfs.FS, db string) (n Note, bad string, err error) {
	s, err := see(fs, db)
	if err != nil {
		return n, "", err
	}
	found, err := troubles(fs, db, &s)
	if len(found) > 0 {
		bad = found[0].tell()
	}
	return s.note, bad, err
}

// trouble is a file of pebble's that is not as it was noted.
type trouble struct{ file, what string }

func (t trouble) tell() string { return DB + "/" + t.file + " " + t.what }

// LacksTable reports whether what pebble says of the files that it finds is that a table is
// missing, or has another length.
func LacksTable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "size mismatch") || strings.Contains(text, "sst") &&
		strings.Contains(text, "file does not exist")
}

// IsDamage tells what pebble says of the files that it finds from an error of the system.
func IsDamage(err error) bool {
	return pebble.IsCorruptionError(err) || Missing(err) || errors.Is(err, pebble.ErrDBNotPristine) ||
		errors.Is(err, pebble.ErrDBAlreadyExists) || strings.Contains(err.Error(), "size mismatch")
}

// troubles compares pebble's files with the note of them: what is no file first, then the manifest.
func troubles(fs vfs.FS, db string, s *seen) ([]trouble, error) {
	out := slices.Clone(s.odd)
	if s.noNote != "" {
		out = append(out, s.unnoted())
	}
	n := &s.note
	switch {
	case s.current == "":
		if len(s.names) > 0 && !s.begun() || n.current != "" {
			out = append(out, trouble{markerPrefix + "*", strings.TrimSuffix("is missing, which names the"+
				" list of the tables, "+n.current, ", ")})
		}
		return out, nil
	case s.noNote != "":
		return out, nil
	case fileNumber(s.current) < fileNumber(n.current):
		if !slices.Contains(s.names, n.current) {
			return append(out, trouble{n.current, "is missing, and " + s.current + ", which is older, is" +
				" named as the list of the tables: " + DB + "/" + knownName + " is of a newer copy of the" +
				" folder, or the newer files were taken away"}), nil
		}
		return append(out, trouble{n.current, "is the list of the tables, and " + s.current +
			", which is older, is named as it"}), nil
	}
	var found []trouble
	for _, name := range slices.Sorted(maps.Keys(n.durable)) {
		if strings.HasPrefix(name, manifestPrefix) && name != s.current {
			continue
		}
		what, err := lookAt(fs, fs.PathJoin(db, name), name, n.durable[name])
		if err != nil {
			return nil, err
		}
		if what != "" {
			found = append(found, trouble{name, what})
		}
	}
	slices.SortStableFunc(found, func(a, b trouble) int {
		return strings.Compare(a.file[:1], b.file[:1]) // M before numbers
	})
	if len(found) > 0 && !strings.HasPrefix(found[0].file, manifestPrefix) {
		manifest, err := Read(fs, fs.PathJoin(db, s.current))
		if err != nil {
			return nil, err
		}
		found = unneeded(found, flushedBelow(manifest))
	}
	return append(out, found...), nil
}

// unneeded leaves out what is wrong with logs below a number: the tables have what they say.
func unneeded(found []trouble, below uint64) []trouble {
	return slices.DeleteFunc(found, func(t trouble) bool { return isFlushed(t.file, below) })
}

// isFlushed reports whether a file is a log below a number.
func isFlushed(name string, below uint64) bool {
	return strings.HasSuffix(name, logSuffix) && uint64(fileNumber(name)) < below
}

// What a record of a manifest begins with that says which logs are still needed, and what may be
// before it: the name of the order of keys. Each is followed by its value.
const (
	tagComparator = 1
	tagLogNumber  = 2
)

// flushedBelow gives the number below which no log is needed, as a manifest says as far as it can
// be read: pebble reads it as far.
func flushedBelow(manifest []byte) (below uint64) {
	for _, rec := range records(manifest, 0) {
		below = max(below, logNumberOf(rec))
	}
	return below
}

// records gives the records of a log, or of a manifest, which has no number, up to what cannot be
// read.
func records(data []byte, num uint32) (out [][]byte) {
	var rec []byte
	for at := 0; at < len(data); {
		b := data[at:min(len(data), at-at%chunkBlock+chunkBlock)]
		c, v := chunkAt(b, num)
		switch v {
		case blank:
			c.size = len(b)
		case whole:
			if c.first {
				rec = nil
			}
			if rec = append(rec, c.bytes...); c.last {
				out = append(out, rec)
			}
		case ended, bad:
			return out
		}
		at += c.size
	}
	return out
}

// logNumberOf gives what a record says of the logs, 0 for nothing.
func logNumberOf(rec []byte) uint64 {
	uvarint := func() uint64 {
		x, n := binary.Uvarint(rec)
		rec = rec[max(0, n):]
		return x
	}
	tag := uvarint()
	if tag == tagComparator {
		rec = rec[min(uvarint(), uint64(len(rec))):]
		tag = uvarint()
	}
	if tag != tagLogNumber {
		return 0
	}
	return uvarint()
}

// lookAt says what is wrong with a file that was durable up to a length, "" for nothing.
func lookAt(fs vfs.FS, path, name string, noted extent) (string, error) {
	f, err := Open(fs, path)
	if Missing(err) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	all := summing{most: noted.size}
	at, ok, err := SoundTo(io.TeeReader(f, &all), fileNumber(name), noted.size)
	switch {
	case err != nil:
		return "", err
	case ok && noted.summed && all.extent != noted:
		return isAnother, nil
	case ok:
		return "", nil
	}
	if info, err := f.Stat(); err == nil && info.Size() < noted.size {
		return fmt.Sprintf("has %d bytes, and had %d", info.Size(), noted.size), nil
	}
	return fmt.Sprintf("is damaged at byte %d", at), nil
}

// isAnother is told of a file that is whole and has not what was in it.
const isAnother = "is another file than it was: of an older copy of the folder, or of another store"

// summing sums up what a file begins with.
type summing struct {
	extent
	most int64
}

// Write implements io.Writer.
func (s *summing) Write(b []byte) (int, error) {
	s.extent = s.with(b[:min(int64(len(b)), s.most-s.size)])
	return len(b), nil
}

// currentManifest gives the name of the manifest in use, "" when nothing names one.
func currentManifest(names []string) string {
	last := ""
	for _, name := range names {
		if strings.HasPrefix(name, markerPrefix) {
			last = max(last, name) // their numbers have six digits
		}
	}
	return manifestOf(last)
}

// fileNumber gives the number that chunks of a log have in them: 000009.log. For manifests, which
// have none there, it tells which is the newer.
func fileNumber(name string) uint32 {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, manifestPrefix), logSuffix)
	n, _ := strconv.ParseUint(digits, 10, 64)
	return uint32(n) //nolint:gosec // of a log's number chunks have the lower half
}
