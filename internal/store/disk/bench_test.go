package disk_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// body gives half-compressible bytes.
func body(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range n / 2 {
		b[i] = byte(r.Uint32())
	}
	return b
}

func textMessage(r *rand.Rand, seq store.Seq) *message.Message {
	p := message.ProducerID{Connection: "ID:host-41234-1763550000000-1:1", Session: 1, Value: 1}
	q := message.Destination{Kind: message.Queue, Name: "orders.incoming"}
	return &message.Message{
		ID: message.MessageID{Producer: p, Sequence: int64(seq)}, Producer: p, Destination: q,
		Timestamp: 1_763_550_000_000, BrokerInTime: 1_763_550_000_001, Persistent: true, Priority: 4,
		Body: message.TextBody, Content: body(r, 1024),
	}
}

// loader puts and removes messages in one queue as a broker does, with its header.
type loader struct {
	s    store.Store
	r    *rand.Rand
	h    store.Header
	next store.Seq
}

func newLoader(s store.Store) *loader {
	return &loader{s: s, r: rand.New(rand.NewPCG(1, 1)), next: 1, h: store.Header{ID: 1, Head: 1,
		Destination: message.Destination{Kind: message.Queue, Name: "orders.incoming"}}}
}

func (l *loader) header(b *store.Batch) {
	h := l.h
	if l.h.Reserved < l.next {
		l.h.Reserved = l.next + 1000
		h.Reserved = l.h.Reserved
	}
	b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Header: &h})
}

func (l *loader) put(n int) error {
	b := &store.Batch{}
	for range n {
		m := textMessage(l.r, l.next)
		b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: l.next, Message: m})
		b.Bytes += m.Size()
		l.h.Count++
		l.h.Bytes += m.Size()
		l.next++
	}
	l.header(b)
	return l.s.Apply([]*store.Batch{b})
}

// remove acknowledges the messages of a page that begins the queue.
func (l *loader) remove(p []store.Stored) error {
	b := &store.Batch{}
	for _, st := range p {
		b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: st.Seq})
		l.h.Count--
		l.h.Bytes -= st.Message.Size()
		l.h.Head = st.Seq + 1
	}
	l.header(b)
	return l.s.Apply([]*store.Batch{b})
}

func (l *loader) page(n int) ([]store.Stored, error) {
	return l.s.Page(store.PageRequest{Dest: 1, From: l.h.Head, To: ^store.Seq(0), Count: n})
}

func (l *loader) readAll(n int) error {
	for from := store.Seq(1); ; {
		p, err := l.s.Page(store.PageRequest{Dest: 1, From: from, To: l.next, Count: n})
		if err != nil || len(p) == 0 {
			return err
		}
		from = p[len(p)-1].Seq + 1
	}
}

func openIn(t testing.TB, dir string, inline int) *disk.Store {
	t.Helper()
	s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true,
		InlineBytes: inline, OnWarning: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkCommit(b *testing.B) {
	for _, inline := range []int{4096, 1} {
		for _, group := range []int{1, 16, 100} {
			b.Run(fmt.Sprintf("inline=%d/group=%d", inline, group), func(b *testing.B) {
				s := openIn(b, b.TempDir(), inline)
				l := newLoader(s)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if err := l.put(group); err != nil {
						b.Fatal(err)
					}
					n += group
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func BenchmarkPage200(b *testing.B) {
	for _, inline := range []int{4096, 1} {
		b.Run(fmt.Sprint("inline=", inline), func(b *testing.B) {
			s := openIn(b, b.TempDir(), inline)
			l := newLoader(s)
			for range 500 {
				if err := l.put(100); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			from, n := store.Seq(1), 0
			for b.Loop() {
				p, err := s.Page(store.PageRequest{Dest: 1, From: from, To: ^store.Seq(0), Count: 200})
				if err != nil {
					b.Fatal(err)
				}
				n += len(p)
				from = p[len(p)-1].Seq + 1
				if len(p) < 200 || from == l.next {
					from = 1
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkDrain removes 100,000 messages from the head, 100 a synced Apply, paging them in.
func BenchmarkDrain(b *testing.B) {
	for _, inline := range []int{4096, 1} {
		b.Run(fmt.Sprint("inline=", inline), func(b *testing.B) {
			s := openIn(b, b.TempDir(), inline)
			l := newLoader(s)
			for b.Loop() {
				b.StopTimer()
				for range 1000 {
					if err := l.put(100); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				for l.h.Count > 0 {
					p, err := l.page(100)
					if err == nil {
						err = l.remove(p)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// TestBacklogOfAMillion loads, reopens, pages and drains 1,000,000 messages of 1 KiB and prints
// the figures. It runs only with HOPWIRE_BACKLOG=1 (or another number of messages), takes a minute
// and a gigabyte in the temporary folder. It fails when a reopen takes a second.
func TestBacklogOfAMillion(t *testing.T) {
	v := os.Getenv("HOPWIRE_BACKLOG")
	if v == "" {
		t.Skip("HOPWIRE_BACKLOG is not set")
	}
	total, _ := strconv.Atoi(v)
	if total < 1000 {
		total = 1_000_000
	}
	dir := t.TempDir()
	inline, _ := strconv.Atoi(os.Getenv("HOPWIRE_INLINE"))
	s := openIn(t, dir, inline)
	l := newLoader(s)
	timed := func(what string, f func()) time.Duration {
		began := time.Now()
		f()
		took := time.Since(began)
		t.Logf("%-32s %9v  rss %4d MiB  disk %5d MiB", what, took.Round(time.Millisecond/10),
			rss()>>20, used(dir)>>20)
		return took
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reopen := func() { must(s.Close()); s = openIn(t, dir, inline); l.s = s }
	timed("load, 100 an Apply", func() {
		for range total / 100 {
			must(l.put(100))
		}
	})
	timed("close", func() { must(s.Close()) })
	took := timed("open", func() {
		s = openIn(t, dir, inline)
		l.s = s
		if h, err := s.Headers(); err != nil || h[0].Count != int64(total) {
			t.Fatal(h, err)
		}
	})
	if took > time.Second {
		t.Errorf("open took %v, want under a second", took)
	}
	timed("first page of 200", func() { _, err := l.page(200); must(err) })
	timed("read all, pages of 200", func() { must(l.readAll(200)) })
	timed("remove 95 %, 100 an Apply", func() {
		for l.h.Count > int64(total/20) {
			p, err := l.page(100)
			must(err)
			must(l.remove(p))
		}
	})
	timed("first page behind them", func() { _, err := l.page(200); must(err) })
	timed("page from the very start", func() {
		_, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: l.next, Count: 200})
		must(err)
	})
	timed("close and open", reopen)
	timed("first page", func() { _, err := l.page(200); must(err) })
	timed("one Apply that removes 200", func() {
		p, err := l.page(200)
		must(err)
		must(l.remove(p))
	})
	must(s.Close())
}

func rss() int64 {
	text, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

func used(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			n += used(dir + "/" + e.Name())
		} else if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// topicLoader puts messages in logs with references of all subscriptions. Logs have the ids 1 to
// logs, subscriptions those above 100.
type topicLoader struct {
	loader
	logs, subs, every int // a subscription takes every so many messages
}

func newTopicLoader(s store.Store, logs, subs, every int) *topicLoader {
	return &topicLoader{*newLoader(s), logs, subs, every}
}

func (l *topicLoader) headers(b *store.Batch) {
	if l.h.Reserved < l.next {
		l.h.Reserved = l.next + 1000
	}
	for i := range l.logs + l.subs {
		h := l.h
		h.ID = store.DestID(1 + i)
		h.Destination.Kind = message.Topic
		if i >= l.logs {
			h.ID = store.DestID(101 + i - l.logs)
			h.Subscription = &store.Subscription{ClientID: "client", Name: "subscription"}
		}
		b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Header: &h})
	}
}

func (l *topicLoader) put(n int) error {
	b := &store.Batch{}
	for range n {
		m := textMessage(l.r, l.next)
		log := store.DestID(1 + int(l.next)%l.logs)
		b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: log, Seq: l.next, Message: m})
		b.Bytes += m.Size()
		for i := range l.subs {
			if (int(l.next)+i)%l.every == 0 {
				b.Ops = append(b.Ops, store.Op{Kind: store.PutReference, Dest: store.DestID(101 + i),
					Seq: l.next, Source: log})
			}
		}
		l.next++
	}
	l.headers(b)
	return l.s.Apply([]*store.Batch{b})
}

// drain pages all subscriptions in side by side and removes what they have, n an Apply.
func (l *topicLoader) drain(n int) error {
	for {
		b := &store.Batch{}
		for i := range l.subs {
			id := store.DestID(101 + i)
			p, err := l.s.Page(store.PageRequest{Dest: id, From: l.h.Head, To: l.next, Count: n})
			if err != nil {
				return err
			}
			for _, st := range p {
				b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: id, Seq: st.Seq})
			}
		}
		if len(b.Ops) == 0 {
			return nil
		}
		l.h.Head = b.Ops[len(b.Ops)-1].Seq + 1
		l.headers(b)
		if err := l.s.Apply([]*store.Batch{b}); err != nil {
			return err
		}
	}
}

func BenchmarkTopicCommit(b *testing.B) {
	for _, subs := range []int{1, 10} {
		b.Run(fmt.Sprint("subscriptions=", subs), func(b *testing.B) {
			dir := b.TempDir()
			l := newTopicLoader(openIn(b, dir, 0), 1, subs, 1)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if err := l.put(100); err != nil {
					b.Fatal(err)
				}
				n += 100
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
			for range 2 { // the second open finds the logs of the first emptied, and removes them
				if err := l.s.Close(); err != nil {
					b.Fatal(err)
				}
				l.s = openIn(b, dir, 0)
			}
			b.ReportMetric(float64(used(dir+"/db"))/float64(n), "disk-B/msg")
			if err := l.s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkTopicPage200(b *testing.B) {
	for _, c := range []struct {
		name        string
		logs, every int
	}{
		{"all of a log", 1, 1},
		{"a tenth of a log", 1, 10},
		{"all of 8 logs", 8, 1},
		{"all of 50 logs", 50, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newTopicLoader(openIn(b, b.TempDir(), 0), c.logs, 10, c.every)
			for range 500 {
				if err := l.put(100); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			r := store.PageRequest{Dest: 103, From: 1, To: l.next, Count: 200}
			n := 0
			for b.Loop() {
				p, err := l.s.Page(r)
				if err != nil {
					b.Fatal(err)
				}
				n += len(p)
				r.From = p[len(p)-1].Seq + 1
				if len(p) < 200 || r.From+200*store.Seq(c.every) > l.next {
					r.From = 1
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
			if err := l.s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkTopicDrain removes 20,000 messages that 10 subscriptions have, 100 of each an Apply.
func BenchmarkTopicDrain(b *testing.B) {
	l := newTopicLoader(openIn(b, b.TempDir(), 0), 1, 10, 1)
	for b.Loop() {
		b.StopTimer()
		for range 200 {
			if err := l.put(100); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := l.drain(100); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(20_000*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "references/s")
	if err := l.s.Close(); err != nil {
		b.Fatal(err)
	}
}
