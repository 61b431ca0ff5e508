// Package store says what a broker asks of its store, and nothing of how: ordered batches that
// survive a crash as a prefix, pages of messages, and a few small facts. Package storetest holds
// every implementation to it.
//
// A message of a topic is kept once, in the topic's log. Each durable subscription is a destination
// of its own, whose messages are references to those of one or, when it subscribes to a pattern,
// several logs. Sequences of a log and of its subscriptions are the same numbers: message and
// reference have one sequence. They have holes, since one counter serves all topics.
//
// A Store is driven by one Committer, which merges the batches of many turns into one sync and
// answers on the broker's loop.
package store

import (
	"iter"

	"hopwire/internal/message"
)

// DestID names a destination inside a store. It is never reused.
type DestID uint64

// Seq is a message's place in its destination. It is never reused; 0 is none.
type Seq uint64

// Header is what is kept of a destination beside its messages; start-up reads headers only.
// Every stored sequence is >= Head and < Reserved.
type Header struct {
	ID          DestID
	Destination message.Destination
	// Subscription makes the destination a subscription, and Destination what it subscribes to: a
	// topic, a pattern or a composite of topics. It is nil for queues and logs. It, and Destination
	// beside it, are the same in all headers of an id, else Apply refuses (Internal): they are
	// written once. Of queues and logs the kind of Destination is the same.
	Subscription *Subscription
	// Prepared makes the destination the keeper of what a prepared XA branch sent: messages that
	// nobody sees, from sequence 1 on without holes. Destination is zero then. Header and messages
	// are put in one batch, once, and end with DropDestination.
	Prepared *Prepared
	Reserved Seq // sequences below it may have been given out; raised in blocks
	// Head is a log's only way to end messages: what is below it is gone, and no reference to it
	// is left. It does not fall.
	Head Seq
	// Count and Bytes are of the stored messages, of a subscription of the references and the
	// messages that they are to. Of a log nobody looks at them.
	Count int64
	Bytes int64
	// ForwardedBelow holds, per peer broker, a sequence such that no message at or above it was
	// ever handed to a link to that peer.
	ForwardedBelow map[message.BrokerID]Seq
	// DeliveredBelow is a sequence such that no message at or above it was ever given to a client.
	DeliveredBelow Seq
}

// Prepared is an XA branch that was prepared: until its outcome is known nobody sees what it sent,
// and nobody but it has what it acknowledged.
type Prepared struct {
	ID   message.TransactionID
	Time int64 // when it was prepared; ms since the epoch
	Acks []AckRef
	Lost int64 // messages of what it sent that a repair could not read: it is not to be committed
}

// AckRef names a stored message of a queue, or a reference, that a prepared branch acknowledged,
// and what is needed to end it without reading it.
type AckRef struct {
	Dest       DestID
	Seq        Seq
	Expiration int64
	Size       int64 // of the message
	Redelivery int32
}

// Name is what no two headers of a store have in common.
type Name struct {
	Destination            message.Destination // of a queue or log
	ClientID, Subscription string
	Prepared               message.TransactionID
}

// Name gives what no other header has.
func (h *Header) Name() Name {
	switch {
	case h.Prepared != nil:
		return Name{Prepared: h.Prepared.ID}
	case h.Subscription != nil:
		return Name{ClientID: h.Subscription.ClientID, Subscription: h.Subscription.Name}
	}
	return Name{Destination: h.Destination}
}

// Older gives those of a store's headers that have the name of a newer one. There is none in a
// store unless it was repaired by an older version, or what tells that it was removed is lost.
func Older(headers iter.Seq[Header]) map[DestID]bool {
	newest, older := map[Name]DestID{}, map[DestID]bool{}
	for h := range headers {
		other, twice := newest[h.Name()]
		if twice {
			older[min(other, h.ID)] = true
		}
		newest[h.Name()] = max(other, h.ID)
	}
	return older
}

// IsLog reports whether the destination keeps the messages of a topic for its subscriptions.
func (h *Header) IsLog() bool {
	return h.Destination.Kind == message.Topic && h.Subscription == nil && h.Prepared == nil
}

// Subscription says whose a durable subscription is and what it takes.
type Subscription struct {
	ClientID string
	Name     string
	Selector string
	NoLocal  bool
}

// Key is the identity under which a receipt remembers an arrival.
type Key = message.ReceiptKey

// Receipt remembers that an arrival from a peer was taken. N orders the receipts of one
// (destination, peer), from 1 on, and is never reused. They need not be put in this order: one may
// wait for room that others do not need.
type Receipt struct {
	N   uint64
	Key Key
}

// PeerReceipts are the receipts of one (destination, peer).
type PeerReceipts struct {
	Peer message.BrokerID
	Next uint64    // no receipt at or above it was ever put; also of receipts that were all dropped
	List []Receipt // ascending by N, all N < Next
}

// Receipts are what tells that something was here before.
type Receipts struct {
	Peers     []PeerReceipts
	Producers []ProducerNumbers
	// Damage says, with kind Corrupt, that some cannot be read, which need not be of those in Peers.
	// From is a number then that no receipt of any peer has reached: the next ones begin there.
	Damage error
	From   uint64
}

// ProducerNumbers are the numbers that one producer used of a destination.
type ProducerNumbers struct {
	Producer message.ProducerID
	Numbers  *message.Numbers
	// Damage says, with kind Corrupt, why the record cannot be read. It is nil iff Numbers is not.
	// The producer is zero when its name cannot be read either. A PutNumber begins anew.
	Damage error
}

// Stored is one message as a page read gives it, of a reference the message that it is to. Of a
// Message everything is kept but its command Header and Data; empty and nil BrokerPath and Cluster
// are the same.
type Stored struct {
	Seq Seq
	// To makes it no message but a range, Seq <= seq < To, of which nothing can be read: Damage says
	// why. Which of its sequences are stored is not known, nor whether any is. A later read may
	// succeed: nothing of it is gone. It is 0 of a message.
	To         Seq
	Redelivery int32 // 0 when there is a Damage
	Message    *message.Message
	// Damage says, with kind Corrupt, why the message cannot be read: its record makes no sense, or
	// the log does not have what the reference is to. It is nil iff Message is not; the rest of the
	// page is as it would be without it, and the message can be deleted as any other.
	Damage error
	// Expiration is, when there is a Damage, what DeleteMessage wants: under which the message is
	// kept, 0 for none. That is looked for: it is in no record that names the message first.
	Expiration int64
	// Spooled says that it is of the spool (Overlay), message, damage or range; no store sets it.
	Spooled bool
}

// Next is where the rest of a page begins that ends with s.
func (s *Stored) Next() Seq { return max(s.Seq+1, s.To) }

// OpKind is the kind of one Op.
type OpKind uint8

// The kinds of Op, with the fields each uses.
const (
	Nothing         OpKind = iota // has no effect
	PutHeader                     // Header
	DropDestination               // Dest: header, messages, receipts, all; the id is not used again
	// PutMessage uses Dest, Seq, Message, Lasts: a key is written once; not to a subscription.
	PutMessage
	// DeleteMessage uses Dest, Seq, Expiration (exactly the message's; 0 of one that Lasts). It is
	// not of a log, nor of a prepared branch.
	DeleteMessage
	SetRedelivery // Dest, Seq, Count: of a stored message or reference
	// PutReceipt uses Dest, Peer, Receipt. It is refused (Internal) unless N is new: not put before,
	// below no number that was dropped, nor below Next as it was when the store was opened.
	PutReceipt
	DropReceipts // Dest, Peer: all with N < Receipt.N
	PutMeta      // Name, Value; a nil Value deletes
	// PutReference uses Dest, Seq, Source, Expiration: message Seq of the subscription Dest is the
	// one that the log Source has at Seq, put earlier or in the same batch. A key is written once.
	// Deleting it leaves the log alone. A log is dropped with, or after, all references to it.
	PutReference
	// PutNumber uses Dest, ID, Count: the number of the message joins those that its producer used of
	// Dest, of which as many as Count are kept. One record is written for all of an Apply.
	PutNumber
	DropNumbers // Dest, ID: all of its producer
	// DeleteRange deletes Seq <= seq < To of Dest, whether they can be read or not, with what else is
	// kept of them. It is not of a log, nor of a prepared branch.
	DeleteRange
)

// Op is one change. Only the fields its kind names are set.
type Op struct {
	Kind    OpKind
	Dest    DestID
	Seq     Seq
	To      Seq
	Source  DestID           // a log
	Message *message.Message // not changed by anybody after it was handed over
	// Lasts: whatever the message's expiration, Expired does not give it. A repair does not know of
	// that, so it is for what does not outlive the process.
	Lasts      bool
	Header     *Header // is not kept: it is one of those of its batch
	Expiration int64   // ms since the epoch, 0 never
	Count      int32
	Peer       message.BrokerID
	Receipt    Receipt
	ID         *message.MessageID // may be part of a message; is not changed
	Name       string
	Value      []byte
}

// Batch is what one turn changes. After a crash either all of its changes are there or none, and
// none without all batches before it.
type Batch struct {
	Ops   []Op
	Bytes int64 // of the messages put, for turn and commit limits
}

// Puts reports whether the batch puts a message or a reference: only such a batch is refused when
// space is low.
func (b *Batch) Puts() bool {
	for i := range b.Ops {
		if b.Ops[i].Puts() {
			return true
		}
	}
	return false
}

// Puts reports whether the operation puts a message or a reference.
func (o *Op) Puts() bool { return o.Kind == PutMessage || o.Kind == PutReference }

// PageRequest asks for stored messages of one destination in ascending sequence, From <= seq < To.
// A page ends with the message that is its Count-th or that brings the sum of message sizes to
// Bytes; zero sets no such limit. A message, or a range, that cannot be read counts as one of no
// size. An empty page says that there is nothing in the range.
type PageRequest struct {
	Dest  DestID
	From  Seq
	To    Seq
	Count int
	Bytes int64
}

// ExpiredRef names a stored message of a queue, or a reference, whose time is over.
type ExpiredRef struct {
	Dest       DestID
	Seq        Seq
	Expiration int64
}

// Space tells how much a store holds and whether it can take more. Full means that only batches
// that put nothing are wanted: the free space is below the reserve. What was under way when it
// became so is still taken from the reserve's upper half; below half of it Apply refuses puts.
type Space struct {
	UsedBytes    int64
	FreeBytes    int64 // -1 when nobody knows
	ReserveBytes int64
	Full         bool
}

// Store is one broker's store. Apply and the reads may run at the same time on two goroutines;
// Apply itself is called by one.
type Store interface {
	// Headers gives all destinations, in the order of their ids. Called once, at start.
	Headers() ([]Header, error)
	// Meta gives a small fact, nil when there is none.
	Meta(name string) ([]byte, error)
	// Apply makes the batches durable, in order, with one sync. It keeps nothing of them but messages,
	// as their memory is used again. When it fails with an error of
	// kind message.Limit nothing of the batches is there and the call may be repeated; after any
	// other error the process must not go on. A put is refused (Internal) unless its destination
	// has a header at the end of its batch with Head <= seq < Reserved.
	Apply(batches []*Batch) error
	// Page reads messages; it sees every batch that was applied before the call.
	Page(r PageRequest) ([]Stored, error)
	// Receipts gives the receipts of a destination: of every peer of which one was ever put, also
	// when all were dropped since, in the order of their names; and of producers, in the order of
	// their ids.
	Receipts(dest DestID) (Receipts, error)
	// Expired gives stored messages whose expiration is before the time (ms since the epoch),
	// in the order of expiration, destination and sequence, at most limit: from the first on, or
	// behind after when it is not nil. References are among them, the messages of logs and of
	// prepared branches are not.
	Expired(after *ExpiredRef, before int64, limit int) ([]ExpiredRef, error)
	// Space tells what room there is. It may be called from any goroutine at any time.
	Space() Space
	// Close ends the store; everything applied is there at the next open.
	Close() error
}
