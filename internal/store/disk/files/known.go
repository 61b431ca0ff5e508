package files

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble takes a record of its MANIFEST that has not its checksum for one that was being written
// when the power went, and so are all behind it; tables that it then knows nothing of it deletes.
// A log that is not there it takes for one that never was. So what is durable of both is noted in a
// file of ours, before pebble hears that it is: how far the manifest and each log were synced, and
// which manifest is in use. What an open does not find as it was noted is damage (troubles), and
// only what lies behind may be a write that was cut off.
//
// The note of a log is behind: it is made at its first sync, then each time that it is twice as
// long, and when it is closed. How far it was synced since stands behind the notes, in a place that
// is written at each sync and synced with the next note: after the end of the process it is right,
// after the end of the power it may be older, and is never ahead. It also has the number of the
// newest note, which so cannot be damaged and pass for one that was being written.
//
// With each length there is a checksum of all that the file has up to there: another file of the
// same kind, be it an older one of the same store, is not taken for it.

const (
	knownName = "known"       // the file, beside pebble's
	knownSlot = 4096          // it has two of them, which are written in turn: one is always whole
	knownLast = 2 * knownSlot // and behind them lastSize bytes of the log that is written
	lastSize  = 32            // a checksum, its number, how far it was synced, the turn, its sum
	lastOlder = 20            // what an older program wrote of that
	knownLine = "hopwire files "

	manifestPrefix = "MANIFEST-"
	markerPrefix   = "marker.manifest."
	logSuffix      = ".log"

	knownStep = 64 << 10 // of a log so much, or as much as it had, is new when it is noted again
)

// Note is what is known of the files.
type Note struct {
	turn    uint64            // how many notes there were
	current string            // the manifest in use
	durable map[string]extent // how far manifests and logs are for sure
	last    lastNote
}

// extent is how far a file is durable.
type extent struct {
	size   int64
	sum    uint32 // of so many bytes
	summed bool   // sum is known: an older program had none
}

// with gives the extent when b follows.
func (x extent) with(b []byte) extent {
	return extent{x.size + int64(len(b)), crc32.Update(x.sum, castagnoli, b), true}
}

// lastNote is of the log that is written.
type lastNote struct {
	num uint32
	extent
	turn uint64 // of the newest note that is durable
}

// Known keeps the note. It is for any goroutine.
type Known struct {
	mu sync.Mutex
	f  vfs.File
	Note
}

// OpenKnown goes on with a note, or makes one.
func OpenKnown(fs vfs.FS, db string, n Note) (*Known, error) {
	if n.durable == nil {
		n.durable = map[string]extent{}
	}
	name := fs.PathJoin(db, knownName)
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Size() < knownLast+lastSize {
		size := int64(0)
		if err == nil { // an older program's has no last part
			size = info.Size()
		}
		_, err := f.WriteAt(make([]byte, knownLast+lastSize-size), size)
		if err := errors.Join(err, f.Sync(), SyncDir(fs, db)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &Known{f: f, Note: n}, nil
}

// change changes the note, durably.
func (k *Known) change(f func(n *Note) (changed bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !f(&k.Note) {
		return
	}
	k.turn++
	slot := make([]byte, knownSlot)
	copy(slot, k.text())
	// What is under it does not come back from a failure; see package patient.
	_, _ = k.f.WriteAt(slot, int64(k.turn%2)*knownSlot)
	_ = k.f.Sync()
	k.writeLast()
}

// keepLast keeps how far the log that is written was synced.
func (k *Known) keepLast(num uint32, x extent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last.num, k.last.extent = num, x
	k.writeLast()
}

func (k *Known) writeLast() {
	k.last.turn = k.turn
	_, _ = k.f.WriteAt(k.last.append(nil), knownLast)
}

func (l *lastNote) append(b []byte) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(l.num))
	b = binary.BigEndian.AppendUint64(b, uint64(l.size))
	b = binary.BigEndian.AppendUint64(b, l.turn)
	b = binary.BigEndian.AppendUint32(b, l.sum)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// parseLast reads what append wrote; bad is what nothing wrote.
func parseLast(b []byte) (l lastNote, bad bool) {
	has := func(size int) bool {
		return len(b) >= size && binary.BigEndian.Uint32(b) == crc32.Checksum(b[4:size], castagnoli)
	}
	whole := has(lastSize)
	if !whole && !has(lastOlder) {
		return l, slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
	}
	l.num = uint32(binary.BigEndian.Uint64(b[4:]))  //nolint:gosec // as it was written
	l.size = int64(binary.BigEndian.Uint64(b[12:])) //nolint:gosec // as above
	if l.summed = whole; whole {
		l.turn, l.sum = binary.BigEndian.Uint64(b[20:]), binary.BigEndian.Uint32(b[28:])
	}
	return l, false
}

// Close closes the file of the note.
func (k *Known) Close() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.f.Sync(), k.f.Close())
}

func (n *Note) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\ncurrent %s\n", knownLine, n.turn, n.current)
	// The latest first: of more than there is room for, which never is, the oldest are left out.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(n.durable))) {
		x := n.durable[name]
		line := fmt.Sprintf("%s %d\n", name, x.size)
		if x.summed {
			line = fmt.Sprintf("%s %d %08x\n", name, x.size, x.sum)
		}
		if b.Len()+len(line) < knownSlot-20 {
			b.WriteString(line)
		}
	}
	fmt.Fprintf(&b, "crc %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// parseNote reads one slot.
func parseNote(slot []byte) (n Note, ok bool) {
	text, sum, found := bytes.Cut(slot, []byte("\ncrc "))
	if !found || len(sum) < 8 {
		return n, false
	}
	text = append(slices.Clip(text), '\n')
	if want := fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)); string(sum[:8]) != want {
		return n, false
	}
	n.durable = map[string]extent{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, " ")
		switch turn, isFirst := strings.CutPrefix(line, knownLine); {
		case isFirst:
			n.turn, _ = strconv.ParseUint(turn, 10, 64)
		case name == "current":
			n.current = value
		default:
			size, sum, summed := strings.Cut(value, " ")
			x := extent{summed: summed}
			x.size, _ = strconv.ParseInt(size, 10, 64) // it has its checksum
			u, _ := strconv.ParseUint(cmp.Or(sum, "0"), 16, 32)
			x.sum = uint32(u)
			n.durable[name] = x
		}
	}
	return n, true
}

// Opened gives a file that pebble made as one of which it is noted how far it is durable.
func (k *Known) Opened(fs vfs.FS, path string, f vfs.File) (vfs.File, error) {
	name := filepath.Base(path)
	switch {
	case k == nil:
	case strings.HasPrefix(name, markerPrefix):
		if err := SyncDir(fs, fs.PathDir(path)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		k.change(func(n *Note) bool {
			n.current = manifestOf(name)
			return true
		})
	case strings.HasPrefix(name, manifestPrefix), strings.HasSuffix(name, logSuffix):
		return &knownFile{File: f, k: k, name: name}, nil
	}
	return f, nil
}

// Creates is called before a file is made, perhaps anew. Pebble syncs what a marker names, and not
// that it has its name, before it makes the marker.
func (k *Known) Creates(fs vfs.FS, path string) error {
	k.Gone(path)
	if k == nil || !strings.HasPrefix(filepath.Base(path), markerPrefix) {
		return nil
	}
	return SyncDir(fs, fs.PathDir(path))
}

// Gone is called before a file goes.
func (k *Known) Gone(path string) {
	if k == nil {
		return
	}
	name := filepath.Base(path)
	k.change(func(n *Note) bool {
		_, was := n.durable[name]
		delete(n.durable, name)
		return was
	})
}

// manifestOf gives what a marker names: marker.manifest.000002.MANIFEST-000008.
func manifestOf(marker string) string {
	return marker[strings.LastIndexByte(marker, '.')+1:]
}

// knownFile is a manifest or log that is written.
type knownFile struct {
	vfs.File
	k    *Known
	name string

	mu    sync.Mutex
	now   extent
	safe  extent // of it was synced
	noted int64
}

// Write implements vfs.File. What is under it may spoil b, and writes all of it or ends the store.
func (f *knownFile) Write(b []byte) (int, error) {
	now := f.written().with(b)
	n, err := f.File.Write(b)
	if err == nil {
		f.mu.Lock()
		f.now = now
		f.mu.Unlock()
	}
	return n, err
}

func (f *knownFile) written() extent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Sync implements vfs.File.
func (f *knownFile) Sync() error { return f.synced(f.written(), f.File.Sync()) }

// SyncData implements vfs.File.
func (f *knownFile) SyncData() error { return f.synced(f.written(), f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *knownFile) SyncTo(length int64) (bool, error) {
	x := f.written()
	full, err := f.File.SyncTo(length)
	if full && err == nil {
		return full, f.synced(x, nil)
	}
	return full, err
}

func (f *knownFile) synced(x extent, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.safe = x
	if strings.HasSuffix(f.name, logSuffix) && f.noted > 0 &&
		x.size < f.noted+max(f.noted, knownStep) {
		f.k.keepLast(fileNumber(f.name), x)
		return nil
	}
	f.note(x)
	return nil
}

// note notes how far the file is durable. f.mu is held.
func (f *knownFile) note(x extent) {
	if x.size <= f.noted {
		return
	}
	f.noted = x.size
	f.k.change(func(n *Note) bool {
		n.durable[f.name] = x
		return true
	})
}

// Close implements vfs.File.
func (f *knownFile) Close() error {
	f.mu.Lock()
	f.note(f.safe) // pebble syncs a log before it closes it
	f.mu.Unlock()
	return f.File.Close()
}
