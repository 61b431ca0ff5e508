package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

var errNewerFolder = errors.New("the folder is of a newer program")

// firstProgram opens a folder as the programs did that know format 1 alone. It is frozen: it shares
// nothing with the store, and changes with nothing.
func firstProgram(fs vfs.FS, s *Store) error {
	f, err := fs.Open(fs.PathJoin(s.opts.Dir, "format"))
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if string(text) != "hopwire store 1\n" {
		return errNewerFolder
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte("h"), UpperBound: []byte("i")})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if !firstHeader(it.Value()) {
			return fmt.Errorf("the record of destination %x is damaged", it.Key()[1:])
		}
	}
	return it.Error()
}

// firstHeader reports whether a record is a header of format 1: the version, kind and name, four
// numbers, and as many names with a number as the next number says.
func firstHeader(rec []byte) bool {
	good := len(rec) > 2 && rec[0] == 1 && rec[1] <= 4
	number := func() int {
		n, size := binary.Uvarint(rec)
		if good = good && size > 0; !good {
			return 0
		}
		rec = rec[size:]
		return int(n)
	}
	text := func() {
		if n := number(); good && n <= len(rec) {
			rec = rec[n:]
		} else {
			good = false
		}
	}
	if !good {
		return false
	}
	rec = rec[2:]
	text()
	for range 4 {
		number()
	}
	for n := number(); n > 0 && good; n-- {
		text()
		number()
	}
	return good && len(rec) == 0
}

// TestAnOlderProgramReadsAFolderOrIsToldThatItIsNewer: it never takes it for a damaged one.
func TestAnOlderProgramReadsAFolderOrIsToldThatItIsNewer(t *testing.T) {
	head := func(kind message.Kind, change func(*store.Header)) []store.Op {
		h := &store.Header{ID: 1, Head: 1, Reserved: 10,
			Destination: message.Destination{Kind: kind, Name: "d"}}
		change(h)
		return []store.Op{{Kind: store.PutHeader, Header: h}}
	}
	put := store.Op{Kind: store.PutMessage, Dest: 1, Seq: 5, Message: &message.Message{}}
	large := store.Op{Kind: store.PutMessage, Dest: 1, Seq: 5, Message: &message.Message{
		Content: make([]byte, 3001)}}
	same := func(*store.Header) {}
	for _, c := range []struct {
		name string
		ops  []store.Op
		want error
	}{
		{"queue", append(head(message.Queue, same), put), nil},
		{"body in pieces", append(head(message.Queue, same), large), errNewerFolder},
		{"marks of peers", head(message.Queue, func(h *store.Header) {
			h.ForwardedBelow = map[message.BrokerID]store.Seq{"a": 7, "b": 300}
		}), nil},
		{"topic without messages", head(message.Topic, same), nil},
		{"delivered", head(message.Queue, func(h *store.Header) { h.DeliveredBelow = 6 }),
			errNewerFolder},
		{"message of a topic", append(head(message.Topic, same), put), errNewerFolder},
		{"subscription", head(message.Topic, func(h *store.Header) {
			h.Subscription = &store.Subscription{Name: "s"}
		}), errNewerFolder},
		{"numbers of a producer", append(head(message.Queue, same), store.Op{Kind: store.PutNumber,
			Dest: 1, Count: 64, ID: &message.MessageID{Sequence: 5}}), errNewerFolder},
		{"prepared branch", head(0, func(h *store.Header) {
			h.Destination.Name, h.Reserved, h.Prepared = "", 1, &store.Prepared{}
		}), errNewerFolder},
	} {
		fs := vfs.NewMem()
		s := openMem(t, fs)
		if err := s.Apply([]*store.Batch{{Ops: c.ops}}); err != nil {
			t.Fatal(err)
		}
		if err := firstProgram(fs, s); !errors.Is(err, c.want) {
			t.Errorf("%s: an older program says %v, want %v", c.name, err, c.want)
		}
		if s.format == 3 != (c.name == "prepared branch") ||
			s.format == 4 != (c.name == "numbers of a producer") ||
			s.format == 5 != (c.name == "body in pieces") {
			t.Errorf("%s: the folder has format %d", c.name, s.format)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openMem(t, fs) // this program reads either
		if hs, err := s.Headers(); err != nil || len(hs) != 1 {
			t.Errorf("%s: %d headers, %v", c.name, len(hs), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFolderOfFormatOneIsRead takes records that a program of format 1 wrote, and one of those
// that came after it and did not raise the format for what clients had.
func TestAFolderOfFormatOneIsRead(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	old := []byte{1, 1, 1, 'q', 10, 2, 6, 8, 1, 1, 'p', 5}
	if !firstHeader(old) || firstHeader(append(old[:12:12], 9)) {
		t.Fatal("the frozen decoder is not what it was")
	}
	for i, rec := range [][]byte{old, append(old[:12:12], 9)} {
		key := binary.BigEndian.AppendUint64([]byte{kindHeader}, uint64(i+1))
		if err := s.db.Set(key, rec, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openMem(t, fs)
	hs, err := s.Headers()
	if err != nil || len(hs) != 2 {
		t.Fatalf("%v, %v", hs, err)
	}
	for i, h := range hs {
		if h.Destination.Name != "q" || h.Reserved != 10 || h.Head != 2 || h.Count != 3 ||
			h.Bytes != 4 || h.ForwardedBelow["p"] != 5 || h.DeliveredBelow != store.Seq(9*i) {
			t.Errorf("[%d] is read as %+v", i, h)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
