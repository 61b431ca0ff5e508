package client

import "hopwire/openwire"

// auditDepth is how many acknowledged messages a connection remembers.
const auditDepth = 8192

// messageKey is what makes two message ids equal.
type messageKey struct {
	producer openwire.ProducerId
	sequence int64
	text     string // of foreign ids, which have no producer
}

func keyOf(id *openwire.MessageId) messageKey {
	if id == nil {
		return messageKey{}
	}
	if id.ProducerID == nil {
		return messageKey{sequence: id.ProducerSequenceID, text: id.TextView}
	}
	key := messageKey{producer: *id.ProducerID, sequence: id.ProducerSequenceID}
	key.producer.Empty = 0
	if key.producer.ConnectionID == "" {
		key.text = id.TextView
	}
	return key
}

// auditKey is a message at the place where it was received: copies of one message on
// other destinations, or in other subscriptions of a topic, are messages of their own.
type auditKey struct {
	message messageKey
	place   string
}

// audit remembers the last messages that were acknowledged and on which link, because a lost link
// may have lost their acknowledgement too. Only with failover anything is put into it.
type audit struct {
	epochs map[auditKey]int
	ring   []auditKey
	next   int
}

func (a *audit) add(key auditKey, epoch int) {
	if a.epochs == nil {
		a.epochs = map[auditKey]int{}
	}
	if _, known := a.epochs[key]; !known {
		if len(a.ring) < auditDepth {
			a.ring = append(a.ring, key)
		} else {
			delete(a.epochs, a.ring[a.next])
			a.ring[a.next] = key
			a.next = (a.next + 1) % auditDepth
		}
	}
	a.epochs[key] = epoch
}

// duplicate tells whether a message that arrives on the link of an epoch was acknowledged on an
// older one. On the same link a broker sends a message again only because somebody wants it so.
func (a *audit) duplicate(key auditKey, epoch int) bool {
	then, known := a.epochs[key]
	return known && then < epoch
}
