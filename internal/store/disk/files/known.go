package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

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
// after the end of the power it may be older, and is never ahead.

const (
	knownName = "known"       // the file, beside pebble's
	knownSlot = 4096          // it has two of them, which are written in turn: one is always whole
	knownLast = 2 * knownSlot // and behind them lastSize bytes of the log that is written
	lastSize  = 4 + 8 + 8     // a checksum, its number, and how far it was synced
	knownLine = "hopwire files "

	manifestPrefix = "MANIFEST-"
	markerPrefix   = "marker.manifest."
	logSuffix      = ".log"

	knownStep = 64 << 10 // of a log so much, or as much as it had, is new when it is noted again
)

// Note is what is known of the files.
type Note struct {
	turn    uint64           // how many notes there were
	current string           // the manifest in use
	durable map[string]int64 // how long manifests and logs are for sure
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
		n.durable = map[string]int64{}
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
}

// last keeps how far the log that is written was synced.
func (k *Known) last(num uint32, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = k.f.WriteAt(appendLast(nil, num, size), knownLast)
}

func appendLast(b []byte, num uint32, size int64) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(num))
	b = binary.BigEndian.AppendUint64(b, uint64(size))
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// lastOf gives what last wrote, 0 when there is nothing that makes sense.
func lastOf(b []byte) (num uint32, size int64) {
	if len(b) < lastSize || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:lastSize], castagnoli) {
		return 0, 0
	}
	return uint32(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint64(b[12:]))
}

// Close closes the file of the note.
func (k *Known) Close() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.f.Close()
}

func (n *Note) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\ncurrent %s\n", knownLine, n.turn, n.current)
	// The latest first: of more than there is room for, which never is, the oldest are left out.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(n.durable))) {
		if line := fmt.Sprintf("%s %d\n", name, n.durable[name]); b.Len()+len(line) < knownSlot-20 {
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
	n.durable = map[string]int64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, " ")
		switch turn, isFirst := strings.CutPrefix(line, knownLine); {
		case isFirst:
			n.turn, _ = strconv.ParseUint(turn, 10, 64)
		case name == "current":
			n.current = value
		default:
			n.durable[name], _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return n, true
}

// readNote gives the note of a folder, and the manifest in use. The note is empty when there is
// none that is whole, and when it is of before an older program, which notes nothing: what that
// removed would be missed at the next look.
func readNote(fs vfs.FS, db string) (n Note, inUse string, err error) {
	if inUse, err = currentManifest(fs, db); err == nil {
		n, err = readSlots(fs, db)
	}
	_, isKnown := n.durable[inUse]
	if inUse != "" && fileNumber(inUse) >= fileNumber(n.current) && !isKnown || n.current == "" {
		n = Note{turn: n.turn}
	}
	return n, inUse, err
}

func readSlots(fs vfs.FS, db string) (n Note, err error) {
	f, err := fs.Open(fs.PathJoin(db, knownName))
	if Missing(err) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return n, &folderError{knownName}
	}
	data, err := io.ReadAll(io.LimitReader(f, knownLast+lastSize))
	for slot := range slices.Chunk(data[:min(len(data), knownLast)], knownSlot) {
		if m, ok := parseNote(slot); ok && m.turn >= n.turn {
			n = m
		}
	}
	num, size := lastOf(data[min(len(data), knownLast):])
	for name, noted := range n.durable {
		if strings.HasSuffix(name, logSuffix) && fileNumber(name) == num {
			n.durable[name] = max(noted, size)
		}
	}
	return n, err
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
	k     *Known
	name  string
	size  atomic.Int64
	safe  atomic.Int64 // of it was synced
	noted atomic.Int64
}

// Write implements vfs.File.
func (f *knownFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.size.Add(int64(n))
	return n, err
}

// Sync implements vfs.File.
func (f *knownFile) Sync() error { return f.synced(f.size.Load(), f.File.Sync()) }

// SyncData implements vfs.File.
func (f *knownFile) SyncData() error { return f.synced(f.size.Load(), f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *knownFile) SyncTo(length int64) (bool, error) {
	size := f.size.Load()
	full, err := f.File.SyncTo(length)
	if full && err == nil {
		return full, f.synced(size, nil)
	}
	return full, err
}

func (f *knownFile) synced(size int64, err error) error {
	if err != nil {
		return err
	}
	f.safe.Store(size)
	noted := f.noted.Load()
	if strings.HasSuffix(f.name, logSuffix) && noted > 0 && size < noted+max(noted, knownStep) {
		f.k.last(fileNumber(f.name), size)
		return nil
	}
	f.note(size)
	return nil
}

func (f *knownFile) note(size int64) {
	if size <= f.noted.Load() {
		return
	}
	f.noted.Store(size)
	f.k.change(func(n *Note) bool {
		n.durable[f.name] = size
		return true
	})
}

// Close implements vfs.File.
func (f *knownFile) Close() error {
	f.note(f.safe.Load()) // pebble syncs a log before it closes it
	return f.File.Close()
}
