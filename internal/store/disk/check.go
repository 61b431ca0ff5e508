package disk

import (
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// checkNew asserts that the key of a message or reference was not written by an earlier Apply.
func (a *applier) checkNew(op *store.Op) error {
	if !invariants {
		return nil
	}
	old, err := a.s.get(a.s.db, seqKey(nil, kindMessage, op.Dest, op.Seq))
	if err == nil && old != nil {
		err = message.Errorf(message.Internal,
			"store: message %d of destination %d was put twice", op.Seq, op.Dest)
	}
	return err
}

// checkPuts holds the puts of a batch to the headers at its end.
func (a *applier) checkPuts(b *store.Batch) error {
	fits := !a.refs
	for _, w := range a.put {
		fits = fits && w.header && w.putLo >= w.head && w.putHi <= w.reserved &&
			w.role != subscription
		w.putLo, w.putHi = 0, 0
	}
	a.put, a.refs = a.put[:0], false
	if fits {
		return nil
	}
	for i := range b.Ops {
		op := &b.Ops[i]
		if !op.Puts() {
			continue
		}
		if err := a.checkPut(op); err != nil && !slices.ContainsFunc(b.Ops[i:], gone(op)) {
			return err
		}
	}
	return nil
}

// gone tells of what was put whether an operation removes it: one of the same batch, later.
func gone(put *store.Op) func(store.Op) bool {
	return func(op store.Op) bool {
		return op.Dest == put.Dest && (op.Kind == store.DropDestination ||
			op.Kind == store.DeleteMessage && op.Seq == put.Seq ||
			op.Kind == store.DeleteRange && op.Seq <= put.Seq && put.Seq < op.To)
	}
}

func (a *applier) checkPut(op *store.Op) error {
	w := a.work[op.Dest]
	if !w.header || op.Seq < w.head || op.Seq >= w.reserved {
		return message.Errorf(message.Internal,
			"store: message %d put to destination %d outside of head %d and reserved %d",
			op.Seq, op.Dest, w.head, w.reserved)
	}
	if (w.role == subscription) != (op.Kind == store.PutReference) {
		return message.Errorf(message.Internal,
			"store: %d put to destination %d: messages go to queues and logs, references to"+
				" subscriptions", op.Seq, op.Dest)
	}
	if op.Kind == store.PutReference && !a.hasLogged(op.Source, op.Seq) {
		return message.Errorf(message.Internal,
			"store: reference %d put to destination %d: destination %d is no log with such a message",
			op.Seq, op.Dest, op.Source)
	}
	return nil
}

// hasLogged reports whether a log may have a message: with heavy assertions, whether it has it.
func (a *applier) hasLogged(id store.DestID, seq store.Seq) bool {
	w := a.work[id]
	if w == nil {
		d := a.s.dests[id] // changed by Apply only
		if d == nil {
			return false
		}
		w = &work{head: d.head, reserved: d.reserved, header: d.header, role: d.role}
	}
	if !w.header || w.role != log || seq < w.head || seq >= w.reserved {
		return false
	}
	if !invariants || slices.Contains(w.logged, seq) {
		return true
	}
	rec, err := a.s.get(a.s.db, seqKey(nil, kindMessage, id, seq))
	return err == nil && rec != nil
}
