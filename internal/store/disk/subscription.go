package disk

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// terms are what a subscription has in all its headers. They may be long, so they have a record of
// their own, which is written with the first header: nearly every batch writes a header again.
type terms struct {
	destination  message.Destination
	subscription store.Subscription
}

// termsOf gives the terms in a header, nil of what is no subscription.
func termsOf(h *store.Header) *terms {
	if h.Subscription == nil {
		return nil
	}
	return &terms{h.Destination, *h.Subscription}
}

// has reports whether a header says the same; nil are the terms of what is no subscription.
func (t *terms) has(h *store.Header) bool {
	if t == nil || h.Subscription == nil {
		return t == nil && h.Subscription == nil
	}
	return t.destination == h.Destination && t.subscription == *h.Subscription
}

// putTerms writes the terms with the first header of a subscription, and holds the others to them.
func (a *applier) putTerms(w *work, h *store.Header) error {
	if w.header {
		if !w.terms.has(h) {
			return message.Errorf(message.Internal,
				"store: a header of destination %d makes it another subscription", h.ID)
		}
		return nil
	}
	if w.terms = termsOf(h); w.terms == nil {
		return nil
	}
	a.key = destKey(a.key[:0], kindTerms, h.ID)
	a.value = appendTerms(a.value[:0], w.terms)
	a.set(a.key, a.value)
	return nil
}

// dropTerms removes the record of the terms.
func (a *applier) dropTerms(w *work) {
	if w.terms != nil {
		a.delete(destKey(a.key[:0], kindTerms, w.id))
		w.terms = nil
	}
}

var errNoTerms = errors.New("it is missing")

// joinTerms completes the header of a subscription.
func (s *Store) joinTerms(from pebble.Reader, h *store.Header) error {
	if h.Subscription == nil {
		return nil
	}
	rec, err := s.get(from, destKey(nil, kindTerms, h.ID))
	if err != nil {
		return err
	}
	t, err := decodeTerms(rec)
	if rec == nil {
		err = errNoTerms
	}
	if err != nil {
		return s.corrupt(fmt.Sprintf("what destination %d subscribes to", h.ID), err)
	}
	h.Destination, *h.Subscription = t.destination, t.subscription
	return nil
}

// A record of terms is version, destination, ClientID, Name, Selector and NoLocal.
func appendTerms(b []byte, t *terms) []byte {
	s := &t.subscription
	b = appendDestination(append(b, recordVersion), t.destination)
	b = appendText(appendText(appendText(b, s.ClientID), s.Name), s.Selector)
	return append(b, boolByte(s.NoLocal))
}

func decodeTerms(rec []byte) (t terms, err error) {
	if len(rec) == 0 || rec[0] != recordVersion {
		return t, errVersion(rec, recordVersion)
	}
	r := reader{s: string(rec[1:])}
	t.destination = r.destination()
	t.subscription = store.Subscription{ClientID: r.text(), Name: r.text(), Selector: r.text(),
		NoLocal: r.bool()}
	return t, r.end()
}
