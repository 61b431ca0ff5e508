package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// atOnce answers within the call.
type atOnce struct {
	*mem.Store
	err   error // of reads
	reads int
}

func (a *atOnce) Commit(b *store.Batch, done func(error)) { done(a.Apply([]*store.Batch{b})) }

func (a *atOnce) Page(r store.PageRequest, done func([]store.Stored, error)) {
	a.reads++
	page, err := a.Store.Page(r)
	done(page, errors.Join(err, a.err))
}

func (a *atOnce) Receipts(d store.DestID, done func(store.Receipts, error)) {
	done(a.Store.Receipts(d))
}

func (a *atOnce) Expired(after *store.ExpiredRef, before int64, n int,
	done func([]store.ExpiredRef, error)) {
	a.reads++
	refs, err := a.Store.Expired(after, before, n)
	done(refs, errors.Join(err, a.err))
}

// pair is a store, a spool and both as one.
type pair struct {
	stored, spooled *atOnce
	*store.Overlay
}

func newPair() *pair {
	p := &pair{stored: &atOnce{Store: mem.New()}, spooled: &atOnce{Store: mem.New()}}
	p.Overlay = store.NewOverlay(p.stored, p.spooled)
	return p
}

func batchOf(ops ...store.Op) *store.Batch {
	h := &store.Header{ID: 1, Destination: message.Destination{Kind: message.Queue, Name: "q"},
		Reserved: 1 << 40}
	return &store.Batch{Ops: append(ops, store.Op{Kind: store.PutHeader, Header: h})}
}

func placed(seq store.Seq, size int, expiration int64) store.Op {
	return store.Op{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: &message.Message{
		Destination: message.Destination{Kind: message.Queue, Name: "q"},
		Content:     make([]byte, size), Expiration: expiration}}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// told is a page in words: of a range every sequence.
func told(page []store.Stored) (out []string) {
	for _, s := range page {
		for seq := s.Seq; seq < s.Next(); seq++ {
			switch {
			case s.To > 0:
				out = append(out, fmt.Sprint(seq, " unreadable"))
			default:
				out = append(out, fmt.Sprint(seq, " spooled ", s.Spooled))
			}
		}
	}
	return out
}

// readAll reads a range page by page, as the broker does.
func (p *pair) readAll(t *rapid.T, r store.PageRequest) (out []string) {
	for from := r.From; ; {
		r.From = from
		var page []store.Stored
		p.Page(r, func(got []store.Stored, err error) {
			if page = got; err != nil {
				t.Fatal(err)
			}
		})
		if len(page) == 0 {
			return out
		}
		size := int64(0)
		for i, s := range page {
			if s.Seq < from || s.Next() > r.To {
				t.Fatalf("%+v is not in %d..%d", s, from, r.To)
			}
			from = s.Next()
			if i > 0 && r.Bytes > 0 && size >= r.Bytes {
				t.Fatalf("the page goes on behind %d bytes", size)
			}
			if s.Message != nil {
				size += s.Message.Size()
			}
		}
		if r.Count > 0 && len(page) > r.Count {
			t.Fatalf("%d entries, and %d were wanted", len(page), r.Count)
		}
		out = append(out, told(page)...)
	}
}

// What is in the one or the other comes once, in order, whatever the limits are and whatever part
// of either cannot be read.
func TestAnOverlayReadsBothInOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		const last = 60
		where := rapid.SliceOfN(rapid.IntRange(0, 2), last, last).Draw(t, "where")
		var ops [3][]store.Op
		for i, w := range where {
			ops[w] = append(ops[w], placed(store.Seq(i+1), rapid.IntRange(0, 3000).Draw(t, "size"), 0))
		}
		p.Commit(batchOf(ops[1]...), must)
		p.Spool().Commit(batchOf(ops[2]...), must)
		unread := [3][last + 2]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			from := rapid.IntRange(1, last).Draw(t, "from")
			to := rapid.IntRange(from+1, last+1).Draw(t, "to")
			w := rapid.IntRange(1, 2).Draw(t, "of")
			[]*atOnce{nil, p.stored, p.spooled}[w].Damage(1, store.Seq(from), store.Seq(to))
			for seq := from; seq < to; seq++ {
				unread[w][seq] = true
			}
		}
		r := store.PageRequest{Dest: 1, From: store.Seq(rapid.IntRange(0, last).Draw(t, "first")),
			To:    store.Seq(rapid.IntRange(0, last+2).Draw(t, "end")),
			Count: rapid.IntRange(0, 7).Draw(t, "count"),
			Bytes: rapid.Int64Range(0, 20_000).Draw(t, "bytes")}
		var want []string
		for seq := max(1, int(r.From)); seq < min(int(r.To), last+1); seq++ {
			switch w := where[seq-1]; {
			case w != 0 && !unread[w][seq]:
				want = append(want, fmt.Sprint(seq, " spooled ", w == 2))
			case unread[1][seq] || unread[2][seq]:
				want = append(want, fmt.Sprint(seq, " unreadable"))
			}
		}
		if got := p.readAll(t, r); !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	})
}

func TestAnOverlayFindsWhatExpiredInBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		var ops [2][]store.Op
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		for i := range n {
			w := rapid.IntRange(0, 1).Draw(t, "where")
			ops[w] = append(ops[w], placed(store.Seq(i+1), 1, rapid.Int64Range(1, 10).Draw(t, "time")))
		}
		p.Commit(batchOf(ops[0]...), must)
		p.Spool().Commit(batchOf(ops[1]...), must)
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		var after *store.ExpiredRef
		seen := map[store.Seq]bool{}
		for {
			var refs []store.ExpiredRef
			p.Expired(after, 100, limit, func(got []store.ExpiredRef, err error) {
				refs = got
				must(err)
			})
			for _, r := range refs {
				if seen[r.Seq] || after != nil && r.Expiration < after.Expiration {
					t.Fatalf("%+v comes behind %+v, seen before: %v", r, after, seen[r.Seq])
				}
				seen[r.Seq] = true
				after = &r
			}
			if len(refs) < limit {
				break
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d are found", len(seen), n)
		}
	})
}

func TestASpoolThatHasNothingIsNotAsked(t *testing.T) {
	p := newPair()
	read := func(want int) {
		t.Helper()
		p.Page(store.PageRequest{Dest: 1, To: 100}, func(_ []store.Stored, err error) { must(err) })
		p.Page(store.PageRequest{Dest: 2, To: 100}, func(_ []store.Stored, err error) { must(err) })
		p.Expired(nil, 100, 10, func(_ []store.ExpiredRef, err error) { must(err) })
		if p.spooled.reads != want || p.stored.reads%3 != 0 {
			t.Errorf("the spool is read %d times, want %d; the store %d", p.spooled.reads, want,
				p.stored.reads)
		}
	}
	p.Commit(batchOf(placed(1, 1, 0)), must)
	read(0)
	p.Spool().Commit(batchOf(placed(2, 1, 0)), must)
	read(2)
	p.Spool().Commit(&store.Batch{Ops: []store.Op{{Kind: store.DropDestination, Dest: 1}}}, must)
	read(2)
}

func TestAnErrorOfEitherFailsTheRead(t *testing.T) {
	for i := range 2 {
		p := newPair()
		p.Commit(batchOf(placed(1, 1, 0)), must)
		p.Spool().Commit(batchOf(placed(2, 1, 5)), must)
		[]*atOnce{p.stored, p.spooled}[i].err = errors.New("it cannot be read")
		p.Page(store.PageRequest{Dest: 1, To: 100}, func(page []store.Stored, err error) {
			if err == nil || page != nil {
				t.Errorf("the page is %v, %v", page, err)
			}
		})
		p.Expired(nil, 100, 10, func(refs []store.ExpiredRef, err error) {
			if err == nil || refs != nil {
				t.Errorf("expired are %v, %v", refs, err)
			}
		})
	}
}
