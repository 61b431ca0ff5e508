package disk

import (
	"encoding/binary"
	"errors"
	"math"

	"hopwire/internal/message"
)

var errRecord = errors.New("its bytes make no sense")

// reader takes values off a record. The first one that does not fit sets err; from then on all
// are zero. Texts are parts of s, not copies.
type reader struct {
	s   string
	at  int
	err error
}

func (r *reader) fail() {
	r.err = errRecord
	r.at = len(r.s)
}

// end checks that everything was read, and nothing more.
func (r *reader) end() error {
	if r.err == nil && r.at != len(r.s) {
		r.fail()
	}
	return r.err
}

func (r *reader) byte() byte {
	if r.at >= len(r.s) {
		r.fail()
		return 0
	}
	r.at++
	return r.s[r.at-1]
}

func (r *reader) bool() bool { return r.byte() != 0 }

func (r *reader) uvarint() uint64 {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b := r.byte()
		if shift == 63 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail()
	return 0
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (r *reader) int32() int32 {
	v := r.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

// count reads a number of things, each of which takes at least one more byte.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.s)-r.at) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	r.at += n
	return r.s[r.at-n : r.at]
}

func (r *reader) producer() message.ProducerID {
	return message.ProducerID{Connection: message.ConnectionID(r.text()),
		Session: r.varint(), Value: r.varint()}
}

func (r *reader) destination() message.Destination {
	kind := message.Kind(r.byte())
	if kind > message.TempTopic {
		r.fail()
	}
	return message.Destination{Kind: kind, Name: r.text()}
}

func (r *reader) transaction() message.TransactionID {
	if !r.bool() {
		return message.TransactionID{Connection: message.ConnectionID(r.text()),
			Value: r.varint()}
	}
	return message.TransactionID{XA: true, FormatID: r.int32(), Global: r.text(),
		Branch: r.text()}
}

func (r *reader) path() []message.BrokerID {
	n := r.count()
	path := make([]message.BrokerID, 0, n)
	for range n {
		path = append(path, message.BrokerID(r.text()))
	}
	return path
}

// uvarintValue reads a value that is one uvarint and nothing else.
func uvarintValue(b []byte) (uint64, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n != len(b) {
		return 0, errRecord
	}
	return v, nil
}

// cutUvarint takes a uvarint off the front of b.
func cutUvarint(b *[]byte) (uint64, bool) {
	v, n := binary.Uvarint(*b)
	if n <= 0 {
		return 0, false
	}
	*b = (*b)[n:]
	return v, true
}
