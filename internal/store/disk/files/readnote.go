package files

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// seen is what a look at pebble's folder finds.
type seen struct {
	names   []string // of the files in it
	odd     []trouble
	note    Note
	noNote  string // why there is none that can be relied on; "" when there is
	current string // the manifest in use
}

// see looks at a folder. What is of our files and no file is not among the names. Without a note
// that is whole, and that is not of before what is there, there is an empty one.
func see(fs vfs.FS, db string) (s seen, err error) {
	odd := "" // in the place of the note
	s.names, err = fs.List(db)
	if Missing(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		what := irregular(fs, fs.PathJoin(db, name))
		if what == "" || !isOurs(name) {
			continue
		}
		what = "is " + what + ", and was a file"
		s.odd = append(s.odd, trouble{name, what})
		if name == knownName {
			odd = what
		}
	}
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		return slices.ContainsFunc(s.odd, func(t trouble) bool { return t.file == name })
	})
	s.current = currentManifest(s.names)
	if s.note, s.noNote, err = readSlots(fs, db); err != nil {
		return s, err
	}
	_, isKnown := s.note.durable[s.current]
	switch {
	case odd != "":
		s.noNote = odd
		s.odd = slices.DeleteFunc(s.odd, func(t trouble) bool { return t.file == knownName })
	case s.noNote != "":
		if s.begun() {
			s.noNote = ""
		}
	case s.current != "" && fileNumber(s.current) >= fileNumber(s.note.current) && !isKnown:
		s.noNote = "is older than " + s.current + ", the list of the tables"
	}
	if s.noNote != "" {
		s.note = Note{turn: s.note.turn}
	}
	return s, nil
}

// begun reports whether the folder may be one that was begun to be made when the power went, or the
// process: such a one has the file of the note, which is there before all else, neither tables nor
// logs, and nothing names a list of tables.
func (s *seen) begun() bool {
	has := slices.Contains(s.names, knownName) || !slices.ContainsFunc(s.names, isOurs)
	return has && s.current == "" && s.note.current == "" && !slices.ContainsFunc(s.names,
		func(name string) bool {
			return strings.HasSuffix(name, logSuffix) || strings.HasSuffix(name, tableSuffix)
		})
}

// unnoted tells that there is no note.
func (s *seen) unnoted() trouble {
	return trouble{knownName, s.noNote + ", and it says how far the others are durable: whether the" +
		" end of the last log is whole is not known"}
}

// readSlots reads the note; why tells that there is none that is whole.
func readSlots(fs vfs.FS, db string) (n Note, why string, err error) {
	f, err := Open(fs, fs.PathJoin(db, knownName))
	if Missing(err) {
		return n, "is missing", nil
	}
	if err != nil {
		return n, "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, knownLast+lastSize))
	if err != nil {
		return n, "", err
	}
	whole, empty := false, true
	for slot := range slices.Chunk(data[:min(len(data), knownLast)], knownSlot) {
		if m, ok := parseNote(slot); ok && (!whole || m.turn >= n.turn) {
			n, whole = m, true
		}
		empty = empty && !slices.ContainsFunc(slot, func(c byte) bool { return c != 0 })
	}
	last, bad := parseLast(data[min(len(data), knownLast):])
	summed := false
	for _, x := range n.durable {
		summed = summed || x.summed
	}
	switch {
	case empty && len(data) < knownLast+lastSize:
		return Note{}, fmt.Sprintf("has %d bytes and no note", len(data)), nil
	case empty:
		return Note{}, "has no note", nil
	case !whole || bad || last.turn > n.turn || summed && len(data) < knownLast+lastSize:
		return Note{}, "is damaged", nil // the newest note was durable before its turn was written
	}
	n.last = last
	for name, noted := range n.durable {
		if strings.HasSuffix(name, logSuffix) && fileNumber(name) == last.num && last.size > noted.size {
			n.durable[name] = last.extent
		}
	}
	return n, "", nil
}
