package openwire

import (
	"strings"

	"hopwire/openwire/primitive"
)

// Throwable is an exception as it travels: its Java class name and message, and where both sides
// agreed to StackTraceEnabled its stack and cause.
type Throwable struct {
	Class     string // e.g. "javax.jms.InvalidClientIDException"
	Message   string // cut to what a string may hold when sent
	NoMessage bool   // the message is null; old Java clients fail on it, so never send it
	Stack     []StackElement
	Cause     *Throwable
}

// StackElement is one line of a stack; File "" is null.
type StackElement struct {
	Class, Method, File string
	Line                int32
}

// messageBytes is where an exception's message is cut, below the limit of a tight string.
const messageBytes = 32000

func (e *Encoder) throwable(x *Throwable) {
	e.flag(x != nil)
	if x == nil {
		return
	}
	if e.depth++; e.depth > maxDepth {
		e.fail("its exceptions nest deeper than %d", maxDepth)
		return
	}
	defer func() { e.depth-- }()
	e.string(x.Class, true)
	e.string(cut(x.Message), !x.NoMessage)
	if !e.stack {
		return
	}
	n := min(len(x.Stack), 1<<15-1)
	e.int16(n)
	for _, s := range x.Stack[:n] {
		e.string(s.Class, true)
		e.string(s.Method, true)
		e.string(s.File, false)
		e.int32(s.Line)
	}
	e.throwable(x.Cause)
}

// cut shortens a message that no string could hold.
func cut(s string) string {
	if len(s) <= messageBytes/2 || primitive.ModifiedLen(s) <= messageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:messageBytes/2], "") + " ..."
}

func (d *Decoder) throwable() *Throwable {
	if !d.flag() || !d.descend() {
		return nil
	}
	defer func() { d.depth-- }()
	x := new(Throwable)
	x.Class, _ = d.nullable()
	var ok bool
	x.Message, ok = d.nullable()
	x.NoMessage = !ok
	if !d.stack {
		return x
	}
	n := int(int16(d.uint16()))
	if n < 0 || n > (len(d.buf)-d.pos)/4 {
		d.fail("stack of %d lines in %d bytes", n, len(d.buf)-d.pos)
		return nil
	}
	if n > 0 {
		x.Stack = make([]StackElement, n)
	}
	for i := range x.Stack {
		s := &x.Stack[i]
		s.Class, _ = d.nullable()
		s.Method, _ = d.nullable()
		s.File, _ = d.nullable()
		s.Line = d.int32()
	}
	x.Cause = d.throwable()
	return x
}

// nullable reads a string of an exception; ok is false for null.
func (d *Decoder) nullable() (s string, ok bool) {
	if !d.flag() {
		return "", false
	}
	raw, ascii := d.rawString()
	return d.text(raw, ascii), true
}
