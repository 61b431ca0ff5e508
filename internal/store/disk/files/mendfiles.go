package files

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Mended shows pebble a damaged folder as it can be read. Nothing on the disk is changed.
type Mended struct {
	vfs.FS
	mem    *vfs.MemFS        // has the files that are shown instead of those on the disk
	shown  map[string]string // by their paths, those of mem
	more   []string          // names that the folder has beside those on the disk
	hidden []string
	sizes  map[string]int64  // of tables by their paths, as the list of them says
	tails  map[string][]byte // of tables by their paths: what is shown behind their own bytes
	logs   []string          // paths of those that are needed, in their order

	Cut     bool // writes are lost, or may be
	ListCut bool // the list of the tables is not what it was
}

// Open implements vfs.FS.
func (fs *Mended) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if in, ok := fs.shown[name]; ok {
		return fs.mem.Open(in)
	}
	if fs.isHidden(name) {
		return nil, errHidden
	}
	f, err := fs.FS.Open(name, opts...)
	if tail, ok := fs.tails[name]; ok && err == nil {
		return withTail(f, tail), nil
	}
	return f, err
}

// List implements vfs.FS.
func (fs *Mended) List(dir string) ([]string, error) {
	names, err := fs.FS.List(dir)
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(fs.hidden, name)
	})
	return append(names, fs.more...), err
}

// Logs gives the paths of the logs that are needed, in their order.
func (fs *Mended) Logs() []string { return fs.logs }

// ShowTail has a table be shown with another tail.
func (fs *Mended) ShowTail(path string, tail []byte) { fs.tails[path] = tail }

// Stat implements vfs.FS. A table with another tail has the size that the list of tables tells.
func (fs *Mended) Stat(name string) (vfs.FileInfo, error) {
	if in, ok := fs.shown[name]; ok {
		return fs.mem.Stat(in)
	}
	if fs.isHidden(name) {
		return nil, errHidden
	}
	info, err := fs.FS.Stat(name)
	if size, ok := fs.sizes[name]; ok && err == nil {
		return tailedInfo{info, size}, nil
	}
	return info, err
}

// ShowSizes has tables have the lengths that the list of the tables says, as far as pebble's
// refusal of other lengths names them; false means that it names none.
func (fs *Mended) ShowSizes(refusal error) bool {
	found := otherSize.FindAllStringSubmatch(refusal.Error(), -1)
	for _, part := range found {
		size, _ := strconv.ParseInt(part[2], 10, 64)
		fs.sizes[part[1]] = size
	}
	return len(found) > 0
}

// otherSize is how pebble tells of a table that has another length.
var otherSize = regexp.MustCompile(
	`object size mismatch \(([^\n]*?)\): \d+ \(disk\) != (\d+) \(MANIFEST\)`)

func (fs *Mended) isHidden(path string) bool {
	return slices.Contains(fs.hidden, fs.PathBase(path))
}

// errHidden is of a file that is not to be read. Its text is that of one that is missing.
var errHidden error = &os.PathError{Op: "open", Path: "a file that is none", Err: os.ErrNotExist}

// show has a file be what data is.
func (fs *Mended) show(path string, data []byte) error {
	in := fmt.Sprintf("f%d", len(fs.shown))
	f, err := fs.mem.Create(in, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	fs.shown[path] = in
	return f.Close()
}

// Mend looks at the manifest and the logs, and gives them as they can be read, with what is to
// be told of it.
func Mend(fs vfs.FS, db string) (*Mended, []string, error) {
	out := &Mended{FS: fs, mem: vfs.NewMem(), shown: map[string]string{},
		sizes: map[string]int64{}, tails: map[string][]byte{}}
	s, err := see(fs, db)
	if err != nil {
		return nil, nil, err
	}
	found, err := troubles(fs, db, &s)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range s.odd {
		out.hidden = append(out.hidden, t.file)
	}
	var told []string
	current := s.current
	if best := bestManifest(fs, db, &s); best != current {
		current = best
		out.more = append(out.more, fmt.Sprintf("%s%06d.%s", markerPrefix, lastMarker, current))
	}
	out.ListCut = current == "" || s.note.current != "" && current != s.note.current
	if !slices.ContainsFunc(s.names, func(name string) bool {
		return strings.HasPrefix(name, formatMarker)
	}) {
		told = append(told, DB+"/"+formatMarker+"* is missing")
		out.more = append(out.more, fmt.Sprintf("%s%06d.%03d", formatMarker, lastMarker,
			pebble.FormatTableFormatV6))
	}
	if name, why := BadOptions(fs, db); why != nil {
		told = append(told, fmt.Sprintf("%s/%s is damaged", DB, name))
		out.hidden = append(out.hidden, name)
	}
	out.Cut = out.ListCut && current != "" || s.noNote != ""
	var manifest mender
	if current != "" {
		manifest, err = out.mend(db, current, mender{durable: s.note.durable[current]}, false)
	}
	if err != nil {
		return nil, nil, err
	}
	out.ListCut = out.ListCut || manifest.stopped || manifest.another()
	out.Cut = out.Cut || manifest.another()
	below := uint64(0)
	if !manifest.another() {
		below = flushedBelow(manifest.data)
	}
	var first []string
	for _, x := range unneeded(found, below) {
		first = append(first, x.tell())
	}
	told = append(append(first, told...), manifest.told...)
	more, err := out.mendLogs(db, &s, below)
	return out, append(told, more...), err
}

// lastMarker is the number of markers that are shown beside those that are there: the one with the
// highest counts.
const lastMarker = 999999

// mendLogs mends the logs that are needed.
func (fs *Mended) mendLogs(db string, s *seen, below uint64) (told []string, err error) {
	logs := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool {
		return !strings.HasSuffix(name, logSuffix) || isFlushed(name, below)
	})
	for name := range s.note.durable {
		fs.Cut = fs.Cut || strings.HasSuffix(name, logSuffix) && !slices.Contains(s.names, name) &&
			!isFlushed(name, below)
	}
	for i, name := range logs {
		m, err := fs.mend(db, name, mender{num: fileNumber(name), durable: s.note.durable[name]},
			i < len(logs)-1)
		if err != nil {
			return nil, err
		}
		if m.another() { // it may be another store's
			fs.Cut = true
			fs.hidden = append(fs.hidden, name)
			continue
		}
		fs.logs = append(fs.logs, fs.PathJoin(db, name))
		told = append(told, m.told...)
	}
	return told, nil
}

// mend mends a log, or a manifest, which has no number, and shows it so when it is damaged; see
// mender.mend.
func (fs *Mended) mend(db, name string, m mender, strict bool) (mender, error) {
	path := fs.PathJoin(db, name)
	data, err := Read(fs.FS, path)
	if Missing(err) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	m.data = data
	if m.num > 0 {
		m.mend(strict)
	} else {
		m.turnBits()
	}
	fs.Cut = fs.Cut || len(m.gaps) > 0 || int64(len(data)) < m.durable.size
	if m.changed && !m.another() {
		m.told = []string{m.tell(name)}
		err = fs.show(path, m.data)
	}
	return m, err
}

// bestManifest gives the list of tables that is read: the one that is noted as the newest, when it
// is there, the one that a marker names, or else the newest that has anything.
func bestManifest(fs vfs.FS, db string, s *seen) string {
	if n := &s.note; fileNumber(n.current) > fileNumber(s.current) &&
		slices.Contains(s.names, n.current) {
		return n.current
	}
	if s.current != "" {
		return s.current
	}
	best := ""
	for _, name := range s.names {
		if !strings.HasPrefix(name, manifestPrefix) || fileNumber(name) < fileNumber(best) {
			continue
		}
		if data, err := Read(fs, fs.PathJoin(db, name)); err == nil && len(records(data, 0)) > 0 {
			best = name
		}
	}
	return best
}

// BadOptions gives the file of options that keeps pebble from opening its folder, and why. It has
// nothing that is not in the options of the store: pebble writes it anew at each open.
func BadOptions(fs vfs.FS, db string) (name string, why error) {
	names, _ := fs.List(db) // who lists it first tells of a failure
	last := ""
	for _, name := range names {
		if strings.HasPrefix(name, optionsPrefix) {
			last = max(last, name)
		}
	}
	if last == "" {
		return "", nil
	}
	text, err := Read(fs, fs.PathJoin(db, last))
	if err != nil {
		return "", nil //nolint:nilerr // pebble will tell
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	return last, o.CheckCompatibility(db, string(text))
}

// mender mends a log, or a manifest.
type mender struct {
	data    []byte // in the end as it is to be read
	num     uint32
	durable extent
	whole   bool   // all that was durable can be read, with bits turned back perhaps
	sum     extent // of that

	told    []string
	changed bool
	turned  int      // bits that were turned back
	gaps    []string // places that are left out
	skipped int64    // bytes in them
	stopped bool     // a manifest cannot be read up to where it was durable
}

// rest is what a block has from a place on.
func (m *mender) rest(at int) []byte {
	return m.data[at:min(len(m.data), at-at%chunkBlock+chunkBlock)]
}

// another reports whether the file is another one than it was.
func (m *mender) another() bool { return m.durable.summed && m.whole && m.sum != m.durable }

// turnBits turns back bits as long as that makes chunks whole.
func (m *mender) turnBits() {
	for at := 0; at < len(m.data); {
		b := m.rest(at)
		c, v := chunkAt(b, m.num)
		switch {
		case v == blank:
			c.size = len(b)
		case v == bad && turnBack(b, m.num):
			m.turned++
			m.changed = true
			continue
		case v != whole:
			m.stopped = int64(at) < m.durable.size
			m.sumUp(!m.stopped)
			return
		}
		at += c.size
	}
	m.stopped = int64(len(m.data)) < m.durable.size
	m.sumUp(!m.stopped)
}

// sumUp notes whether all that was durable can be read, and what it is.
func (m *mender) sumUp(whole bool) {
	if m.whole = whole; whole {
		m.sum = extent{}.with(m.data[:m.durable.size])
	}
}

// mend makes a log of the records of which all chunks can be read. strict says that there is a
// later log, so that this one was ended.
func (m *mender) mend(strict bool) {
	var out bytes.Buffer
	w := record.NewWriter(&out)
	var rec []byte
	inside := false // a record of which all chunks were there
	end := false
	for at := 0; at < len(m.data) && !end; {
		b := m.rest(at)
		c, v := chunkAt(b, m.num)
		if v == ended && int64(at+c.size) < m.durable.size {
			v = bad // it was not, there
		}
		switch v {
		case blank:
			c.size = len(b)
		case ended:
			end = true
		case bad:
			next, isDamage := m.nextChunk(at)
			switch {
			case !isDamage: // a write that was cut off
				end = true
				m.changed = m.changed || strict
			case turnBack(b, m.num):
				m.turned++
				m.changed = true
				continue
			default:
				m.gaps = append(m.gaps, fmt.Sprint(at))
				m.skipped += int64(next - at)
				c.size = next - at
				m.changed, inside = true, false
			}
		case whole:
			if c.first {
				rec, inside = rec[:0], true
			}
			rec = append(rec, c.bytes...)
			if c.last && inside {
				_, _ = w.WriteRecord(rec) // to memory
				inside = false
			}
		}
		at += c.size
	}
	m.sumUp(len(m.gaps) == 0 && int64(len(m.data)) >= m.durable.size)
	if lost := m.durable.size - int64(len(m.data)); lost > 0 {
		m.gaps = append(m.gaps, fmt.Sprint(len(m.data)))
		m.skipped += lost
		m.changed = true
	}
	m.changed = m.changed || strict && inside
	if _ = w.Close(); m.changed {
		m.data = out.Bytes()
	}
}

// nextChunk gives where the first chunk behind a bad one is, or the end; and whether it is damage
// between: what is behind it says that it was durable.
func (m *mender) nextChunk(at int) (next int, isDamage bool) {
	isDamage = int64(at) < m.durable.size
	next = len(m.data)
	for i := at + 1; i < len(m.data); {
		c, v := chunkAt(m.rest(i), m.num)
		if v != whole || c.size > len(m.rest(i)) {
			i++
			continue
		}
		next = min(next, i)
		if isDamage || c.durable > int64(at) {
			return next, true
		}
		i += c.size
	}
	return next, isDamage
}

// tell tells what was done to a file.
func (m *mender) tell(name string) string {
	var what []string
	if m.turned > 0 {
		what = append(what, fmt.Sprintf("bits that had turned were turned back: %d", m.turned))
	}
	if len(m.gaps) > 0 {
		what = append(what, fmt.Sprintf("%d bytes of writes could not be read, at byte %s", m.skipped,
			strings.Join(m.gaps[:min(len(m.gaps), 10)], ", ")))
	}
	if len(what) == 0 {
		what = append(what, "its last write was cut off")
	}
	return DB + "/" + name + ": " + strings.Join(what, "; ")
}
