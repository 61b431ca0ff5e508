package window

import (
	"fmt"
	"testing"

	"hopwire/internal/message"
)

func TestWhatWasDeliveredIsNamedByItsLastMessage(t *testing.T) {
	w := filled(4, 4)
	take(t, w, ack(message.IndividualAck, 0, 1, 1))
	r, err := w.Find(ack(message.DeliveredAck, 1, 3, 3)) // the client counts from its first one
	if err != nil {
		t.Fatal(err)
	}
	w.MarkDelivered(r, 3)
	if w.Room() != 3 {
		t.Errorf("room %d when one of three is with the client, want 3", w.Room())
	}
}

// TestARangeOfCopiesBeginsWhereItsCountSays acknowledges ranges that begin with any copy of a
// message that was sent to three queues, and end with any copy of the next.
func TestARangeOfCopiesBeginsWhereItsCountSays(t *testing.T) {
	queues := []message.Destination{{Kind: message.Queue, Name: "x"},
		{Kind: message.Queue, Name: "y"}, {Kind: message.Queue, Name: "z"}}
	for first := range 3 {
		for last := 3; last < 6; last++ {
			t.Run(fmt.Sprint(first, " to ", last), func(t *testing.T) {
				w := New[int](10, true)
				for i := range 6 {
					w.Add(i, &message.Message{ID: id(i / 3)}, queues[i%3], 0)
				}
				a := ack(message.StandardAck, 0, 1, last-first+1)
				a.Destination, a.First, a.HasFirst = queues[last%3], id(0), true
				r, err := w.Find(a)
				if err != nil {
					t.Fatal(err)
				}
				if r != (Range{first, last + 1}) {
					t.Errorf("it takes [%d, %d)", r.from, r.to)
				}
			})
		}
	}
}

func TestEntriesApartTakeNoRoom(t *testing.T) {
	w := filled(3, 2)
	w.AddApart(3, &message.Message{ID: id(3)}, queueA, 0)
	w.AddApart(4, &message.Message{ID: id(4)}, queueA, 0)
	state := func(what string, room, apart int) {
		t.Helper()
		if w.Room() != room || w.Apart() != apart {
			t.Errorf("%s: room %d, %d apart; want %d and %d", what, w.Room(), w.Apart(), room, apart)
		}
	}
	state("at first", 1, 2)
	r, err := w.Find(ack(message.DeliveredAck, 0, 3, 3))
	if err != nil {
		t.Fatal(err)
	}
	w.MarkDelivered(r, 3)
	state("three delivered", 3, 1)
	tx := message.TransactionID{Connection: "c", Value: 1}
	if r, err = w.Find(ack(message.StandardAck, 0, 4, 4)); err != nil {
		t.Fatal(err)
	}
	w.Hold(r, tx, func(*Entry[int]) {})
	state("all in a transaction", 3, 0)
	w.Rollback(tx, func(*Entry[int]) {})
	state("rolled back", 1, 2)
	take(t, w, ack(message.StandardAck, 0, 3, 3))
	state("three taken", 3, 1)
	w.Filter(func(*Entry[int]) bool { return false })
	state("empty", 3, 0)
}

func TestARangeEndsBeforeTheOtherCopyOfItsFirst(t *testing.T) {
	x, y := message.Destination{Kind: message.Queue, Name: "x"},
		message.Destination{Kind: message.Queue, Name: "y"}
	w := New[int](10, true)
	w.Add(0, &message.Message{ID: id(2)}, x, 0)
	w.Add(1, &message.Message{ID: id(1)}, y, 0)
	w.Add(2, &message.Message{ID: id(2)}, y, 0)
	a := ack(message.StandardAck, 2, 1, 2)
	a.Destination = y
	r, err := w.Find(a)
	if err != nil || r != (Range{0, 2}) {
		t.Errorf("it takes [%d, %d), %v", r.from, r.to, err)
	}
}
