package disk

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// TestWhatIsDeletedIsFreeWhenTheLimitIsNear writes nothing after the last message is gone: nothing
// that pebble does by itself frees what they took. So much was written that all the logs that
// pebble keeps for it wait to be written over.
func TestWhatIsDeletedIsFreeWhenTheLimitIsNear(t *testing.T) {
	const count, size, limit = 1000, 100_000, 8 << 20
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, LimitBytes: limit,
		Poll: 5 * time.Millisecond, ReserveBytes: -1, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	d := message.Destination{Kind: message.Queue, Name: "A"}
	h := &store.Header{ID: 1, Destination: d, Reserved: count, Count: count, Bytes: count * size}
	for seq := range store.Seq(count) {
		m := &message.Message{Destination: d, Content: make([]byte, size)}
		fill(m.Content, byte(seq))
		b := &store.Batch{Bytes: size, Ops: []store.Op{
			{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m},
			{Kind: store.PutHeader, Dest: 1, Header: h},
		}}
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	if used := s.usedBytes(); used < limit {
		t.Fatalf("%d bytes are used; the test needs more than the limit of %d", used, limit)
	}
	for seq := range store.Seq(count) {
		left := *h
		left.Count, left.Bytes = count-1-int64(seq), (count-1-int64(seq))*size
		b := &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: seq},
			{Kind: store.PutHeader, Header: &left}}}
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(6 * time.Second); s.Space().UsedBytes > limit/4*3; {
		if time.Now().After(end) {
			t.Fatalf("an empty store takes %d bytes of %d", s.Space().UsedBytes, limit)
		}
		runtime.Gosched()
	}
}

// What was written counts before the folder is looked at again.
func TestWhatWasWrittenIsUsedAtOnce(t *testing.T) {
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, Poll: time.Hour,
		ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	const size = 1 << 20
	m := &message.Message{Destination: message.Destination{Kind: message.Queue, Name: "A"},
		Content: make([]byte, size)}
	fill(m.Content, 1)
	h := &store.Header{ID: 1, Destination: m.Destination, Reserved: 10, Count: 1, Bytes: m.Size()}
	was := s.Space().UsedBytes
	if err := s.Apply([]*store.Batch{{Ops: []store.Op{
		{Kind: store.PutMessage, Dest: 1, Seq: 1, Message: m},
		{Kind: store.PutHeader, Header: h}}}}); err != nil {
		t.Fatal(err)
	}
	if used := s.Space().UsedBytes - was; used < size || used > 2*size {
		t.Errorf("%d bytes more are used, after %d were written", used, size)
	}
}

// TestAStoreThatIsNearItsLimitIsNotFlushedAtEachLook keeps it there with messages that live, and
// has others come and go beside them.
func TestAStoreThatIsNearItsLimitIsNotFlushedAtEachLook(t *testing.T) {
	const live, size, each = 4000, 10_000, 100
	looks := int64(rounds(1200, 200))
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, LimitBytes: live * size,
		Poll: time.Hour, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	d := message.Destination{Kind: message.Queue, Name: "A"}
	h := store.Header{ID: 1, Destination: d, Reserved: 1 << 40}
	seq := store.Seq(0)
	apply := func(puts, size int, deletes store.Seq) {
		b := &store.Batch{}
		for range puts {
			seq++
			m := &message.Message{Destination: d, Content: make([]byte, size)}
			fill(m.Content, byte(seq))
			b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m})
			h.Count, h.Bytes = h.Count+1, h.Bytes+m.Size()
		}
		for n := range deletes {
			b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq - n})
			h.Count, h.Bytes = h.Count-1, h.Bytes-1024-int64(size)
		}
		put := h
		b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Header: &put})
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	for range live / 100 {
		apply(100, size, 0)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	was := s.db.Metrics()
	reading := time.Duration(0)
	for n := range looks {
		apply(each, 1000, each)
		s.tidyUp(t.Context())
		if n%10 == 0 {
			began := time.Now()
			if _, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 1 << 40, Count: 200}); err != nil {
				t.Fatal(err)
			}
			reading += time.Since(began)
		}
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	is := s.db.Metrics()
	cpu := func(r *syscall.Rusage) time.Duration {
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	total, old := is.Total(), was.Total()
	t.Logf("%d flushes, %d MiB flushed, %d MiB compacted, %d tables, a page %v, CPU %v",
		is.Flush.Count-was.Flush.Count, (total.TableBytesFlushed-old.TableBytesFlushed)>>20,
		(total.TableBytesCompacted-old.TableBytesCompacted)>>20, total.TablesCount,
		reading/time.Duration(looks/10), cpu(&after)-cpu(&before))
	if n := is.Flush.Count - was.Flush.Count; n > looks/20 {
		t.Errorf("%d flushes in %d looks", n, looks)
	}
}

// rounds gives how often a test repeats itself: in a short run, which is one under the race
// detector, less often.
func rounds(all, short uint64) uint64 {
	if testing.Short() {
		return short
	}
	return all
}

// fill writes what does not get smaller when it is compressed.
func fill(b []byte, seed byte) {
	x := uint32(seed) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
}
