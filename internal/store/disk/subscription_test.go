package disk

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// TestALongSelectorIsWrittenOnce puts the header of a subscription again and again, as each batch
// does that touches it, also after the store was opened again.
func TestALongSelectorIsWrittenOnce(t *testing.T) {
	const length = 100_000
	fs := vfs.NewMem()
	s := openMem(t, fs)
	long := func(what string) string { return strings.Repeat(what, length/len(what)) }
	h := store.Header{ID: 1, Head: 1, Reserved: 10, Destination: message.Destination{
		Kind: message.Topic, Name: long("t.")}, Subscription: &store.Subscription{
		ClientID: long("c"), Name: long("n"), Selector: long("a OR "), NoLocal: true}}
	for i := range 10 {
		before := s.db.Metrics().WAL.BytesIn
		h.Count++
		put := h // as a broker does: a copy with a subscription of its own
		sub := *h.Subscription
		put.Subscription = &sub
		if err := s.Apply([]*store.Batch{{Ops: []store.Op{
			{Kind: store.PutHeader, Header: &put}}}}); err != nil {
			t.Fatal(err)
		}
		if n := s.db.Metrics().WAL.BytesIn - before; (n > length) != (i == 0) {
			t.Errorf("header %d writes %d bytes", i, n)
		}
		if i == 5 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openMem(t, fs)
		}
		got, err := s.Headers()
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], h) {
			t.Fatalf("after %d headers %d are read, %v", i+1, len(got), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestASubscriptionWithoutItsTermsIsCorrupt(t *testing.T) {
	for _, c := range []struct {
		rec  []byte
		want string
	}{{nil, "it is missing"}, {[]byte{9}, "its version is 9, this program knows 1"}} {
		s := openMem(t, vfs.NewMem())
		h := &store.Header{ID: 7, Head: 1, Reserved: 10, Subscription: &store.Subscription{},
			Destination: message.Destination{Kind: message.Topic, Name: "t"}}
		if err := s.Apply([]*store.Batch{{Ops: []store.Op{
			{Kind: store.PutHeader, Header: h}}}}); err != nil {
			t.Fatal(err)
		}
		key := destKey(nil, kindTerms, 7)
		err := s.db.Delete(key, pebble.Sync)
		if c.rec != nil {
			err = s.db.Set(key, c.rec, pebble.Sync)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("store d: the record of what destination 7 subscribes to is damaged: %s",
			c.want)
		if _, err := s.Headers(); message.KindOf(err) != message.Corrupt || err.Error() != want {
			t.Errorf("headers: %v, want %s", err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
