package load

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Type ids of OpenWire, as the field tables of the protocol name them.
const (
	typeHello             = 1
	typeConnectionInfo    = 3
	typeSessionInfo       = 4
	typeConsumerInfo      = 5
	typeProducerInfo      = 6
	typeConnectionError   = 16
	typeDispatch          = 21
	typeAck               = 22
	typeMessage           = 24
	typeResponse          = 30
	typeExceptionResponse = 31
	typeIntegerResponse   = 32

	typeQueue        = 100
	typeTopic        = 101
	typeTempQueue    = 102
	typeTempTopic    = 103
	typeMessageID    = 110
	typeLocalTx      = 111
	typeConnectionID = 120
	typeSessionID    = 121
	typeConsumerID   = 122
	typeProducerID   = 123
	typeBrokerID     = 124
)

const version = 12

// Writers of primitive values, each appending to a frame.

func putInt(b []byte, v int) []byte    { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func putLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func putString(b []byte, s string) []byte { return putKey(append(b, 1), s) }

func putKey(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// begin starts a command's frame: room for its length, type, number, whether an answer is wanted.
func begin(kind byte, number int, answer bool) []byte {
	return putBool(putInt([]byte{0, 0, 0, 0, kind}, number), answer)
}

// finish writes the length in front.
func finish(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// names are the ids of one client.
type names struct {
	connection string
	dest       string // with its scheme
}

func (n names) putDest(b []byte) []byte {
	if topic, ok := strings.CutPrefix(n.dest, "topic://"); ok {
		return putString(append(b, 1, typeTopic), topic)
	}
	return putString(append(b, 1, typeQueue), strings.TrimPrefix(n.dest, "queue://"))
}

// putID writes a consumer or producer id, number 1 of session 1; both have two longs.
func (n names) putID(b []byte, kind byte) []byte {
	return putLong(putLong(putString(append(b, 1, kind), n.connection), 1), 1)
}

func hello() []byte {
	props := putInt(nil, 7)
	for _, key := range []string{
		"CacheEnabled", "SizePrefixDisabled", "TightEncodingEnabled", "StackTraceEnabled",
	} {
		props = append(putKey(props, key), 1, 0)
	}
	props = append(putKey(props, "TcpNoDelayEnabled"), 1, 1)
	props = putLong(append(putKey(props, "MaxInactivityDuration"), 6), 0)
	props = putLong(append(putKey(props, "MaxFrameSize"), 6), 100<<20)
	b := append([]byte{0, 0, 0, 0, typeHello}, "ActiveMQ"...)
	b = putInt(append(putInt(b, version), 1), len(props))
	return finish(append(b, props...))
}

func (n names) connectionInfo() []byte {
	b := begin(typeConnectionInfo, 1, true)
	b = putString(append(b, 1, typeConnectionID), n.connection)
	b = putString(b, n.connection) // client id
	b = append(b, 0, 0, 0)         // password, user, path
	b = append(b, 0, 1, 0)         // master connector, manageable, client master
	return finish(append(b, 0, 0, 0))
}

func (n names) sessionInfo() []byte {
	b := begin(typeSessionInfo, 2, false)
	return finish(putLong(putString(append(b, 1, typeSessionID), n.connection), 1))
}

func (n names) producerInfo() []byte {
	b := n.putDest(n.putID(begin(typeProducerInfo, 3, true), typeProducerID))
	return finish(putInt(append(b, 0, 1), 0)) // path, dispatch async, window
}

func (n names) consumerInfo(prefetch int) []byte {
	b := n.putID(begin(typeConsumerInfo, 3, true), typeConsumerID)
	b = n.putDest(append(b, 0)) // browser
	b = putInt(putInt(b, prefetch), 0)
	b = append(b, 1, 0, 0, 0)            // dispatch async, selector, client id, subscription
	b = append(b, 0, 0, 0, 0)            // no local, exclusive, retroactive, priority
	b = append(b, 0, 0)                  // path, predicate
	return finish(append(b, 0, 0, 0, 0)) // network, optimized ack, no range acks, network path
}

// template is a message of which only a few places change.
type template struct {
	frame                []byte
	sequence, sent, body int // where these stand
}

func (n names) message(size int, persistent bool) template {
	var t template
	b := n.putDest(n.putID(begin(typeMessage, 0, false), typeProducerID))
	b = append(b, 0, 0)                // transaction, original destination
	b = append(b, 1, typeMessageID, 0) // the id, without a text view
	b = n.putID(b, typeProducerID)
	t.sequence = len(b)
	b = putLong(putLong(b, 0), 0)   // producer and broker sequence
	b = append(b, 0, 0)             // original transaction, group
	b = append(putInt(b, 0), 0)     // group sequence, correlation id
	b = putBool(b, persistent)      // persistent
	b = append(putLong(b, 0), 4, 0) // expiration, priority, reply to
	t.sent = len(b)                 // timestamp
	b = append(putLong(b, 0), 0)    // type
	b = putInt(append(b, 1), size)  // the body
	t.body = len(b)                 //
	b = append(b, make([]byte, size)...)
	b = append(b, 0, 0, 0, 0)                // properties, data structure, target, compressed
	b = append(putInt(b, 0), 0)              // redelivery counter, path
	b = append(putLong(b, 0), 0, 0)          // arrival, user id, received by a bridge
	b = append(b, 0, 0)                      // droppable, cluster
	b = append(putLong(putLong(b, 0), 0), 0) // broker in and out times, group first for consumer
	t.frame = finish(b)
	return t
}

// next fills the template in for one message and appends it.
func (t *template) next(b []byte, sequence, stamp int64, confirm bool) []byte {
	f := t.frame
	binary.BigEndian.PutUint32(f[5:], uint32(sequence+10))
	f[9] = 0
	if confirm {
		f[9] = 1
	}
	binary.BigEndian.PutUint64(f[t.sequence:], uint64(sequence))
	binary.BigEndian.PutUint64(f[t.sent:], uint64(stamp/1e6))
	binary.BigEndian.PutUint64(f[t.body:], uint64(stamp))
	return append(b, f...)
}

// ack appends a standard acknowledgement of the count messages from one id to another.
func (n names) ack(b []byte, number int, first, last []byte, count int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, typeAck)
	b = putBool(putInt(b, number), false)
	b = n.putDest(b)
	b = append(b, 0) // transaction
	b = n.putID(b, typeConsumerID)
	b = append(append(append(b, 2), first...), last...)
	b = append(putInt(b, count), 0) // poison cause
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// scanner walks over the fields of a frame; what runs over its end is an error at the end.
type scanner struct {
	f  []byte
	at int
}

func (s *scanner) byte() byte {
	if s.at < len(s.f) {
		s.at++
		return s.f[s.at-1]
	}
	s.at = len(s.f) + 1
	return 0
}

func (s *scanner) skip(n int) { s.at = min(s.at+n, len(s.f)+1) }

func (s *scanner) string() {
	if s.byte() != 0 {
		high := int(s.byte())
		s.skip(high<<8 | int(s.byte()))
	}
}

// object skips a nested object, or the byte that says there is none.
func (s *scanner) object() error {
	if s.byte() == 0 {
		return nil
	}
	switch kind := s.byte(); kind {
	case typeQueue, typeTopic, typeTempQueue, typeTempTopic, typeConnectionID, typeBrokerID:
		s.string()
	case typeSessionID:
		s.string()
		s.skip(8)
	case typeConsumerID, typeProducerID:
		s.string()
		s.skip(16)
	case typeMessageID:
		s.string()
		if err := s.object(); err != nil {
			return err
		}
		s.skip(16)
	case typeLocalTx:
		s.skip(8)
		return s.object()
	default:
		return fmt.Errorf("a dispatch holds an object of the unknown type %d", kind)
	}
	return nil
}

// ended is the error of a frame that was too short for what was read.
func (s *scanner) ended() error {
	if s.at > len(s.f) {
		return fmt.Errorf("a dispatch of %d bytes ends within a field", len(s.f))
	}
	return nil
}

func (s *scanner) objects(n int) error {
	for range n {
		if err := s.object(); err != nil {
			return err
		}
	}
	return nil
}

// scanDispatch finds in a dispatch the message's id and the stamp in its body, 0 if it has none.
// The id is nil if there is no message, at the end of a browse.
func scanDispatch(f []byte) (id []byte, stamp int64, err error) {
	s := &scanner{f: f, at: 6}
	if err := s.objects(2); err != nil { // consumer, destination
		return nil, 0, err
	}
	if s.byte() == 0 {
		return nil, 0, s.ended()
	}
	s.skip(1 + 5)                        // type, number, answer
	if err := s.objects(4); err != nil { // producer, destination, transaction, original destination
		return nil, 0, err
	}
	from := s.at
	if err := s.object(); err != nil {
		return nil, 0, err
	}
	to := s.at
	if err := s.object(); err != nil { // original transaction
		return nil, 0, err
	}
	s.string()
	s.skip(4)  // group, its sequence
	s.string() // correlation id
	s.skip(1 + 8 + 1)
	if err := s.object(); err != nil { // reply to
		return nil, 0, err
	}
	s.skip(8)
	s.string() // timestamp, type
	body := s.byte() != 0
	if err := s.ended(); err != nil {
		return nil, 0, err
	}
	if body && s.at+12 <= len(f) {
		stamp = int64(binary.BigEndian.Uint64(f[s.at+4:]))
	}
	return f[from:to], stamp, nil
}
