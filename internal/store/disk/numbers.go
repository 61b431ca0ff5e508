package disk

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// numbersIn reads the numbers of all producers of a destination.
func (s *Store) numbersIn(snap *pebble.Snapshot, id store.DestID) (out []store.ProducerNumbers,
	err error) {
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: destKey(nil, kindNumbers, id),
		UpperBound: destKey(nil, kindNumbers, id+1)})
	if err != nil {
		return nil, s.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		producer, parsed := producerOf(it.Key())
		if !parsed {
			out = append(out, store.ProducerNumbers{
				Damage: s.corrupt(fmt.Sprintf("the key %q", it.Key()), errRecord)})
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, s.readError(err)
		}
		p := store.ProducerNumbers{Producer: producer}
		if p.Numbers, err = message.ParseNumbers(value); err != nil {
			p.Damage = s.corruptNumbers(id, producer, err)
		}
		out = append(out, p)
	}
	if err := it.Error(); err != nil {
		return nil, s.readError(err)
	}
	slices.SortFunc(out, func(a, b store.ProducerNumbers) int {
		return a.Producer.Compare(b.Producer)
	})
	return out, nil
}

func (s *Store) corruptNumbers(id store.DestID, p message.ProducerID, err error) error {
	return s.corrupt(fmt.Sprintf("the numbers of destination %d and producer %v", id, p), err)
}

// numbers is what is remembered of the numbers of one producer.
type numbers struct {
	used *message.Numbers // nil: there are none
	due  bool             // this Apply has them to write
}

// numbersOf gives what is remembered of a producer, to be changed; it is written once for all of an
// Apply.
func (a *applier) numbersOf(w *work, p message.ProducerID) (n *numbers, known bool) {
	n, known = w.d.numbers[p], true
	if n == nil {
		if n, known = (&numbers{}), false; w.d.numbers == nil {
			w.d.numbers = map[message.ProducerID]*numbers{}
		}
		w.d.numbers[p] = n
	}
	if !n.due {
		n.due = true
		w.numbered = append(w.numbered, p)
	}
	return n, known
}

// putNumber reads what is there of the producer at the first time.
func (a *applier) putNumber(op *store.Op) error {
	w, p := a.of(op.Dest), op.ID.Producer
	a.needs(formatFourth)
	n, known := a.numbersOf(w, p)
	if !known {
		rec, err := a.s.get(a.s.db, numbersKey(nil, w.id, p))
		if err != nil {
			return err
		}
		if rec != nil {
			n.used, _ = message.ParseNumbers(rec) // Receipts tells of one that cannot be read
		}
	}
	n.used = n.used.With(op.ID.Sequence, int(op.Count))
	return nil
}

func (a *applier) dropNumbers(op *store.Op) {
	n, _ := a.numbersOf(a.of(op.Dest), op.ID.Producer)
	n.used = nil
}

func (a *applier) writeNumbers(w *work) {
	for _, p := range w.numbered {
		a.key = numbersKey(a.key[:0], w.id, p)
		n := w.d.numbers[p]
		n.due = false
		if n.used == nil {
			delete(w.d.numbers, p)
			a.delete(a.key)
			continue
		}
		a.value = n.used.Append(a.value[:0])
		a.set(a.key, a.value)
	}
}
