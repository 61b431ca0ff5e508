package disk_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

var repairMetas = []string{"brokerId", "nextDest"}

// contents is all that a store has.
type contents struct {
	headers  map[store.DestID]store.Header
	messages map[store.DestID]map[store.Seq]store.Stored
	receipts map[store.DestID]store.Receipts
	expires  map[store.ExpiredRef]bool
	metas    map[string]string
}

func contentsOf(t *testing.T, s *disk.Store) *contents {
	t.Helper()
	c := &contents{headers: map[store.DestID]store.Header{},
		messages: map[store.DestID]map[store.Seq]store.Stored{},
		receipts: map[store.DestID]store.Receipts{}, expires: map[store.ExpiredRef]bool{},
		metas: map[string]string{}}
	headers, err := s.Headers()
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, s: s}
	for _, h := range headers {
		c.headers[h.ID] = h
		read, ranges := f.all(h.ID, h.Reserved)
		if len(ranges) > 0 {
			t.Errorf("%d has damage: %v", h.ID, ranges[0].Damage)
		}
		c.messages[h.ID] = read
		if c.receipts[h.ID], err = s.Receipts(h.ID); err != nil || c.receipts[h.ID].Damage != nil {
			t.Error(err, c.receipts[h.ID].Damage)
		}
	}
	var after *store.ExpiredRef
	for {
		refs, err := s.Expired(after, 1<<50, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(refs) == 0 {
			break
		}
		for _, r := range refs {
			c.expires[r] = true
		}
		after = &refs[len(refs)-1]
	}
	for _, name := range repairMetas {
		value, err := s.Meta(name)
		if err != nil {
			t.Fatal(err)
		}
		c.metas[name] = string(value)
	}
	return c
}

// noise gives bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(b)
	return b
}

// everything makes a store that has a bit of everything, in several tables, and gives its folder
// and what it has.
func everything(t *testing.T) (dir string, before *contents) {
	t.Helper()
	f := newFolder(t)
	topic := message.Destination{Kind: message.Topic, Name: "t"}
	size := func(ops []store.Op) (n int64) {
		for _, op := range ops {
			if op.Kind == store.PutMessage {
				n += op.Message.Size()
			}
		}
		return n
	}
	named := func(kind message.Kind, name string) func(*message.Message) {
		return func(m *message.Message) {
			m.Destination = message.Destination{Kind: kind, Name: name}
			m.Properties = []byte("p")
		}
	}
	queue := puts(1, 1, 801, 1, func(m *message.Message) {
		named(message.Queue, "q")(m)
		m.Expiration = int64(m.Content[0])*1000 + 1<<40
	})
	log := puts(2, 1, 401, 1, named(message.Topic, "t"))
	large := puts(4, 1, 41, 1, func(m *message.Message) {
		named(message.Queue, "large")(m)
		m.Content = noise(8000)
	})
	pieces := puts(6, 1, 4, 1, func(m *message.Message) {
		named(message.Queue, "pieces")(m)
		m.Content = noise(250_000)
	})
	branch := puts(5, 1, 41, 1, func(m *message.Message) {
		named(message.Queue, "q")(m)
		m.Transaction = message.TransactionID{XA: true, Global: "g", Branch: "b"}
	})
	var refs []store.Op
	for _, op := range log {
		refs = append(refs, store.Op{Kind: store.PutReference, Dest: 3, Seq: op.Seq, Source: 2})
	}
	h := func(id store.DestID, d message.Destination, to store.Seq, ops []store.Op) store.Op {
		return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: id, Destination: d, Head: 1,
			Reserved: to, Count: int64(len(ops)), Bytes: size(ops), DeliveredBelow: 5,
			ForwardedBelow: map[message.BrokerID]store.Seq{"peer": 3}}}
	}
	q := func(name string) message.Destination {
		return message.Destination{Kind: message.Queue, Name: name}
	}
	subscribed := h(3, topic, 1001, log)
	subscribed.Header.Subscription = &store.Subscription{ClientID: "c", Name: "n"}
	f.apply([]store.Op{
		{Kind: store.PutMeta, Name: "brokerId", Value: []byte("b")},
		{Kind: store.PutMeta, Name: "nextDest", Value: []byte("1000")},
		h(1, q("q"), 1001, queue), h(2, topic, 1001, nil), subscribed, h(4, q("large"), 1001, large),
		h(6, q("pieces"), 1001, pieces)})
	prepared := store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 5, Head: 1,
		Reserved: 41, Count: 40, Bytes: size(branch), Prepared: &store.Prepared{
			ID:   message.TransactionID{XA: true, Global: "g", Branch: "b"},
			Acks: []store.AckRef{{Dest: 1, Seq: 7}}}}}
	f.apply(append(slices.Clip(branch), prepared))
	for _, ops := range [][]store.Op{slices.Concat(queue[:400], log),
		slices.Concat(refs, large, pieces), queue[400:], receiptsAndMore(h)} {
		f.apply(ops)
	}
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	before = contentsOf(t, f.s)
	f.close()
	return f.dir, before
}

// receiptsAndMore are receipts, numbers of producers, and headers of empty queues.
func receiptsAndMore(h func(store.DestID, message.Destination, store.Seq, []store.Op) store.Op) (
	ops []store.Op) {
	random := rand.NewChaCha8([32]byte{7})
	for n := range uint64(600) {
		r := store.Receipt{N: n + 1}
		_, _ = random.Read(r.Key[:])
		ops = append(ops, store.Op{Kind: store.PutReceipt, Dest: 1, Peer: "peer", Receipt: r},
			store.Op{Kind: store.PutNumber, Dest: 1, Count: 100, ID: &message.MessageID{Sequence: 5,
				Producer: message.ProducerID{Connection: message.ConnectionID(fmt.Sprint("ID:", n))}}})
	}
	for id := store.DestID(100); id < 300; id++ {
		ops = append(ops, h(id, message.Destination{Kind: message.Queue,
			Name: fmt.Sprint("queue.", id)}, 10, nil))
	}
	return append(ops, store.Op{Kind: store.DropReceipts, Dest: 1, Peer: "peer",
		Receipt: store.Receipt{N: 100}})
}

// copyOf copies a store's folder, with a byte of a table turned.
func copyOf(t *testing.T, dir string, at float64) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(to, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, name := range tables {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += float64(info.Size())
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := int(at * total); i >= 0 && i < len(data) {
			data[i] ^= 0x55
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			break
		}
		at -= float64(len(data)) / total
	}
	return to
}

// A store of which a block is damaged, wherever, is repaired: it has all that is in no such block,
// and fits together.
func TestARepairKeepsWhatCanBeRead(t *testing.T) {
	dir, before := everything(t)
	lost := map[string]int{}
	const all, finer = 80, 80 // the latter in the first fourth, where the headers are
	for i := range all + finer {
		if testing.Short() && i%20 > 0 {
			continue
		}
		at := (float64(i) + 0.5) / all
		if i >= all {
			at = (float64(i-all) + 0.5) / finer / 4
		}
		to := copyOf(t, dir, at)
		got, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to, Metas: repairMetas})
		if err != nil {
			t.Fatal(i, err)
		}
		if got.Kept == "" {
			lost["nothing"]++
			continue
		}
		s, err := disk.Open(context.Background(), disk.Options{Dir: to, NoWait: true})
		if err != nil {
			t.Fatal(i, err)
		}
		after := contentsOf(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		compareRepaired(t, fmt.Sprintf("place %d: ", i), before, after, got, lost)
		again, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to, Metas: repairMetas})
		if err != nil || again.Kept != "" {
			t.Errorf("a second repair: %+v %v", again, err)
		}
		if t.Failed() {
			break
		}
	}
	t.Log(lost)
	for _, what := range []string{"messages", "references", "bodies", "pieces", "branch", "receipts",
		"numbers", "headers", "named"} {
		if lost[what] == 0 && !testing.Short() {
			t.Errorf("no damage met %s", what)
		}
	}
}

// A second repair within a second keeps what was there beside what the first kept.
func TestARepairTakesANameThatIsFree(t *testing.T) {
	dir, _ := everything(t)
	to := copyOf(t, dir, 0.3)
	for n := range 300 {
		at := time.Now().Add(time.Duration(n) * time.Second).Format("20060102-150405")
		if err := os.MkdirAll(filepath.Join(to, "db.damaged-"+at, "of another"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to, Metas: repairMetas})
	if err != nil || !strings.HasSuffix(got.Kept, "-2") {
		t.Errorf("what was there is in %q: %v", got.Kept, err)
	}
}

func compareRepaired(t *testing.T, at string, before, after *contents, told *disk.Repaired,
	lost map[string]int,
) {
	t.Helper()
	kinds := map[store.DestID]string{1: "messages", 2: "log", 3: "references", 4: "bodies",
		5: "branch", 6: "pieces"}
	for id, was := range before.headers {
		is, there := after.headers[id]
		if !there || id > 6 && is.Reserved != was.Reserved {
			lost["headers"]++
			if !there && (id == 1 || id == 2 || id == 4 || id == 6) {
				t.Errorf("%s%d has messages, and no header", at, id)
			}
			continue
		}
		n, missing := len(after.messages[id]), 0
		for seq, st := range before.messages[id] {
			now, read := after.messages[id][seq]
			switch {
			case !read:
				missing++
			case !reflect.DeepEqual(st.Message, now.Message) || st.Redelivery != now.Redelivery:
				t.Errorf("%s%d of %d is another", at, seq, id)
			}
		}
		if missing > 0 {
			lost[kinds[id]]++
		}
		if extra := n - len(before.messages[id]) + missing; extra != 0 {
			t.Errorf("%s%d of %d are new", at, extra, id)
		}
		if missing > 60 && id != 3 || missing > 400 {
			t.Errorf("%sof %d %d are lost by one block", at, id, missing)
		}
		made := is.Reserved != was.Reserved
		for _, d := range told.Destinations {
			if d.Header.ID == id && id != 2 && (d.Copied != int64(n) || d.Lost != int64(missing) &&
				!made) {
				t.Errorf("%sof %s %d are copied and %d lost, told as %d and %d", at, d.Name(), n, missing,
					d.Copied, d.Lost)
			}
		}
		if made {
			lost["named"]++
			continue
		}
		var bytes int64
		for _, st := range after.messages[id] {
			bytes += st.Message.Size()
		}
		if id != 2 && id != 5 && (is.Count != int64(n) || is.Bytes != bytes) {
			t.Errorf("%sthe header of %d has %d, %d bytes; there are %d, %d", at, id, is.Count, is.Bytes, n,
				bytes)
		}
		is.Count, is.Bytes = was.Count, was.Bytes
		if was.Prepared != nil {
			was.Prepared = acknowledged(was.Prepared, after)
			was.Prepared.Lost = was.Count - int64(n)
		}
		if !reflect.DeepEqual(is, was) {
			t.Errorf("%sthe header of %d was %+v, is %+v", at, id, was, is)
		}
		compareReceipts(t, at, before.receipts[id], after.receipts[id], lost)
	}
	compareOthers(t, at, before, after, told, lost)
}

// acknowledged gives a branch as it was but for what of its acknowledged messages is not there.
func acknowledged(was *store.Prepared, after *contents) *store.Prepared {
	is := *was
	is.Acks = nil
	for _, a := range was.Acks {
		if after.messages[a.Dest][a.Seq].Message != nil {
			is.Acks = append(is.Acks, a)
		}
	}
	return &is
}

// compareOthers compares expirations and facts.
func compareOthers(t *testing.T, at string, before, after *contents, told *disk.Repaired,
	lost map[string]int,
) {
	t.Helper()
	for r := range after.expires {
		if !before.expires[r] || after.messages[r.Dest][r.Seq].Message == nil {
			t.Fatalf("%sthe expiration %+v is of nothing", at, r)
		}
	}
	for r := range before.expires {
		if after.messages[r.Dest][r.Seq].Message != nil && !after.expires[r] {
			t.Fatalf("%sthe expiration %+v is lost", at, r)
		}
	}
	if !maps.Equal(before.metas, after.metas) {
		lost["metas"]++
		if len(told.Others) == 0 {
			t.Errorf("%sthe facts %v became %v, untold", at, before.metas, after.metas)
		}
	}
}

func compareReceipts(t *testing.T, at string, a, b store.Receipts, lost map[string]int) {
	t.Helper()
	if len(a.Peers) > 0 && !reflect.DeepEqual(a.Peers, b.Peers) {
		lost["receipts"]++
	}
	if len(a.Producers) != len(b.Producers) {
		lost["numbers"]++
	}
	if len(a.Producers)-len(b.Producers) > 560 {
		t.Errorf("%s%d producers of %d are left", at, len(b.Producers), len(a.Producers))
	}
}

// A damaged block of an old table takes nothing that lies in a newer one, though between its keys:
// messages that came later, and headers as they were written last.
func TestARepairFindsWhatLiesBesideDamage(t *testing.T) {
	f := newFolder(t)
	old := []store.Op{header(1, message.Queue, 301, 300), header(2, message.Queue, 301, 300)}
	f.apply(slices.Concat(old, puts(1, 1, 301, 1, nil), puts(2, 1, 301, 1, nil)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.apply(append(puts(1, 301, 501, 1, nil), header(1, message.Queue, 501, 500),
		header(2, message.Queue, 302, 300)))
	f.close()
	const places = 36 // of 50, which are those of the old table
	for i := range places {
		if testing.Short() && i > 0 {
			continue
		}
		to := copyOf(t, f.dir, (float64(i)+0.5)/50)
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to})
		if err != nil {
			t.Fatal(err)
		}
		s, err := disk.Open(context.Background(), disk.Options{Dir: to, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		after := contentsOf(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		missing := 1000 - 200 - len(after.messages[1]) - len(after.messages[2])
		if r.Kept != "" && missing == 0 || missing > 17 {
			t.Errorf("place %d: %d are missing of %d and %d; %+v", i, missing, len(after.messages[1]),
				len(after.messages[2]), r)
		}
		if after.headers[1].Reserved != 501 || after.headers[2].Reserved != 302 {
			t.Errorf("place %d: the headers are %+v", i, after.headers)
		}
	}
}
