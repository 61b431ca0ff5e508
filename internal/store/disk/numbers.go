package disk

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// numbersIn reads the numbers of all producers of a destination.
func (s *Store) numbersIn(snap *pebble.Snapshot, id store.DestID, out *store.Receipts) error {
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: destKey(nil, kindNumbers, id),
		UpperBound: destKey(nil, kindNumbers, id+1)})
	if err != nil {
		return s.readError(err)
	}
	defer it.Close()
	damage, err := s.fromBothEnds(it, func(value []byte) (err error) {
		producer, parsed := producerOf(it.Key())
		p := store.ProducerNumbers{Producer: producer}
		if !parsed {
			p.Damage = s.corrupt(fmt.Sprintf("the key %q", it.Key()), errRecord)
		} else if p.Numbers, err = message.ParseNumbers(value); err != nil {
			p.Damage = s.corruptNumbers(id, producer, err)
		}
		out.Producers = append(out.Producers, p)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(out.Producers, func(a, b store.ProducerNumbers) int {
		return a.Producer.Compare(b.Producer)
	})
	if damage == nil {
		return nil
	}
	out.Producers = slices.CompactFunc(out.Producers, func(a, b store.ProducerNumbers) bool {
		return a.Producer == b.Producer
	})
	return damage
}

func (s *Store) corruptNumbers(id store.DestID, p message.ProducerID, err error) error {
	return s.corrupt(fmt.Sprintf("the numbers of destination %d and producer %v", id, p), err)
}

// numbersOf gives the numbers of a producer that this Apply has; they are written once for all of
// it.
func (a *applier) numbersOf(w *work, p message.ProducerID) (used *message.Numbers, known bool) {
	if used, known = w.numbers[p]; !known {
		if w.numbers == nil {
			w.numbers = map[message.ProducerID]*message.Numbers{}
		}
		w.numbered = append(w.numbered, p)
	}
	return used, known
}

func (a *applier) putNumber(op *store.Op) error {
	w, p := a.of(op.Dest), op.ID.Producer
	a.needs(formatFourth)
	used, known := a.numbersOf(w, p)
	if !known {
		used = a.remembered.take(numberKey{w.d, p})
	}
	if !known && used == nil {
		a.key = numbersKey(a.key[:0], w.id, p)
		rec, done, err := a.s.db.Get(a.key)
		switch {
		case err == nil:
			used, _ = message.ParseNumbers(rec) // Receipts tells of one that cannot be read
			_ = done.Close()                    // only gives memory back
		case !errors.Is(err, pebble.ErrNotFound) && !pebble.IsCorruptionError(err):
			return a.s.readError(err)
		}
	}
	w.numbers[p] = used.With(op.ID.Sequence, int(op.Count))
	return nil
}

func (a *applier) dropNumbers(op *store.Op) {
	w, p := a.of(op.Dest), op.ID.Producer
	if _, known := a.numbersOf(w, p); !known {
		a.remembered.take(numberKey{w.d, p})
	}
	w.numbers[p] = nil
}

func (a *applier) writeNumbers(w *work) {
	for _, p := range w.numbered {
		a.key = numbersKey(a.key[:0], w.id, p)
		used := w.numbers[p]
		if used == nil {
			a.delete(a.key)
			continue
		}
		a.value = used.Append(a.value[:0])
		a.set(a.key, a.value)
	}
}

// rememberNumbers has the next Apply know what this one wrote.
func (a *applier) rememberNumbers() {
	for _, w := range a.order {
		for _, p := range w.numbered {
			if used := w.numbers[p]; used != nil && !w.dropped {
				a.remembered.put(numberKey{w.d, p}, used)
			}
		}
		w.numbers, w.numbered = nil, nil // the work is kept until the next Apply
	}
}
