package window

import (
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

var queueA = message.Destination{Kind: message.Queue, Name: "a"}

func id(n int) message.MessageID { return message.MessageID{Sequence: int64(n)} }

func filled(prefetch, n int) *Window[int] {
	w := New[int](prefetch, true)
	for i := 1; i <= n; i++ {
		w.Add(i, &message.Message{ID: id(i)}, queueA, 0)
	}
	return w
}

func refs(w *Window[int]) []int {
	var out []int
	w.Each(func(e *Entry[int]) { out = append(out, e.Ref) })
	return out
}

func ack(t message.AckType, first, last, count int) *message.MessageAck {
	return &message.MessageAck{Destination: queueA, Type: t, First: id(first), Last: id(last),
		HasFirst: first > 0, HasLast: true, Count: int32(count)}
}

func inTx(a *message.MessageAck) *message.MessageAck {
	a.Transaction = message.TransactionID{Connection: "c", Value: 1}
	return a
}

func TestAnAcknowledgementNamesWhatWasDispatched(t *testing.T) {
	for _, c := range []struct {
		name string
		ack  *message.MessageAck
		take []int
		err  string
	}{
		{"one", ack(message.StandardAck, 1, 1, 1), []int{1}, ""},
		{"a range in the order of dispatch", ack(message.StandardAck, 2, 4, 3), []int{2, 3, 4}, ""},
		{"from the start", ack(message.StandardAck, 0, 3, 3), []int{1, 2, 3}, ""},
		{"only the last", ack(message.IndividualAck, 0, 3, 1), []int{3}, ""},
		{"a count that differs", ack(message.StandardAck, 1, 3, 2), nil,
			"Unmatched acknowledge: expected message count (2) differs from the 3 dispatched" +
				" between :0:0:1 and :0:0:3"},
		{"a count that differs in a transaction", inTx(ack(message.StandardAck, 1, 3, 5)), nil,
			"Unmatched acknowledge: expected message count (5) differs from the 3 dispatched" +
				" between :0:0:1 and :0:0:3"},
		{"a last one never dispatched", ack(message.StandardAck, 1, 9, 9), nil,
			"Unmatched acknowledge of :0:0:9 on queue://a: its last message was not dispatched" +
				" to this consumer"},
		{"a first one behind the last", ack(message.StandardAck, 4, 2, 1), nil,
			"Unmatched acknowledge of :0:0:2 on queue://a: its last message was not dispatched" +
				" to this consumer"},
		{"another queue", &message.MessageAck{Type: message.IndividualAck, HasLast: true,
			Destination: message.Destination{Kind: message.Queue, Name: "b"}, Last: id(1)}, nil,
			"Unmatched acknowledge of :0:0:1 on queue://b: the message was not dispatched to this" +
				" consumer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := filled(10, 5)
			r, err := w.Find(c.ack)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if w.Len() != 5 {
					t.Errorf("a refused acknowledgement removed something")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var took []int
			w.Take(r, func(e *Entry[int]) { took = append(took, e.Ref) })
			if len(took) != len(c.take) || took[0] != c.take[0] {
				t.Errorf("took %v, want %v", took, c.take)
			}
			if w.Len() != 5-len(c.take) {
				t.Errorf("%d entries stay", w.Len())
			}
		})
	}
}

func TestWhatReachedTheClientMakesRoom(t *testing.T) {
	w := filled(4, 4)
	if w.Room() != 0 {
		t.Fatalf("room %d in a full window", w.Room())
	}
	r, err := w.Find(ack(message.DeliveredAck, 0, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	w.MarkDelivered(r, 2)
	if w.Room() != 2 {
		t.Errorf("room %d after two were delivered, want 2", w.Room())
	}
	r, _ = w.Find(ack(message.StandardAck, 0, 2, 2))
	w.Take(r, func(*Entry[int]) {})
	if w.Room() != 2 {
		t.Errorf("room %d after the two were consumed, want 2", w.Room())
	}
}

func TestAPullLetsOneMessageThrough(t *testing.T) {
	w := New[int](0, true)
	if w.Room() != 0 {
		t.Fatal("room without a pull")
	}
	w.Pull()
	if w.Room() != 1 || w.Add(1, &message.Message{}, queueA, 0) {
		t.Error("a pull is for one message")
	}
	if w.Unpull() {
		t.Error("an answered pull was taken back")
	}
}

func TestARollbackLeavesTheMessagesWithTheClient(t *testing.T) {
	w := filled(3, 3)
	tx := message.TransactionID{Connection: "c", Value: 1}
	a := ack(message.StandardAck, 0, 2, 2)
	a.Transaction = tx
	r, err := w.Find(a)
	if err != nil {
		t.Fatal(err)
	}
	w.Hold(r, tx, func(*Entry[int]) {})
	if w.Room() != 2 {
		t.Errorf("room %d while two are acknowledged in a transaction, want 2", w.Room())
	}
	w.Rollback(tx, func(*Entry[int]) {})
	if w.Len() != 3 || w.Room() != 0 {
		t.Errorf("after the rollback: %d entries, room %d", w.Len(), w.Room())
	}
	w.Hold(r, tx, func(*Entry[int]) {})
	n := 0
	w.Commit(tx, func(*Entry[int]) { n++ })
	if n != 2 || w.Len() != 1 || w.Room() != 2 {
		t.Errorf("after the commit: %d taken, %d entries, room %d", n, w.Len(), w.Room())
	}
}

// TestTheWindowAgreesWithAList compares random use with a plain list.
func TestTheWindowAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefetch := rapid.IntRange(1, 8).Draw(t, "prefetch")
		w := New[int](prefetch, true)
		var list []int
		next := 1
		t.Repeat(map[string]func(*rapid.T){
			"dispatch": func(t *rapid.T) {
				for range w.Room() {
					w.Add(next, &message.Message{ID: id(next)}, queueA, 0)
					list = append(list, next)
					next++
				}
			},
			"individual": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(list)-1).Draw(t, "i")
				take(t, w, ack(message.IndividualAck, 0, list[i], 1))
				list = append(list[:i], list[i+1:]...)
			},
			"range": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(list)-1).Draw(t, "i")
				take(t, w, ack(message.StandardAck, 0, list[i], i+1))
				list = list[i+1:]
			},
			"delivered": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip()
				}
				r, err := w.Find(ack(message.DeliveredAck, 0, list[len(list)-1], 1))
				if err != nil {
					t.Fatal(err)
				}
				w.MarkDelivered(r, 1)
			},
			"": func(t *rapid.T) {
				got := refs(w)
				if len(got) != len(list) {
					t.Fatalf("window %v, list %v", got, list)
				}
				for i := range got {
					if got[i] != list[i] {
						t.Fatalf("window %v, list %v", got, list)
					}
				}
				if w.extension < 0 || w.extension > w.Len() {
					t.Fatalf("extension %d of %d entries", w.extension, w.Len())
				}
			},
		})
	})
}

func take(t rapid.TB, w *Window[int], a *message.MessageAck) {
	r, err := w.Find(a)
	if err != nil {
		t.Fatal(err)
	}
	w.Take(r, func(*Entry[int]) {})
}

func TestARangeMayCrossDestinations(t *testing.T) {
	b := message.Destination{Kind: message.Queue, Name: "b"}
	add := func(w *Window[int], entries ...any) {
		for i := 0; i < len(entries); i += 2 {
			w.Add(i/2, &message.Message{ID: id(entries[i].(int))},
				entries[i+1].(message.Destination), 0)
		}
	}
	for _, c := range []struct {
		name        string
		entries     []any
		first, last int
		of          message.Destination
		count       int32
		want        Range
	}{
		{"of several queues", []any{0, queueA, 1, b, 2, queueA, 3, b}, 0, 3, b, 4, Range{0, 4}},
		{"of two copies of one message", []any{5, queueA, 5, b}, 5, 5, b, 2, Range{0, 2}},
		{"of one of two copies", []any{5, queueA, 5, b}, 5, 5, b, 1, Range{1, 2}},
		{"of the other", []any{5, queueA, 5, b}, 5, 5, queueA, 1, Range{0, 1}},
	} {
		w := New[int](100, true)
		add(w, c.entries...)
		r, err := w.Find(&message.MessageAck{Type: message.StandardAck, Destination: c.of,
			First: id(c.first), Last: id(c.last), HasFirst: true, HasLast: true, Count: c.count})
		if err != nil || r != c.want {
			t.Errorf("%s: %v %v, want %v", c.name, r, err, c.want)
		}
	}
}

// A JMS client that goes on while a branch of its is prepared names that one's messages, too, and
// counts them.
func TestATransactionNamesWhatAnotherHolds(t *testing.T) {
	for count, want := range map[int]bool{4: true, 2: true, 3: false, 5: false} {
		w := filled(10, 5)
		first := inTx(ack(message.StandardAck, 1, 2, 2))
		r, err := w.Find(first)
		if err != nil {
			t.Fatal(err)
		}
		w.Hold(r, first.Transaction, func(*Entry[int]) {})
		next := ack(message.StandardAck, 1, 4, count)
		next.Transaction = message.TransactionID{Connection: "c", Value: 2}
		if _, err := w.Find(next); (err == nil) != want {
			t.Errorf("a count of %d: %v", count, err)
		}
	}
}
