package openwire

import (
	"encoding/binary"
	"fmt"
	"math"

	"hopwire/openwire/primitive"
)

const (
	maxDepth       = 32    // structures inside structures, both directions
	maxLooseString = 65535 // encoded bytes
	maxTightString = 32766
	frameHead      = 5 // size prefix and type byte
)

// Encoder writes the frames of one direction of a connection.
type Encoder struct {
	version int
	tight   bool
	cache   bool
	stack   bool
	limit   int64

	buf   []byte // the caller's slice while Append runs
	apart int    // byte fields from this length on are not copied; 0 is none
	cuts  []Cut  // those of the frame
	bits  []byte // boolean stream of the frame, tight only
	nbit  int
	depth int
	typ   byte // of the frame
	err   error
	sent  sendCache

	// guess is the length of the boolean stream that a frame of this type had last time: where
	// it is right the data need not move.
	guess [256]uint16
}

// NewEncoder returns an encoder with an empty object cache.
func NewEncoder(f Format) *Encoder {
	e := &Encoder{version: f.Version, tight: f.Tight, cache: f.Cache, stack: f.StackTrace,
		limit: f.MaxFrameSize}
	e.sent.init(f.CacheSize)
	return e
}

// Append appends one whole frame with its 4-byte size. On error dst comes back unchanged and the
// object cache is as before, so the connection stays usable: an *EncodeError, or a
// *FrameTooBigError when the frame is over the format's MaxFrameSize.
func (e *Encoder) Append(dst []byte, x DataStructure) ([]byte, error) {
	out, _, err := e.append(dst, x, 0)
	return out, err
}

// Cut is a byte field that belongs into a frame at a place and was not copied there.
type Cut struct {
	At    int // in the slice that AppendApart gave, ascending: so much of it comes before
	Bytes []byte
}

// AppendApart is Append, but byte fields of length from and more are left out: the frame is what
// was appended with the cuts put in. They hold until the next call.
func (e *Encoder) AppendApart(dst []byte, x DataStructure, from int) ([]byte, []Cut, error) {
	return e.append(dst, x, max(from, 1))
}

func (e *Encoder) append(dst []byte, x DataStructure, apart int) ([]byte, []Cut, error) {
	clear(e.cuts)
	e.apart, e.cuts = apart, e.cuts[:0]
	s, ok := x.(structure)
	if !ok || s.isNil() {
		return dst, nil, &EncodeError{Reason: fmt.Sprintf("%T is no structure of this package", x)}
	}
	if _, null := x.(*NullCommand); null {
		return append(dst, 0, 0, 0, 1, TypeNull), nil, nil
	}
	start := len(dst)
	e.begin(dst, s.TypeID())
	e.check(s.TypeID())
	e.checkKind(s)
	s.encode(e)
	e.finish(start)
	buf, err := e.buf, e.err
	e.buf, e.err = nil, nil
	if err != nil {
		e.sent.rollback()
		return dst, nil, err
	}
	return buf, e.cuts, nil
}

func (e *Encoder) begin(dst []byte, t byte) {
	e.typ, e.depth = t, 0
	e.bits, e.nbit = e.bits[:0], 0
	if e.cache {
		e.sent.begin()
	}
	e.buf = dst
	e.buf = append(e.buf, 0, 0, 0, 0, t)
	if e.tight {
		for n := bitsHead(int(e.guess[t])); n > 0; n-- {
			e.buf = append(e.buf, 0)
		}
	}
}

// bitsHead is the number of bytes of a boolean stream of n bytes with its length.
func bitsHead(n int) int {
	switch {
	case n < 64:
		return n + 1
	case n < 256:
		return n + 2
	}
	return n + 3
}

// finish puts the boolean stream before the data and the size before all.
func (e *Encoder) finish(start int) {
	if e.tight {
		if len(e.bits) > math.MaxInt16 {
			e.fail("it has too many flags for the tight encoding")
			return
		}
		e.placeBits(start + frameHead)
	}
	size := int64(len(e.buf) - start - 4)
	for _, c := range e.cuts {
		size += int64(len(c.Bytes))
	}
	if e.err == nil && (e.limit > 0 && size > e.limit || size > math.MaxInt32) {
		limit := e.limit
		if limit <= 0 {
			limit = math.MaxInt32
		}
		e.err = &FrameTooBigError{Size: size, Limit: limit, Sending: true}
		return
	}
	binary.BigEndian.PutUint32(e.buf[start:], uint32(size))
}

func (e *Encoder) placeBits(at int) {
	n := len(e.bits)
	have, need := bitsHead(int(e.guess[e.typ])), bitsHead(n)
	if have != need {
		end := len(e.buf)
		for i := have; i < need; i++ {
			e.buf = append(e.buf, 0)
		}
		copy(e.buf[at+need:], e.buf[at+have:end])
		e.buf = e.buf[:end+need-have]
		for i := range e.cuts {
			e.cuts[i].At += need - have
		}
		e.guess[e.typ] = uint16(n)
	}
	head := e.buf[at : at+need]
	switch {
	case n < 64:
		head[0] = byte(n)
	case n < 256:
		head[0], head[1] = 0xc0, byte(n)
	default:
		head[0] = 0x80
		binary.BigEndian.PutUint16(head[1:], uint16(n))
	}
	copy(head[need-n:], e.bits)
}

func (e *Encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = &EncodeError{e.typ, fmt.Sprintf(format, args...)}
	}
}

// check refuses types that the agreed version does not have.
func (e *Encoder) check(t byte) {
	switch since := int(typeSince[t]); {
	case since == 0:
		e.fail("it holds a structure of unknown type %d", t)
	case since > e.version:
		e.fail("%s needs version %d and the peer speaks %d", typeNames[t], since, e.version)
	}
}

// flag writes a boolean.
func (e *Encoder) flag(v bool) {
	if e.tight {
		e.bit(v)
		return
	}
	var b byte
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

func (e *Encoder) bit(v bool) {
	if e.nbit&7 == 0 {
		e.bits = append(e.bits, 0)
	}
	if v {
		e.bits[len(e.bits)-1] |= 1 << (e.nbit & 7)
	}
	e.nbit++
}

func (e *Encoder) byte(v byte)   { e.buf = append(e.buf, v) }
func (e *Encoder) raw(v []byte)  { e.buf = append(e.buf, v...) }
func (e *Encoder) int16(v int)   { e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(v)) }
func (e *Encoder) int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

func (e *Encoder) int64(v int64) {
	u := uint64(v)
	switch {
	case !e.tight:
		e.buf = binary.BigEndian.AppendUint64(e.buf, u)
	case u == 0:
		e.bit(false)
		e.bit(false)
	case u <= math.MaxUint16:
		e.bit(false)
		e.bit(true)
		e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(u))
	case u <= math.MaxUint32:
		e.bit(true)
		e.bit(false)
		e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(u))
	default:
		e.bit(true)
		e.bit(true)
		e.buf = binary.BigEndian.AppendUint64(e.buf, u)
	}
}

// string writes a nullable string; "" is null unless present.
func (e *Encoder) string(s string, present bool) {
	if s == "" && !present {
		e.flag(false)
		return
	}
	e.flag(true)
	e.text(s)
}

func (e *Encoder) text(s string) {
	ascii := primitive.ASCII(s)
	n := len(s)
	if !ascii {
		n = primitive.ModifiedLen(s)
	}
	limit := maxLooseString
	if e.tight {
		limit = maxTightString
		e.bit(ascii)
	}
	if n > limit {
		e.fail("a string of %d encoded bytes is over the limit of %d", n, limit)
		return
	}
	e.int16(n)
	if ascii {
		e.buf = append(e.buf, s...)
	} else {
		e.buf = primitive.AppendModified(e.buf, s)
	}
}

func (e *Encoder) bytes(b []byte) {
	e.flag(b != nil)
	if b != nil {
		e.int32(int32(len(b)))
		if e.apart > 0 && len(b) >= e.apart {
			e.cuts = append(e.cuts, Cut{len(e.buf), b})
			return
		}
		e.buf = append(e.buf, b...)
	}
}

// open writes what precedes the fields of a nested structure; its caller lowers depth after.
func (e *Encoder) open(t byte) bool {
	e.flag(true)
	if e.depth >= maxDepth {
		e.fail("its structures nest deeper than %d", maxDepth)
		return false
	}
	e.check(t)
	e.depth++
	if e.tight && (isMessage(t) || t == TypeWireFormatInfo) {
		e.bit(false) // no pre-marshalled form follows
	}
	e.buf = append(e.buf, t)
	return true
}

// count writes the head of an array; false when there is nothing more to write.
func (e *Encoder) count(n int, null bool) bool {
	e.flag(!null)
	if null {
		return false
	}
	if n > math.MaxInt16 {
		e.fail("an array of %d elements is over the limit of %d", n, math.MaxInt16)
		return false
	}
	e.int16(n)
	return true
}

func (e *Encoder) nestedDestination(x *Destination) {
	if x == nil {
		e.flag(false)
		return
	}
	if e.open(x.Type) {
		e.require(isDestination(x.Type), x.Type, "Destination")
		x.encode(e)
		e.depth--
	}
}

func (e *Encoder) nestedMessage(x *Message) {
	if x == nil {
		e.flag(false)
		return
	}
	if e.open(x.Type) {
		e.require(isMessage(x.Type), x.Type, "Message")
		x.encode(e)
		e.depth--
	}
}

func (e *Encoder) require(ok bool, t byte, kind string) {
	if !ok {
		e.fail("a %s has type %d", kind, t)
	}
}

// checkKind refuses a Type that does not belong to its struct.
func (e *Encoder) checkKind(s structure) {
	switch x := s.(type) {
	case *Message:
		e.require(isMessage(x.Type), x.Type, "Message")
	case *Destination:
		e.require(isDestination(x.Type), x.Type, "Destination")
	}
}

func (e *Encoder) nestedTransactionId(x TransactionId) { e.nestedAny(x) }

func (e *Encoder) nestedAny(x DataStructure) {
	if x == nil {
		e.flag(false)
		return
	}
	s, ok := x.(structure)
	switch {
	case !ok:
		e.fail("it holds a %T", x)
	case s.isNil():
		e.flag(false)
	case e.open(s.TypeID()):
		e.checkKind(s)
		s.encode(e)
		e.depth--
	}
}
