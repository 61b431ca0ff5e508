package disk

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// logIter goes through a log for a page of a subscription.
type logIter struct {
	source store.DestID
	*pebble.Iterator
}

// mostLogs bounds the iterators of one page.
const mostLogs = 64

// resolve gives the message that a reference is to. It is asked in ascending order, so that
// iterators go through the logs beside the one of the references.
func (p *pager) resolve(seq store.Seq, ref []byte) (m *message.Message, damage, err error) {
	source, damage := decodeReference(ref)
	if damage != nil {
		return nil, p.damaged(p.r.Dest, seq, damage), nil
	}
	rec, err := p.logged(source, seq)
	switch {
	case err != nil && pebble.IsCorruptionError(err):
		return nil, p.damaged(source, seq, err), nil
	case err != nil:
		return nil, nil, err
	}
	if rec == nil {
		return nil, message.Errorf(message.Corrupt,
			"store %s: reference %d of destination %d is to a message that destination %d does not have",
			p.s.opts.Dir, seq, p.r.Dest, source), nil
	}
	return p.message(source, seq, rec)
}

// logged gives the record that a log has at a sequence, nil when there is none. It is good until
// the next call. The next record of the log is tried first: most subscriptions take most messages.
func (p *pager) logged(source store.DestID, seq store.Seq) ([]byte, error) {
	p.key = seqKey(p.key[:0], kindMessage, source, seq)
	it, err := p.log(source)
	switch {
	case err != nil:
		return nil, err
	case it == nil:
		return p.s.get(p.snap, p.key)
	}
	if !it.Valid() || !it.Next() || seqOf(it.Key()) < seq {
		it.SeekGE(p.key)
	}
	if !it.Valid() || seqOf(it.Key()) != seq {
		if err := it.Error(); err != nil {
			p.forget(source)
			return nil, p.s.readError(err)
		}
		return nil, nil
	}
	rec, err := it.ValueAndErr()
	if err != nil {
		return nil, p.s.readError(err)
	}
	return rec, nil
}

// forget ends the iterator of a log that met damage: the next reference begins anew.
func (p *pager) forget(source store.DestID) {
	p.logs = slices.DeleteFunc(p.logs, func(l logIter) bool {
		if l.source == source {
			_ = l.Close() // its error was looked at
		}
		return l.source == source
	})
}

// log gives the iterator of a log, made to begin at p.key, or nil when there are too many.
func (p *pager) log(source store.DestID) (*pebble.Iterator, error) {
	for _, l := range p.logs {
		if l.source == source {
			return l.Iterator, nil
		}
	}
	if len(p.logs) == mostLogs {
		return nil, nil
	}
	it, err := p.snap.NewIter(&pebble.IterOptions{LowerBound: p.key,
		UpperBound: seqKey(nil, kindMessage, source, p.r.To)})
	if err != nil {
		return nil, p.s.readError(err)
	}
	p.logs = append(p.logs, logIter{source, it})
	return it, nil
}

// raiseFrom begins a page of a log at the head that the snapshot has: what is below it may be there
// still.
func (p *pager) raiseFrom() error {
	rec, err := p.s.get(p.snap, destKey(nil, kindHeader, p.r.Dest))
	if err != nil || rec == nil {
		return err
	}
	h, err := decodeHeader(p.r.Dest, rec)
	if err != nil {
		return p.s.corrupt(fmt.Sprintf("destination %d", p.r.Dest), err)
	}
	p.r.From = max(p.r.From, h.Head)
	return nil
}
