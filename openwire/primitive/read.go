package primitive

import (
	"encoding/binary"
	"math"
)

// reader walks encoded primitive data; the first error sticks and empties it.
type reader struct {
	raw    []byte
	pos    int
	depth  int
	limits Limits
	err    error
}

func (r *reader) fail(reason string) {
	if r.err == nil {
		r.err = &Error{r.pos, reason}
	}
	r.pos = len(r.raw)
}

func (r *reader) take(n int) []byte {
	if n > len(r.raw)-r.pos {
		r.fail("data ends too early")
		return nil
	}
	b := r.raw[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

func (r *reader) uint8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// block takes n bytes within the value limit; n comes from the data and may be a lie.
func (r *reader) block(n int) []byte {
	switch {
	case n < 0:
		r.fail("negative length")
		return nil
	case n > len(r.raw)-r.pos:
		r.fail("length is more than what is left")
		return nil
	case r.limits.ValueBytes > 0 && n > r.limits.ValueBytes:
		r.fail("key or value is longer than the limit")
		return nil
	}
	return r.take(n)
}

func (r *reader) text(n int) string {
	b := r.block(n)
	s, err := UTF8(b)
	if err != nil {
		r.fail(err.Error())
	}
	return s
}

// value reads a type code and its payload.
func (r *reader) value() any {
	switch code := Code(r.uint8()); code {
	case CodeNull:
		return nil
	case CodeBool:
		return r.uint8() != 0
	case CodeByte:
		return int8(r.uint8())
	case CodeChar:
		return Char(r.uint16())
	case CodeShort:
		return int16(r.uint16())
	case CodeInt:
		return r.int32()
	case CodeLong:
		return r.int64()
	case CodeDouble:
		return math.Float64frombits(uint64(r.int64()))
	case CodeFloat:
		return math.Float32frombits(uint32(r.int32()))
	case CodeString:
		return r.text(int(r.uint16()))
	case CodeBytes:
		return append([]byte{}, r.block(int(r.int32()))...)
	case CodeMap, CodeList:
		return r.nested(code)
	case CodeBigString:
		n := r.int32()
		if n == -1 {
			return nil
		}
		return r.text(int(n))
	default:
		r.pos--
		r.fail("unknown value type")
		return nil
	}
}

func (r *reader) nested(code Code) any {
	if r.limits.Flat {
		r.fail("a map or list is not allowed here")
		return nil
	}
	if r.depth >= MaxDepth {
		r.fail("maps and lists nest too deep")
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	if code == CodeMap {
		return r.entries()
	}
	n := r.count(1)
	list := make(List, 0, max(n, 0))
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.value())
	}
	return list
}

// count reads a count of elements of at least size bytes; -1 is null.
func (r *reader) count(size int) int {
	n := int(r.int32())
	switch {
	case n < -1:
		r.fail("negative count")
		return 0
	case n > (len(r.raw)-r.pos)/size:
		r.fail("count is more than what is left")
		return 0
	case r.limits.Entries > 0 && n > r.limits.Entries:
		r.fail("more entries than the limit")
		return 0
	}
	return n
}

// indexFrom is the number of entries from which a repeated key is looked for through an index.
const indexFrom = 16

func (r *reader) entries() Map {
	n := r.count(3)
	if n < 0 {
		return nil
	}
	m := make(Map, 0, n)
	var index map[string]int
	if n >= indexFrom {
		index = make(map[string]int, n)
	}
	for ; n > 0 && r.err == nil; n-- {
		key := r.text(int(r.uint16()))
		value := r.value()
		if index == nil {
			m.Set(key, value)
		} else if at, ok := index[key]; ok {
			m[at].Value = value
		} else {
			index[key] = len(m)
			m = append(m, Entry{key, value})
		}
	}
	return m
}

// ParseMap decodes a primitive map that fills raw exactly. Nil or empty raw is a nil map, as a
// message without properties has none. The result does not alias raw.
func ParseMap(raw []byte) (Map, error) {
	return ParseMapWithin(raw, Limits{})
}

// ParseMapWithin is ParseMap with limits.
func ParseMapWithin(raw []byte, limits Limits) (Map, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	r := reader{raw: raw, limits: limits}
	m := r.entries()
	if r.err == nil && r.pos != len(raw) {
		r.fail("bytes are left over")
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// ParseStream decodes the values of a stream body, one after another to the end of raw.
func ParseStream(raw []byte) (List, error) {
	r := reader{raw: raw}
	var list List
	for r.pos < len(raw) {
		list = append(list, r.value())
	}
	return list, r.err
}
