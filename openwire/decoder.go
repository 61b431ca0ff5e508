package openwire

import (
	"encoding/binary"
	"fmt"
	"math"

	"hopwire/openwire/primitive"
)

// Decoder reads the frames of one direction of a connection.
type Decoder struct {
	version int
	tight   bool
	cache   bool
	stack   bool

	buf   []byte // the frame
	pos   int
	bits  []byte // boolean stream, tight only
	bit   int
	depth int
	alias bool // payloads of the frame itself need not be copied
	err   error

	table     []DataStructure // object cache; nil is a slot never filled
	tableSize int
	known     known
	strings   stringTable
	paths     pathTable
	spare     [2]*MessageId // of the caller's scratch structure, to fill again
}

// NewDecoder returns a decoder with an empty object cache.
func NewDecoder(f Format) *Decoder {
	d := &Decoder{version: f.Version, tight: f.Tight, cache: f.Cache, stack: f.StackTrace,
		tableSize: min(f.CacheSize, math.MaxInt16)}
	if d.tableSize <= 0 {
		d.tableSize = defaultCacheSize
	}
	return d
}

// Decode decodes one frame without its size prefix. The result does not alias frame. Every error
// is a *ProtocolError and final: the object cache may be out of step.
func (d *Decoder) Decode(frame []byte) (DataStructure, error) {
	if len(frame) == 0 {
		return nil, &ProtocolError{Reason: "empty frame"}
	}
	t := frame[0]
	if t == TypeNull && len(frame) == 1 {
		return &NullCommand{}, nil
	}
	d.begin(frame)
	s := d.structure(t)
	if err := d.end(); err != nil {
		return nil, err
	}
	return s, nil
}

// DecodeMessage decodes a frame of a message type into a structure that its caller owns and uses
// again. Content and MarshalledProperties alias frame; into.MessageID is filled again where it
// was not nil. Nothing is allocated when the ids, destinations and repeated strings were seen
// before. After an error into holds nothing of use.
func (d *Decoder) DecodeMessage(frame []byte, into *Message) error {
	if len(frame) == 0 || !isMessage(frame[0]) {
		return &ProtocolError{Reason: "frame is not a message"}
	}
	d.spare[0] = into.MessageID
	*into = Message{}
	d.begin(frame)
	d.alias = true
	into.Type = frame[0]
	into.decode(d)
	return d.end()
}

// DecodeHead decodes what comes before the body of a message frame of which only the beginning is
// there: command id, ids, destinations, transaction. It reports false when the frame is no message.
// After it, an object cache may be out of step: only a decoder without one can go on.
func (d *Decoder) DecodeHead(begin []byte, into *Message) bool {
	if len(begin) == 0 || !isMessage(begin[0]) {
		return false
	}
	*into = Message{}
	d.begin(begin)
	into.Type = begin[0]
	into.decode(d)
	_ = d.end() // it ends too early, of course
	return true
}

// DecodeAck decodes a MessageAck frame into a structure that its caller owns and uses again, as
// DecodeMessage does: FirstMessageID and LastMessageID are filled again.
func (d *Decoder) DecodeAck(frame []byte, into *MessageAck) error {
	if len(frame) == 0 || frame[0] != TypeMessageAck {
		return &ProtocolError{Reason: "frame is not a MessageAck"}
	}
	d.spare = [2]*MessageId{into.FirstMessageID, into.LastMessageID}
	*into = MessageAck{}
	d.begin(frame)
	into.decode(d)
	return d.end()
}

func (d *Decoder) begin(frame []byte) {
	d.buf, d.pos, d.depth, d.err, d.alias = frame, 1, 0, nil, false
	d.bits, d.bit = nil, 0
	switch since := int(typeSince[frame[0]]); {
	case since == 0:
		d.fail("unknown type %d", frame[0])
	case since > d.version:
		d.fail("the type needs version %d, agreed is %d", since, d.version)
	default:
		d.bitsOfFrame()
	}
}

func (d *Decoder) end() error {
	if d.err == nil && d.pos != len(d.buf) {
		d.fail("%d bytes are left over", len(d.buf)-d.pos)
	}
	if d.err == nil && (d.bit+7)>>3 != len(d.bits) {
		d.fail("flags are left over")
	}
	err := d.err
	d.buf, d.bits, d.spare, d.err = nil, nil, [2]*MessageId{}, nil
	return err
}

// fail keeps the first error and makes all that is read after it fail at once.
func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &ProtocolError{d.buf[0], d.pos, fmt.Sprintf(format, args...)}
	}
	d.pos, d.bits, d.bit = len(d.buf), nil, 0
}

func (d *Decoder) short() { d.fail("frame ends too early") }

// bitsOfFrame reads the boolean stream in front of the data.
func (d *Decoder) bitsOfFrame() {
	if !d.tight {
		return
	}
	n := int(d.byte())
	switch n {
	case 0xc0:
		n = int(d.byte())
	case 0x80:
		n = int(int16(d.uint16()))
	}
	if n < 0 || n > len(d.buf)-d.pos {
		d.fail("%d bytes of flags in %d bytes", n, len(d.buf)-d.pos)
		return
	}
	d.bits, d.bit = d.buf[d.pos:d.pos+n], 0
	d.pos += n
}

func (d *Decoder) flag() bool {
	if !d.tight {
		return d.byte() != 0
	}
	i := d.bit
	if i>>3 >= len(d.bits) {
		d.short()
		return false
	}
	d.bit++
	return d.bits[i>>3]>>(i&7)&1 != 0
}

func (d *Decoder) byte() byte {
	p := d.pos
	if p >= len(d.buf) {
		d.short()
		return 0
	}
	d.pos++
	return d.buf[p]
}

func (d *Decoder) uint16() uint16 {
	p := d.pos
	if len(d.buf)-p < 2 {
		d.short()
		return 0
	}
	d.pos += 2
	return binary.BigEndian.Uint16(d.buf[p:])
}

func (d *Decoder) uint32() uint32 {
	p := d.pos
	if len(d.buf)-p < 4 {
		d.short()
		return 0
	}
	d.pos += 4
	return binary.BigEndian.Uint32(d.buf[p:])
}

func (d *Decoder) int32() int32 { return int32(d.uint32()) }

func (d *Decoder) uint64() uint64 {
	p := d.pos
	if len(d.buf)-p < 8 {
		d.short()
		return 0
	}
	d.pos += 8
	return binary.BigEndian.Uint64(d.buf[p:])
}

func (d *Decoder) int64() int64 {
	if !d.tight {
		return int64(d.uint64())
	}
	wide, odd := d.flag(), d.flag()
	switch {
	case wide && odd:
		return int64(d.uint64())
	case wide:
		return int64(d.uint32())
	case odd:
		return int64(d.uint16())
	}
	return 0
}

// take returns the next n bytes of the frame itself; n may be a lie of the peer.
func (d *Decoder) take(n int) []byte {
	p := d.pos
	if n < 0 || n > len(d.buf)-p {
		d.fail("length %d with %d bytes left", n, len(d.buf)-p)
		return nil
	}
	d.pos += n
	return d.buf[p:d.pos:d.pos]
}

func (d *Decoder) raw(into []byte) { copy(into, d.take(len(into))) }

// bytes reads a nullable byte array; the empty one is not nil.
func (d *Decoder) bytes() []byte {
	if !d.flag() {
		return nil
	}
	b := d.take(int(d.int32()))
	out := make([]byte, len(b))
	copy(out, b)
	return out
}

// payload is bytes, but of a message decoded into scratch memory it aliases the frame.
func (d *Decoder) payload() []byte {
	if !d.alias || d.depth > 0 {
		return d.bytes()
	}
	if !d.flag() {
		return nil
	}
	return d.take(int(d.int32()))
}

// rawString reads a string's bytes; ascii means that they are Latin-1, not modified UTF-8.
func (d *Decoder) rawString() (raw []byte, ascii bool) {
	ascii = d.tight && d.flag()
	n := int(d.uint16())
	if ascii {
		n = int(int16(n))
	}
	return d.take(n), ascii
}

func (d *Decoder) text(raw []byte, ascii bool) string {
	if ascii {
		return latin1(raw)
	}
	s, err := primitive.UTF8(raw)
	if err != nil {
		d.fail("%s", err.Error())
	}
	return s
}

func latin1(raw []byte) string {
	if s := string(raw); primitive.ASCII(s) {
		return s
	}
	runes := make([]rune, len(raw))
	for i, c := range raw {
		runes[i] = rune(c)
	}
	return string(runes)
}

// string reads a nullable string and notes in empty that it is "" and not null.
func (d *Decoder) string(empty *EmptyStrings, bit EmptyStrings) string {
	if !d.flag() {
		return ""
	}
	raw, ascii := d.rawString()
	if len(raw) == 0 {
		*empty |= bit
		return ""
	}
	return d.text(raw, ascii)
}

// name is string for values that repeat: the same bytes give the same string again.
func (d *Decoder) name(empty *EmptyStrings, bit EmptyStrings) string {
	if !d.flag() {
		return ""
	}
	raw, ascii := d.rawString()
	if len(raw) == 0 {
		*empty |= bit
		return ""
	}
	if s, ok := d.strings.find(raw); ok {
		return s
	}
	s := d.text(raw, ascii)
	if len(raw) <= internBytes && primitive.ASCII(s) {
		d.strings.keep(raw, s)
	}
	return s
}
