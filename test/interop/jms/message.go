package jms

import (
	"slices"
	"strings"
	"time"
)

// Msg is a message as a JMS client received it.
type Msg struct {
	ID            string
	Dest          string // with its scheme, as in queue://Q
	Kind          string // text, bytes, map, stream, object or none
	Body          string // of text, bytes and object messages
	Redelivered   bool
	Priority      int
	Persistent    bool
	Expires       int64 // milliseconds since 1970, 0 for never
	Timestamp     int64 // milliseconds since 1970
	CorrelationID string
	Type          string
	ReplyTo       string
	Props         map[string]string // each TYPE:VALUE, as in int:5
	Map           map[string]string // a map message's entries, each TYPE:VALUE
	Stream        []string          // a stream message's values, each TYPE:VALUE
	Data          string            // the class of an advisory's data structure
	About         string            // what that says
	At            time.Time         // when the line that told of it was read
}

// Prop returns a property without its type, "" if there is none.
func (m Msg) Prop(name string) string { return bare(m.Props[name]) }

// Entry returns an entry of a map message without its type, "" if there is none.
func (m Msg) Entry(name string) string { return bare(m.Map[name]) }

func bare(typed string) string {
	_, value, _ := strings.Cut(typed, ":")
	return value
}

// Bodies lists the bodies of messages in their order.
func Bodies(messages []Msg) []string {
	bodies := make([]string, len(messages))
	for i, m := range messages {
		bodies[i] = m.Body
	}
	return bodies
}

func message(l line) Msg {
	stream := l.below("stream.")
	keys := make([]string, 0, len(stream))
	for key := range stream {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	m := Msg{
		ID: l.pairs["id"], Dest: l.pairs["dest"], Kind: l.pairs["kind"], Body: l.pairs["body"],
		Redelivered: l.pairs["redelivered"] == "true", Priority: int(l.number("priority")),
		Persistent: l.pairs["persistent"] == "true", Expires: l.number("expires"),
		Timestamp: l.number("timestamp"), CorrelationID: l.pairs["corr"], Type: l.pairs["type"],
		ReplyTo: l.pairs["replyto"], Props: l.below("prop."), Map: l.below("map."),
		Data: l.pairs["data"], About: l.pairs["about"], At: time.Now(),
	}
	for _, key := range keys {
		m.Stream = append(m.Stream, stream[key])
	}
	return m
}
