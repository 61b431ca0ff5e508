package primitive

import "fmt"

// Code is the byte that precedes a value and names its type.
type Code byte

// The value codes of OpenWire primitive maps, lists and streams.
const (
	CodeNull      Code = 0
	CodeBool      Code = 1
	CodeByte      Code = 2
	CodeChar      Code = 3
	CodeShort     Code = 4
	CodeInt       Code = 5
	CodeLong      Code = 6
	CodeDouble    Code = 7
	CodeFloat     Code = 8
	CodeString    Code = 9
	CodeBytes     Code = 10
	CodeMap       Code = 11
	CodeList      Code = 12
	CodeBigString Code = 13
)

const (
	// MaxDepth is how deep maps and lists may nest when reading, as in ActiveMQ 6.3.
	MaxDepth = 127
	// bigStringUnits is the string length in UTF-16 units from which Java writes a big string.
	bigStringUnits = 8191
)

// Char is a Java char: one UTF-16 code unit, so that it stays apart from a short.
type Char uint16

// Entry is one key and its value. The value is one of nil, bool, int8, Char, int16, int32, int64,
// float32, float64, string, []byte, Map and List.
type Entry struct {
	Key   string
	Value any
}

// Map is a primitive map in the order of the wire. A key occurs once; a repeated key on the wire
// takes the place of the first and the value of the last.
type Map []Entry

// Get looks a key up.
func (m Map) Get(key string) (value any, ok bool) {
	for i := range m {
		if m[i].Key == key {
			return m[i].Value, true
		}
	}
	return nil, false
}

// Set gives a key a value, at its old place or at the end.
func (m *Map) Set(key string, value any) {
	for i := range *m {
		if (*m)[i].Key == key {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Entry{key, value})
}

// List is a list of values, as Entry.Value.
type List []any

// Error says what is wrong with encoded primitive data and where.
type Error struct {
	Offset int    // byte offset in the data given
	Reason string // one clause
}

// Error is one line.
func (e *Error) Error() string {
	return fmt.Sprintf("primitive data at byte %d: %s", e.Offset, e.Reason)
}

// Limits bound what a reader accepts; a zero field is no limit of its own, except that nesting is
// never deeper than MaxDepth.
type Limits struct {
	Entries    int  // entries of a map
	ValueBytes int  // encoded bytes of a key, string or byte array
	Flat       bool // no map or list inside
}
