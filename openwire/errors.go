package openwire

import "fmt"

// ProtocolError says what a peer sent wrong. The connection cannot go on after it, as its object
// cache may be out of step.
type ProtocolError struct {
	Type   byte   // type id of the frame, 0 when not known
	Offset int    // byte of the frame, size prefix not counted
	Reason string // one clause
}

// Error names the frame, the byte and the reason in one line.
func (e *ProtocolError) Error() string {
	name := typeNames[e.Type]
	if name == "" {
		name = "frame"
	}
	return fmt.Sprintf("OpenWire %s, byte %d: %s", name, e.Offset, e.Reason)
}

// EncodeError says why a structure cannot be sent. The encoder and the connection stay usable.
type EncodeError struct {
	Type   byte   // type id of the structure
	Reason string // one clause
}

// Error names the structure and the reason in one line.
func (e *EncodeError) Error() string {
	return fmt.Sprintf("OpenWire %s cannot be sent: %s", typeNames[e.Type], e.Reason)
}

// FrameTooBigError is a frame above the limit, read or to be sent. Sizes are in bytes without the
// size prefix.
type FrameTooBigError struct {
	Size, Limit int64
	Sending     bool // refused before it was sent; the connection stays usable
}

// Error gives both sizes in one line, and the option to raise when reading.
func (e *FrameTooBigError) Error() string {
	if e.Sending {
		return fmt.Sprintf("OpenWire frame of %d bytes is over the agreed maxFrameSize of %d",
			e.Size, e.Limit)
	}
	return fmt.Sprintf("peer sends an OpenWire frame of %d bytes, the limit is %d; "+
		"raise wireFormat.maxFrameSize if it is right", e.Size, e.Limit)
}

// StrangerError is a peer that speaks another protocol on an OpenWire port.
type StrangerError struct {
	Protocol string // "HTTP", "TLS", "STOMP", "AMQP" or "MQTT"; "" when it is some other text
	Text     string // how that text begins
}

// Error is "HTTP on the OpenWire port" or "TLS on a plain port".
func (e *StrangerError) Error() string {
	switch e.Protocol {
	case "TLS":
		return "TLS on a plain port"
	case "":
		return fmt.Sprintf("text (%q) on the OpenWire port", e.Text)
	}
	return e.Protocol + " on the OpenWire port"
}

// Answer tells the same of a peer that was dialled: the port is the wrong one.
func (e *StrangerError) Answer() string {
	switch e.Protocol {
	case "TLS":
		return "the peer answers with TLS: no plain OpenWire port; ActiveMQ's is usually 61616"
	case "":
		return fmt.Sprintf("the peer answers with text (%q): no OpenWire port; ActiveMQ's is usually"+
			" 61616", e.Text)
	}
	return "the peer answers with " + e.Protocol + ": no OpenWire port; ActiveMQ's is usually 61616"
}
