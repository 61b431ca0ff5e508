package message

import (
	"cmp"
	"strconv"
	"strings"
)

// BrokerID names one broker in a network. It is made once and kept in the store; broker paths,
// loop tests and receipts compare it.
type BrokerID string

// ConnectionID names one client connection, chosen by the client. Any text is legal.
type ConnectionID string

// SessionID names a session of a connection. Session -1 is the connection's own.
type SessionID struct {
	Connection ConnectionID
	Value      int64
}

// ConsumerID names a consumer of a session.
type ConsumerID struct {
	Connection ConnectionID
	Session    int64
	Value      int64
}

// ProducerID names a producer of a session.
type ProducerID struct {
	Connection ConnectionID
	Session    int64
	Value      int64
}

// Compare orders producers by their connections, sessions and numbers.
func (p ProducerID) Compare(q ProducerID) int {
	return cmp.Or(cmp.Compare(p.Connection, q.Connection), cmp.Compare(p.Session, q.Session),
		cmp.Compare(p.Value, q.Value))
}

// MessageID identifies a message for life: the original producer and its running number, or the
// text of a foreign id (OpenWire 10 and later). Two ids are the same message when they are equal.
type MessageID struct {
	Producer ProducerID
	Sequence int64
	Text     string
}

// TransactionID names a local transaction (connection and number) or an XA transaction (format,
// global id, branch). The zero value means "no transaction".
type TransactionID struct {
	Connection ConnectionID
	Value      int64
	XA         bool
	FormatID   int32
	Global     string
	Branch     string
}

// IsZero reports whether no transaction is named.
func (t TransactionID) IsZero() bool { return t == TransactionID{} }

// SessionID gives the id of the session that the consumer belongs to.
func (c ConsumerID) SessionID() SessionID { return SessionID{c.Connection, c.Session} }

// SessionID gives the id of the session that the producer belongs to.
func (p ProducerID) SessionID() SessionID { return SessionID{p.Connection, p.Session} }

func (s SessionID) String() string {
	return string(s.Connection) + ":" + strconv.FormatInt(s.Value, 10)
}

func (c ConsumerID) String() string { return triple(c.Connection, c.Session, c.Value) }

func (p ProducerID) String() string { return triple(p.Connection, p.Session, p.Value) }

func (m MessageID) String() string {
	if m.Text != "" {
		return m.Text
	}
	return m.Producer.String() + ":" + strconv.FormatInt(m.Sequence, 10)
}

func (t TransactionID) String() string {
	if t.XA {
		return "XID:[" + strconv.Itoa(int(t.FormatID)) + ",globalId=" + hex(t.Global) +
			",branchId=" + hex(t.Branch) + "]"
	}
	return "TX:" + string(t.Connection) + ":" + strconv.FormatInt(t.Value, 10)
}

// ParseMessageID reads the text form of a message id, "connection:session:value:sequence". Text
// of any other form becomes a foreign id.
func ParseMessageID(text string) MessageID {
	rest, seq, ok := cutNumber(text)
	rest, value, ok2 := cutNumber(rest)
	rest, session, ok3 := cutNumber(rest)
	if !ok || !ok2 || !ok3 || rest == "" {
		return MessageID{Text: text}
	}
	return MessageID{
		Producer: ProducerID{Connection: ConnectionID(rest), Session: session, Value: value},
		Sequence: seq,
	}
}

func cutNumber(s string) (rest string, n int64, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	return s[:i], n, err == nil
}

func triple(c ConnectionID, a, b int64) string {
	buf := make([]byte, 0, len(c)+16)
	buf = append(buf, c...)
	buf = append(buf, ':')
	buf = strconv.AppendInt(buf, a, 10)
	buf = append(buf, ':')
	return string(strconv.AppendInt(buf, b, 10))
}

func hex(s string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = append(b, digits[s[i]>>4], digits[s[i]&15])
	}
	return string(b)
}
