package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// gate is a store whose Apply waits for the gate to open, and counts.
type gate struct {
	*mem.Store
	open    chan struct{}
	mu      sync.Mutex
	applies []int // batches of each Apply
}

func newGate() *gate { return &gate{Store: mem.New(), open: make(chan struct{})} }

func (g *gate) Apply(batches []*store.Batch) error {
	<-g.open
	g.mu.Lock()
	g.applies = append(g.applies, len(batches))
	g.mu.Unlock()
	return g.Store.Apply(batches)
}

// inOrder is a loop that runs what is posted under one lock.
type inOrder struct {
	mu  sync.Mutex
	log []string
}

func (l *inOrder) post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	return true
}

func (l *inOrder) add(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf(format, args...))
}

func (l *inOrder) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.log)
}

func put(seq store.Seq) *store.Batch {
	m := &message.Message{Content: make([]byte, 10)}
	h := &store.Header{ID: 1, Head: 1, Reserved: 1 << 40,
		Destination: message.Destination{Kind: message.Queue, Name: "q"}}
	return &store.Batch{Bytes: m.Size(), Ops: []store.Op{
		{Kind: store.PutHeader, Header: h},
		{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m}}}
}

func remove(seq store.Seq) *store.Batch {
	return &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: seq}}}
}

func expect(t *testing.T, l *inOrder, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := l.seen(); !slices.Equal(got, want) {
		t.Errorf("answers are %q\nwant %q", got, want)
	}
}

func closeAll(t *testing.T, c *store.Committer) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Error("close:", err)
	}
}

func TestBatchesOfManyTurnsShareOneApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), &inOrder{}
		c := store.NewCommitter(g, l.post)
		done := 0
		for i := range 2501 {
			c.Commit(put(store.Seq(i+1)), func(error) { done++ })
			if i == 0 {
				synctest.Wait() // it stands in Apply alone
			}
		}
		close(g.open)
		closeAll(t, c)
		if want := []int{1, 1000, 1000, 500}; !slices.Equal(g.applies, want) || done != 2501 {
			t.Errorf("applies of %v batches, %d answers; want %v, 2501", g.applies, done, want)
		}
	})
}

func TestAnApplyTakesAboutEightMiB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), &inOrder{}
		c := store.NewCommitter(g, l.post)
		for i := range 5 {
			b := put(store.Seq(i + 1))
			b.Bytes = 4 << 20
			c.Commit(b, func(error) {})
			if i == 0 {
				synctest.Wait()
			}
		}
		close(g.open)
		closeAll(t, c)
		if want := []int{1, 2, 2}; !slices.Equal(g.applies, want) {
			t.Errorf("applies of %v batches, want %v", g.applies, want)
		}
	})
}

func TestAReadSeesTheCommitsBeforeItAndAnswersAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), &inOrder{}
		c := store.NewCommitter(g, l.post)
		page := func(p []store.Stored, err error) { l.add("page %d %v", len(p), err) }
		r := store.PageRequest{Dest: 1, To: 100}
		c.Page(r, page)
		expect(t, l, "page 0 <nil>")
		c.Commit(put(1), func(err error) { l.add("commit 1 %v", err) })
		synctest.Wait() // it stands in Apply alone
		c.Page(r, page)
		c.Commit(put(2), func(err error) { l.add("commit 2 %v", err) })
		c.Expired(nil, 1, 1, func(e []store.ExpiredRef, err error) { l.add("expired %v %v", e, err) })
		c.Receipts(1, func(r store.Receipts, err error) { l.add("receipts %v %v", r.Peers, err) })
		expect(t, l, "page 0 <nil>")
		g.open <- struct{}{}
		synctest.Wait()
		if got := l.seen(); len(got) != 3 || got[1] != "commit 1 <nil>" || got[2] != "page 1 <nil>" {
			t.Errorf("answers are %q", got)
		}
		close(g.open)
		expect(t, l, "page 0 <nil>", "commit 1 <nil>", "page 1 <nil>",
			"commit 2 <nil>", "expired [] <nil>", "receipts [] <nil>")
		closeAll(t, c)
	})
}

func TestAFullStoreGivesPutsBackAndWhatIsBehindThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), &inOrder{}
		c := store.NewCommitter(g, l.post)
		done := func(what string) func(error) {
			return func(err error) { l.add("%s %v", what, message.KindOf(err) == message.Limit) }
		}
		c.Commit(put(1), done("put 1"))
		synctest.Wait()
		c.Commit(remove(99), done("delete"))
		c.Commit(put(2), done("put 2"))
		c.Commit(remove(1), done("behind it"))
		c.Page(store.PageRequest{Dest: 1, To: 9}, func(p []store.Stored, err error) {
			l.add("page %d %v", len(p), err)
		})
		g.open <- struct{}{}
		synctest.Wait()
		g.SetCapacity(1034, 100)
		close(g.open)
		expect(t, l, "put 1 false", "delete false", "put 2 true", "behind it true", "page 1 <nil>")
		c.Commit(remove(1), done("delete again"))
		c.Commit(put(2), done("put 2 again"))
		synctest.Wait()
		expect(t, l, "put 1 false", "delete false", "put 2 true", "behind it true", "page 1 <nil>",
			"delete again false", "put 2 again false")
		closeAll(t, c)
	})
}

func TestCommitsMadeBeforeARefusalWasHeardAreRefusedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := mem.New(), &inOrder{}
		var late []func()
		c := store.NewCommitter(s, func(f func()) bool { late = append(late, f); return true })
		s.SetCapacity(1, 100)
		done := func(what string) func(error) {
			return func(err error) { l.add("%s %v", what, message.KindOf(err) == message.Limit) }
		}
		c.Commit(put(1), func(err error) {
			done("put")(err)
			c.Commit(remove(2), done("after it"))
		})
		synctest.Wait()
		c.Commit(remove(1), done("delete"))
		synctest.Wait()
		for len(late) > 0 {
			f := late[0]
			late = late[1:]
			f()
			synctest.Wait()
		}
		expect(t, l, "put true", "delete true", "after it false")
		closeAll(t, c)
	})
}

func TestAFatalErrorIsReportedOnceAndNothingIsAcknowledgedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := mem.New(), &inOrder{}
		c := store.NewCommitter(s, l.post)
		c.OnFatal = func(err error) { l.add("fatal %v", err) }
		broken := true
		s.SetFault(func([]*store.Batch) error {
			if broken {
				return errors.New("disk broken")
			}
			return nil
		})
		c.Commit(put(1), func(err error) { l.add("acknowledged %v", err) })
		c.Page(store.PageRequest{Dest: 1, To: 9}, func(_ []store.Stored, err error) {
			l.add("page %v", message.KindOf(err) == message.Unavailable)
		})
		expect(t, l, "fatal disk broken", "page true")
		broken = false
		c.Commit(put(2), func(err error) { l.add("acknowledged %v", err) })
		expect(t, l, "fatal disk broken", "page true")
		if err := c.Close(t.Context()); err == nil {
			t.Error("Close after a fatal error reports nothing")
		}
	})
}

func TestCloseGivesUpWithItsContextAndTellsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), &inOrder{}
		c := store.NewCommitter(g, l.post)
		c.Commit(put(1), func(err error) { l.add("acknowledged %v", err) })
		c.Page(store.PageRequest{Dest: 1, To: 9}, func(_ []store.Stored, err error) {
			l.add("page %v", err)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Close(ctx)
		want := "store: 1 batches were not written: context deadline exceeded"
		if err == nil || err.Error() != want {
			t.Errorf("Close: %v, want %s", err, want)
		}
		expect(t, l, "page store: the broker stops")
		c.Commit(put(2), func(err error) { l.add("late %v", err) })
		expect(t, l, "page store: the broker stops", "late store: the broker stops")
		close(g.open)
	})
}

func TestCloseOfAnUnusedCommitterReturns(t *testing.T) {
	c := store.NewCommitter(mem.New(), func(func()) bool { return false })
	closeAll(t, c)
}
