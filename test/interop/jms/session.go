package jms

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Session is a JMS session: what is asked of it runs one after the other.
type Session struct {
	t    testing.TB
	p    *process
	id   string
	mode Mode
}

// Mode is how the session acknowledges.
func (s *Session) Mode() Mode { return s.mode }

// SendOptions say what to send. {} in bodies, properties and correlation ids becomes the number of
// the message.
type SendOptions struct {
	Dest          string // with its scheme, options and composites as ActiveMQ reads them
	N             int    // how many, 1 by default
	From          int    // the number of the first one
	Kind          string // text (default), bytes, map, stream, object or none
	Body          string // of text, bytes and object messages
	NonPersistent bool
	Anonymous     bool          // by a producer of no destination
	Priority      int           // 4 if 0
	TTL           time.Duration // for ever if 0
	CorrelationID string
	Correlation   []byte // a correlation id given as bytes
	Type          string
	ReplyTo       string            // a destination with its scheme
	Props         map[string]string // each TYPE:VALUE: bool byte short int long float double string
	Map           map[string]string // entries of a map message, as Props
	Stream        []string          // values of a stream message, as Props
}

func (o SendOptions) pairs() pairs {
	args := pairs{"dest": o.Dest}
	args.setInt("n", int64(o.N))
	args.setInt("from", int64(o.From))
	args.set("kind", o.Kind)
	args.set("body", o.Body)
	args.setBool("nonpersistent", o.NonPersistent)
	args.setBool("anonymous", o.Anonymous)
	args.setInt("priority", int64(o.Priority))
	args.setInt("ttl", o.TTL.Milliseconds())
	args.set("corr", o.CorrelationID)
	args.set("corrbytes", base64.StdEncoding.EncodeToString(o.Correlation))
	args.set("type", o.Type)
	args.set("replyto", o.ReplyTo)
	for key, value := range o.Props {
		args["prop."+key] = value
	}
	for key, value := range o.Map {
		args["map."+key] = value
	}
	for i, value := range o.Stream {
		args[fmt.Sprintf("stream.%03d", i)] = value
	}
	return args
}

// Send sends and returns the messages' ids.
func (s *Session) Send(o SendOptions) []string {
	s.t.Helper()
	ids, err := s.TrySend(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// TrySend is Send for any goroutine, and for sends that the broker may refuse with an *Error.
func (s *Session) TrySend(o SendOptions) ([]string, error) {
	args := o.pairs()
	args["session"] = s.id
	reply, _, err := s.p.call("send", args, time.Duration(o.N)*20*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return strings.Fields(reply.pairs["ids"]), nil
}

// Request is Conn.Request in a given session.
func (s *Session) Request(o SendOptions, n int, wait time.Duration) ([]Msg, error) {
	args := o.pairs()
	args["session"] = s.id
	args.setInt("n", int64(n))
	args.setInt("wait", wait.Milliseconds())
	_, replies, err := s.p.call("request", args, time.Duration(n)*wait)
	return replies, err
}

// Temporary makes a temporary queue or topic and returns its name with its scheme. It lives as long
// as the connection.
func (s *Session) Temporary(topic bool) (string, error) {
	args := pairs{"session": s.id}
	args.setBool("topic", topic)
	reply, _, err := s.p.call("temp", args, 0)
	return reply.pairs["dest"], err
}

// Consumer opens a consumer.
func (s *Session) Consumer(o ConsumerOptions) *Consumer {
	s.t.Helper()
	c, err := s.TryConsumer(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TryConsumer is Consumer for what the broker may refuse with an *Error.
func (s *Session) TryConsumer(o ConsumerOptions) (*Consumer, error) {
	c := &Consumer{t: s.t, p: s.p, session: s.id, id: name("r"), dest: o.Dest}
	args := o.pairs()
	args["session"], args["id"] = s.id, c.id
	s.p.listen(c.id, c.hear)
	if _, _, err := s.p.call("consumer", args, 0); err != nil {
		s.p.listen(c.id, nil)
		return nil, err
	}
	return c, nil
}

// Commit commits a transacted session.
func (s *Session) Commit() error { return s.do("commit", nil) }

// Rollback rolls a transacted session back.
func (s *Session) Rollback() error { return s.do("rollback", nil) }

// Recover has what is not acknowledged delivered again.
func (s *Session) Recover() error { return s.do("recover", nil) }

// Unsubscribe removes a durable subscription.
func (s *Session) Unsubscribe(name string) error { return s.do("unsubscribe", pairs{"name": name}) }

// Close closes the session and its consumers.
func (s *Session) Close() error {
	_, _, err := s.p.call("close", pairs{"on": s.id}, 0)
	return err
}

func (s *Session) do(verb string, args pairs) error {
	if args == nil {
		args = pairs{}
	}
	args["session"] = s.id
	_, _, err := s.p.call(verb, args, 0)
	return err
}
