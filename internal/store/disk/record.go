package disk

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// The first byte of every message and header record.
const (
	recordVersion       = 1
	referenceVersion    = 2 // of a message record: it is a reference
	subscriptionVersion = 2 // of a header record: it is a subscription's
	preparedVersion     = 3 // of a header record: it is a prepared branch's
)

// Flags of a message record: a field that is not there has its zero value.
const (
	flagBodyApart = 1 << iota // properties and body are in the b record
	flagPersistent
	flagCompressed
	flagGroupFirst
	flagDFBridge
	flagDroppable
	flagProperties // not nil
	flagContent    // not nil
	flagOwnProducer
	flagDestination
	flagOriginalDestination
	flagTransaction
	flagOriginalTransaction
	flagReplyTo
	flagGroup
	flagCorrelation
	flagType
	flagUser
	flagExpiration
	flagTimestamp
	flagArrival
	flagBrokerTimes
	flagBrokerSequence
	flagRedelivery
	flagPath
	flagCluster
	flagTarget
	flagBlob
	flagForeignID
	flagEmpty
	flagPieces // properties and body are in p records
	flagsEnd
)

// A message record is
//
//	version, flags uvarint, len(head) uvarint, head,
//	len(properties) uvarint, len(content) uvarint, properties, content
//
// with head holding everything else, in the order of encodeHead. Numbers are varints, texts have
// their length before them. With flagBodyApart the properties and content are the b record, with
// flagPieces the p records.

// appendRecord appends the record of a message up to, and without, its properties and content.
// where is flagBodyApart, flagPieces, or 0 for behind the record. head is scratch, given back for
// the next call.
func appendRecord(buf, head []byte, m *message.Message, where uint64) (record, scratch []byte) {
	flags := flagsOf(m) | where
	head = encodeHead(head[:0], m, flags)
	buf = append(buf, recordVersion)
	buf = binary.AppendUvarint(buf, flags)
	buf = binary.AppendUvarint(buf, uint64(len(head)))
	buf = append(buf, head...)
	buf = binary.AppendUvarint(buf, uint64(len(m.Properties)))
	return binary.AppendUvarint(buf, uint64(len(m.Content))), head
}

func flagsOf(m *message.Message) uint64 {
	var f uint64
	set := func(flag uint64, on bool) {
		if on {
			f |= flag
		}
	}
	set(flagPersistent, m.Persistent)
	set(flagCompressed, m.Compressed)
	set(flagGroupFirst, m.GroupFirst)
	set(flagDFBridge, m.ReceivedByDFBridge)
	set(flagDroppable, m.Droppable)
	set(flagProperties, m.Properties != nil)
	set(flagContent, m.Content != nil)
	set(flagOwnProducer, m.Producer != m.ID.Producer)
	set(flagDestination, !isZero(m.Destination))
	set(flagOriginalDestination, !isZero(m.OriginalDestination))
	set(flagTransaction, !m.Transaction.IsZero())
	set(flagOriginalTransaction, !m.OriginalTransaction.IsZero())
	set(flagReplyTo, !isZero(m.ReplyTo))
	set(flagGroup, m.GroupID != "" || m.GroupSequence != 0)
	set(flagCorrelation, m.CorrelationID != "")
	set(flagType, m.Type != "")
	set(flagUser, m.UserID != "")
	set(flagExpiration, m.Expiration != 0)
	set(flagTimestamp, m.Timestamp != 0)
	set(flagArrival, m.Arrival != 0)
	set(flagBrokerTimes, m.BrokerInTime != 0 || m.BrokerOutTime != 0)
	set(flagBrokerSequence, m.BrokerSequence != 0)
	set(flagRedelivery, m.RedeliveryCounter != 0)
	set(flagPath, len(m.BrokerPath) > 0)
	set(flagCluster, len(m.Cluster) > 0)
	set(flagTarget, m.TargetConsumer != message.ConsumerID{})
	set(flagBlob, m.Blob != nil)
	set(flagForeignID, m.ID.Text != "")
	set(flagEmpty, m.Empty != 0)
	return f
}

func isZero(d message.Destination) bool { return d == message.Destination{} }

func encodeHead(b []byte, m *message.Message, flags uint64) []byte {
	has := func(flag uint64) bool { return flags&flag != 0 }
	b = append(b, m.Priority, byte(m.Body))
	b = appendProducer(b, m.ID.Producer)
	b = binary.AppendVarint(b, m.ID.Sequence)
	if has(flagForeignID) {
		b = appendText(b, m.ID.Text)
	}
	if has(flagOwnProducer) {
		b = appendProducer(b, m.Producer)
	}
	if has(flagDestination) {
		b = appendDestination(b, m.Destination)
	}
	if has(flagOriginalDestination) {
		b = appendDestination(b, m.OriginalDestination)
	}
	if has(flagTransaction) {
		b = appendTransaction(b, m.Transaction)
	}
	if has(flagOriginalTransaction) {
		b = appendTransaction(b, m.OriginalTransaction)
	}
	if has(flagReplyTo) {
		b = appendDestination(b, m.ReplyTo)
	}
	if has(flagGroup) {
		b = binary.AppendVarint(appendText(b, m.GroupID), int64(m.GroupSequence))
	}
	if has(flagCorrelation) {
		b = appendText(b, m.CorrelationID)
	}
	if has(flagType) {
		b = appendText(b, m.Type)
	}
	if has(flagUser) {
		b = appendText(b, m.UserID)
	}
	return encodeNumbers(b, m, has)
}

// encodeNumbers is the second half of encodeHead.
func encodeNumbers(b []byte, m *message.Message, has func(uint64) bool) []byte {
	if has(flagExpiration) {
		b = binary.AppendVarint(b, m.Expiration)
	}
	if has(flagTimestamp) {
		b = binary.AppendVarint(b, m.Timestamp)
	}
	if has(flagArrival) {
		b = binary.AppendVarint(b, m.Arrival)
	}
	if has(flagBrokerTimes) {
		b = binary.AppendVarint(binary.AppendVarint(b, m.BrokerInTime), m.BrokerOutTime)
	}
	if has(flagBrokerSequence) {
		b = binary.AppendVarint(b, m.BrokerSequence)
	}
	if has(flagRedelivery) {
		b = binary.AppendVarint(b, int64(m.RedeliveryCounter))
	}
	if has(flagPath) {
		b = appendPath(b, m.BrokerPath)
	}
	if has(flagCluster) {
		b = appendPath(b, m.Cluster)
	}
	if has(flagTarget) {
		b = appendProducer(b, message.ProducerID(m.TargetConsumer))
	}
	if has(flagBlob) {
		b = appendText(appendText(b, m.Blob.URL), m.Blob.MIMEType)
		b = append(b, boolByte(m.Blob.DeletedByBroker))
	}
	if has(flagEmpty) {
		b = binary.AppendUvarint(b, uint64(m.Empty))
	}
	return b
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendProducer(b []byte, p message.ProducerID) []byte {
	b = appendText(b, string(p.Connection))
	return binary.AppendVarint(binary.AppendVarint(b, p.Session), p.Value)
}

func appendDestination(b []byte, d message.Destination) []byte {
	return appendText(append(b, byte(d.Kind)), d.Name)
}

func appendTransaction(b []byte, t message.TransactionID) []byte {
	if !t.XA {
		b = appendText(append(b, 0), string(t.Connection))
		return binary.AppendVarint(b, t.Value)
	}
	b = binary.AppendVarint(append(b, 1), int64(t.FormatID))
	return appendText(appendText(b, t.Global), t.Branch)
}

func appendPath(b []byte, path []message.BrokerID) []byte {
	b = binary.AppendUvarint(b, uint64(len(path)))
	for _, id := range path {
		b = appendText(b, string(id))
	}
	return b
}

// decodeMessage reads a record. apart gives properties and body of a message that has them in
// records of their own, in memory that the message may keep; want is 0 when they are in one, else
// their size in pieces.
func decodeMessage(rec []byte, apart func(want uint64) ([]byte, error)) (*message.Message, error) {
	m, flags, props, content, rest, err := decodeFront(rec)
	if err != nil {
		return nil, err
	}
	var own []byte
	if flags&(flagBodyApart|flagPieces) == 0 {
		own = slices.Clip(append([]byte{}, rest...))
	} else {
		want := uint64(0)
		if flags&flagPieces != 0 {
			want = props + content
		}
		if len(rest) != 0 || flags&flagPieces != 0 && (want == 0 || want < props) {
			return nil, errRecord
		}
		var err error
		if own, err = apart(want); err != nil {
			return nil, err
		}
	}
	size := uint64(len(own))
	if props > size || content != size-props ||
		props > 0 && flags&flagProperties == 0 || content > 0 && flags&flagContent == 0 {
		return nil, errRecord
	}
	if flags&flagProperties != 0 {
		m.Properties = own[:props:props]
	}
	if flags&flagContent != 0 {
		m.Content = own[props:]
	}
	return m, nil
}

// decodeFront reads a record up to its properties and content; rest is what is behind.
func decodeFront(rec []byte) (m *message.Message, flags, props, content uint64, rest []byte,
	err error) {
	if len(rec) == 0 || rec[0] != recordVersion {
		return nil, 0, 0, 0, nil, errVersion(rec, recordVersion)
	}
	rest = rec[1:]
	flags, ok1 := cutUvarint(&rest)
	headLen, ok2 := cutUvarint(&rest)
	if !ok1 || !ok2 || flags >= flagsEnd || headLen > uint64(len(rest)) {
		return nil, 0, 0, 0, nil, errRecord
	}
	m = &message.Message{}
	h := reader{s: string(rest[:headLen])} // one copy, of which all texts are parts
	h.head(m, flags)
	if err := h.end(); err != nil {
		return nil, 0, 0, 0, nil, err
	}
	rest = rest[headLen:]
	props, ok1 = cutUvarint(&rest)
	content, ok2 = cutUvarint(&rest)
	if !ok1 || !ok2 {
		return nil, 0, 0, 0, nil, errRecord
	}
	return m, flags, props, content, rest, nil
}

func (r *reader) head(m *message.Message, flags uint64) {
	has := func(flag uint64) bool { return flags&flag != 0 }
	m.Persistent, m.Compressed = has(flagPersistent), has(flagCompressed)
	m.GroupFirst, m.ReceivedByDFBridge = has(flagGroupFirst), has(flagDFBridge)
	m.Droppable = has(flagDroppable)
	m.Priority, m.Body = r.byte(), message.Body(r.byte())
	m.ID.Producer, m.ID.Sequence = r.producer(), r.varint()
	if has(flagForeignID) {
		m.ID.Text = r.text()
	}
	m.Producer = m.ID.Producer
	if has(flagOwnProducer) {
		m.Producer = r.producer()
	}
	if has(flagDestination) {
		m.Destination = r.destination()
	}
	if has(flagOriginalDestination) {
		m.OriginalDestination = r.destination()
	}
	if has(flagTransaction) {
		m.Transaction = r.transaction()
	}
	if has(flagOriginalTransaction) {
		m.OriginalTransaction = r.transaction()
	}
	if has(flagReplyTo) {
		m.ReplyTo = r.destination()
	}
	if has(flagGroup) {
		m.GroupID, m.GroupSequence = r.text(), r.int32()
	}
	if has(flagCorrelation) {
		m.CorrelationID = r.text()
	}
	if has(flagType) {
		m.Type = r.text()
	}
	if has(flagUser) {
		m.UserID = r.text()
	}
	r.numbers(m, has)
}

// numbers is the second half of head.
func (r *reader) numbers(m *message.Message, has func(uint64) bool) {
	if has(flagExpiration) {
		m.Expiration = r.varint()
	}
	if has(flagTimestamp) {
		m.Timestamp = r.varint()
	}
	if has(flagArrival) {
		m.Arrival = r.varint()
	}
	if has(flagBrokerTimes) {
		m.BrokerInTime, m.BrokerOutTime = r.varint(), r.varint()
	}
	if has(flagBrokerSequence) {
		m.BrokerSequence = r.varint()
	}
	if has(flagRedelivery) {
		m.RedeliveryCounter = r.int32()
	}
	if has(flagPath) {
		m.BrokerPath = r.path()
	}
	if has(flagCluster) {
		m.Cluster = r.path()
	}
	if has(flagTarget) {
		m.TargetConsumer = message.ConsumerID(r.producer())
	}
	if has(flagBlob) {
		m.Blob = &message.Blob{URL: r.text(), MIMEType: r.text(), DeletedByBroker: r.bool()}
	}
	if has(flagEmpty) {
		m.Empty = uint16(r.uvarint())
	}
}

// A header record is version, destination, Reserved, Head, Count, Bytes, the number of peers and
// per peer its name and ForwardedBelow, sorted by name. Last is DeliveredBelow, if it is not 0.
// With subscriptionVersion there is no destination: it is in the record of the terms.
func appendHeader(b []byte, h *store.Header) []byte {
	switch {
	case h.Prepared != nil:
		return appendPrepared(b, h)
	case h.Subscription != nil:
		b = append(b, subscriptionVersion)
	default:
		b = appendDestination(append(b, recordVersion), h.Destination)
	}
	b = binary.AppendUvarint(b, uint64(h.Reserved))
	b = binary.AppendUvarint(b, uint64(h.Head))
	b = binary.AppendVarint(b, h.Count)
	b = binary.AppendVarint(b, h.Bytes)
	b = binary.AppendUvarint(b, uint64(len(h.ForwardedBelow)))
	for _, peer := range slices.Sorted(maps.Keys(h.ForwardedBelow)) {
		b = appendText(b, string(peer))
		b = binary.AppendUvarint(b, uint64(h.ForwardedBelow[peer]))
	}
	if h.DeliveredBelow > 0 {
		b = binary.AppendUvarint(b, uint64(h.DeliveredBelow))
	}
	return b
}

// decodeHeader reads a header; of a subscription's, joinTerms reads the rest.
func decodeHeader(id store.DestID, rec []byte) (store.Header, error) {
	switch {
	case len(rec) == 0 || rec[0] == 0 || rec[0] > preparedVersion:
		return store.Header{}, errVersion(rec, preparedVersion)
	case rec[0] == preparedVersion:
		return decodePrepared(id, rec)
	}
	r := reader{s: string(rec[1:])}
	h := store.Header{ID: id}
	if rec[0] == subscriptionVersion {
		h.Subscription = &store.Subscription{}
	} else {
		h.Destination = r.destination()
	}
	h.Reserved, h.Head = store.Seq(r.uvarint()), store.Seq(r.uvarint())
	h.Count, h.Bytes = r.varint(), r.varint()
	n := r.count()
	if n > 0 {
		h.ForwardedBelow = make(map[message.BrokerID]store.Seq, n)
	}
	for range n {
		peer := message.BrokerID(r.text())
		h.ForwardedBelow[peer] = store.Seq(r.uvarint())
	}
	if r.at < len(r.s) {
		h.DeliveredBelow = store.Seq(r.uvarint())
	}
	if err := r.end(); err != nil {
		return store.Header{}, err
	}
	return h, nil
}

func errVersion(rec []byte, known int) error {
	if len(rec) == 0 {
		return errRecord
	}
	return fmt.Errorf("its version is %d, this program knows %d", rec[0], known)
}

// A message record of a subscription is a reference: referenceVersion and the id of the log whose
// message of the same sequence it is to.
func appendReference(b []byte, source store.DestID) []byte {
	return binary.AppendUvarint(append(b, referenceVersion), uint64(source))
}

func isReference(rec []byte) bool { return len(rec) > 0 && rec[0] == referenceVersion }

func decodeReference(rec []byte) (store.DestID, error) {
	source, err := uvarintValue(rec[1:])
	return store.DestID(source), err
}
