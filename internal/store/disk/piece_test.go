package disk

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func queueHeader(reserved store.Seq) store.Op {
	return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: 1, Reserved: reserved,
		Destination: message.Destination{Kind: message.Queue, Name: "q"}}}
}

func applyOps(t *testing.T, s *Store, ops ...store.Op) {
	t.Helper()
	if err := s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
}

// TestABodyInPiecesIsReadAsItWasPut puts bodies of every size about that of a piece, with and
// without properties, and removes them again, also after the store was opened anew.
func TestABodyInPiecesIsReadAsItWasPut(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	var want []*message.Message
	ops := []store.Op{queueHeader(100)}
	for _, size := range []int{2999, 3000, 3001, 5999, 6000, 6001, 50_000} {
		for _, props := range []int{0, 1, 2999, 3001, 6500} {
			m := &message.Message{Content: make([]byte, size)}
			if props > 0 {
				m.Properties = make([]byte, props)
			}
			for i := range m.Content {
				m.Content[i] = byte(rand.IntN(256))
			}
			for i := range m.Properties {
				m.Properties[i] = byte(rand.IntN(256))
			}
			want = append(want, m)
			ops = append(ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: store.Seq(len(want)),
				Message: m})
		}
	}
	applyOps(t, s, ops...)
	for round := range 2 {
		page, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 100})
		if err != nil || len(page) != len(want) {
			t.Fatalf("%d of %d: %v", len(page), len(want), err)
		}
		for i, st := range page {
			if st.Damage != nil || !bytes.Equal(st.Message.Content, want[i].Content) ||
				!bytes.Equal(st.Message.Properties, want[i].Properties) {
				t.Fatalf("round %d: message %d of %d and %d bytes is another: %v", round, i,
					len(want[i].Properties), len(want[i].Content), st.Damage)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openMem(t, fs)
	}
	for i := range want {
		applyOps(t, s, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: store.Seq(i + 1)})
	}
	// What is put and removed by one Apply leaves nothing, either.
	applyOps(t, s, queueHeader(101), store.Op{Kind: store.PutMessage, Dest: 1, Seq: 100,
		Message: want[len(want)-1]}, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 100})
	for key := range s.keys(t) {
		if key[0] != kindHeader {
			t.Errorf("%q is left", key)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAMessageThatLacksAPieceIsDamagedAndTheOthersAreNot(t *testing.T) {
	m := &message.Message{Content: make([]byte, 9500)}
	for name, key := range map[string][]byte{
		"count": seqKey(nil, kindCount, 1, 2), "first": pieceKey(nil, 1, 2, 0),
		"inner": pieceKey(nil, 1, 2, 2), "last": pieceKey(nil, 1, 2, 3),
	} {
		s := openMem(t, vfs.NewMem())
		applyOps(t, s, queueHeader(4),
			store.Op{Kind: store.PutMessage, Dest: 1, Seq: 1, Message: m},
			store.Op{Kind: store.PutMessage, Dest: 1, Seq: 2, Message: m},
			store.Op{Kind: store.PutMessage, Dest: 1, Seq: 3, Message: m})
		if err := s.db.Delete(key, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		page, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 4})
		if err != nil || len(page) != 3 || page[0].Damage != nil || page[2].Damage != nil ||
			message.KindOf(page[1].Damage) != message.Corrupt {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A message whose count of pieces makes no sense takes all that is there of it along.
func TestWhatPiecesAreLeftOfADamagedCountGoesWithItsMessage(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	m := &message.Message{Content: make([]byte, 9500)}
	applyOps(t, s, queueHeader(3), store.Op{Kind: store.PutMessage, Dest: 1, Seq: 1, Message: m},
		store.Op{Kind: store.PutMessage, Dest: 1, Seq: 2, Message: m})
	if err := s.db.Set(seqKey(nil, kindCount, 1, 1), []byte{0}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	applyOps(t, s, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 1})
	left := map[byte]int{}
	for key := range s.keys(t) {
		left[key[0]]++
	}
	if left[kindPiece] != 4 || left[kindCount] != 1 || left[kindMessage] != 1 {
		t.Errorf("%v records are left of the other message", left)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
