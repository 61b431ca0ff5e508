package primitive

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendMap appends m as a primitive map; a nil Map is the null map (count -1). On error, a key
// over 65535 encoded bytes or a value of no primitive type, dst is returned unchanged.
func AppendMap(dst []byte, m Map) ([]byte, error) {
	out, err := appendMap(dst, m, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// AppendValue appends one value with its type code, as maps, lists and stream bodies hold it.
// A string of 8191 or more UTF-16 units is written as a big string, as Java does.
func AppendValue(dst []byte, value any) ([]byte, error) {
	out, err := appendValue(dst, value, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// AppendStream appends the values of a stream body.
func AppendStream(dst []byte, list List) ([]byte, error) {
	out := dst
	for i, v := range list {
		switch v.(type) {
		case Map, List:
			return dst, fmt.Errorf("stream value %d: a stream holds no map or list", i)
		}
		var err error
		if out, err = appendValue(out, v, 0); err != nil {
			return dst, err
		}
	}
	return out, nil
}

func appendMap(dst []byte, m Map, depth int) ([]byte, error) {
	if m == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff), nil
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m)))
	var err error
	for _, e := range m {
		n := ModifiedLen(e.Key)
		if n > math.MaxUint16 {
			return nil, fmt.Errorf("name of %d encoded bytes is over 65535", n)
		}
		dst = AppendModified(binary.BigEndian.AppendUint16(dst, uint16(n)), e.Key)
		if dst, err = appendValue(dst, e.Value, depth); err != nil {
			return nil, fmt.Errorf("entry %.60q: %w", e.Key, err)
		}
	}
	return dst, nil
}

func appendValue(dst []byte, value any, depth int) ([]byte, error) {
	be := binary.BigEndian
	switch v := value.(type) {
	case nil:
		return append(dst, byte(CodeNull)), nil
	case bool:
		if v {
			return append(dst, byte(CodeBool), 1), nil
		}
		return append(dst, byte(CodeBool), 0), nil
	case int8:
		return append(dst, byte(CodeByte), byte(v)), nil
	case Char:
		return be.AppendUint16(append(dst, byte(CodeChar)), uint16(v)), nil
	case int16:
		return be.AppendUint16(append(dst, byte(CodeShort)), uint16(v)), nil
	case int32:
		return be.AppendUint32(append(dst, byte(CodeInt)), uint32(v)), nil
	case int64:
		return be.AppendUint64(append(dst, byte(CodeLong)), uint64(v)), nil
	case float64:
		return be.AppendUint64(append(dst, byte(CodeDouble)), math.Float64bits(v)), nil
	case float32:
		return be.AppendUint32(append(dst, byte(CodeFloat)), math.Float32bits(v)), nil
	case string:
		return appendString(dst, v), nil
	case []byte:
		dst = be.AppendUint32(append(dst, byte(CodeBytes)), uint32(len(v)))
		return append(dst, v...), nil
	case Map, List:
		return appendNested(dst, value, depth+1)
	}
	return nil, fmt.Errorf("a value of type %T is not a primitive", value)
}

func appendString(dst []byte, s string) []byte {
	n := ModifiedLen(s)
	if units(s) >= bigStringUnits {
		dst = binary.BigEndian.AppendUint32(append(dst, byte(CodeBigString)), uint32(n))
	} else {
		dst = binary.BigEndian.AppendUint16(append(dst, byte(CodeString)), uint16(n))
	}
	return AppendModified(dst, s)
}

func appendNested(dst []byte, value any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("maps and lists nest deeper than %d", MaxDepth)
	}
	if m, ok := value.(Map); ok {
		return appendMap(append(dst, byte(CodeMap)), m, depth)
	}
	list := value.(List)
	dst = binary.BigEndian.AppendUint32(append(dst, byte(CodeList)), uint32(len(list)))
	var err error
	for _, v := range list {
		if dst, err = appendValue(dst, v, depth); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
