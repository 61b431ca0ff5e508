package jms

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Consumer is a JMS consumer. What it received, by its listener or by Receive, is kept in order.
type Consumer struct {
	t           testing.TB
	p           *process
	session, id string
	dest        string

	mu       sync.Mutex
	received []Msg
	faults   []*Error // of its listener
}

// ConsumerOptions say what to consume and how.
type ConsumerOptions struct {
	Dest     string // with its scheme; prefetch as in queue://Q?consumer.prefetchSize=1
	Selector string
	NoLocal  bool
	Durable  string        // the name of a durable subscription; the connection needs a ClientID
	Pull     bool          // no listener: messages are fetched by Receive
	Delay    time.Duration // what the listener takes for each message
	Fail     int           // the listener throws on its first messages, so many
	Reply    bool          // the listener answers messages that have a reply-to
	// Does is what the listener does on its first message: close, close session,
	// close connection, stop connection, recover or rollback.
	Does string
}

func (o ConsumerOptions) pairs() pairs {
	args := pairs{"dest": o.Dest}
	args.set("selector", o.Selector)
	args.setBool("nolocal", o.NoLocal)
	args.set("durable", o.Durable)
	args.setBool("pull", o.Pull)
	args.setInt("delay", o.Delay.Milliseconds())
	args.setInt("fail", int64(o.Fail))
	args.setBool("reply", o.Reply)
	args.set("does", o.Does)
	return args
}

func (c *Consumer) hear(l line) {
	if l.word == "exception" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, &Error{"listener", l.pairs["class"], l.pairs["text"]})
		return
	}
	c.add(message(l))
}

func (c *Consumer) add(messages ...Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, messages...)
}

// Faults lists what the listener's own calls threw so far.
func (c *Consumer) Faults() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.faults)
}

// SetPrefetch asks the broker for another prefetch while the consumer lives.
func (c *Consumer) SetPrefetch(on *Conn, n int) error {
	args := pairs{"on": c.id, "conn": on.id}
	args.setInt("n", int64(n))
	_, _, err := c.p.call("prefetch", args, 0)
	return err
}

// Received lists what was received so far, in order, redeliveries too.
func (c *Consumer) Received() []Msg {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// Count is how many messages were received so far.
func (c *Consumer) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.received)
}

// Wait waits until at least n messages were received in all and returns them.
func (c *Consumer) Wait(n int, within time.Duration) []Msg {
	c.t.Helper()
	WaitTotal(c.t, n, within, c)
	return c.Received()
}

// Silent asks that nothing is received for a while.
func (c *Consumer) Silent(while time.Duration) {
	c.t.Helper()
	before := c.Count()
	if _, came := waitTotal(before+1, while, []*Consumer{c}); came {
		c.t.Fatalf("%s: a message came in a time of silence: %v",
			c.dest, Bodies(c.Received()[before:]))
	}
}

// Receive fetches at most n messages, each awaited for the given time; a zero time takes only what
// has been prefetched.
func (c *Consumer) Receive(n int, wait time.Duration) []Msg {
	c.t.Helper()
	messages, err := c.TryReceive(n, wait)
	if err != nil {
		c.t.Fatal(err)
	}
	return messages
}

// TryReceive is Receive for any goroutine, and for connections that may break.
func (c *Consumer) TryReceive(n int, wait time.Duration) ([]Msg, error) {
	args := pairs{"session": c.session, "on": c.id}
	args.setInt("n", int64(n))
	args.setInt("wait", wait.Milliseconds())
	_, messages, err := c.p.call("receive", args, time.Duration(n)*wait)
	c.add(messages...)
	return messages, err
}

// Ack acknowledges the last message received, with mode Client all that came before it too.
func (c *Consumer) Ack() error { return c.AckID("") }

// AckCopy is AckID for one of several copies of a message.
func (c *Consumer) AckCopy(m Msg) error { return c.AckID(m.ID + " " + m.Dest) }

// AckID acknowledges one message of a session of mode Client or Individual.
func (c *Consumer) AckID(id string) error {
	args := pairs{"session": c.session, "on": c.id}
	args.set("msgid", id)
	_, _, err := c.p.call("ack", args, 0)
	return err
}

// Close closes the consumer.
func (c *Consumer) Close() error {
	_, _, err := c.p.call("close", pairs{"on": c.id}, 0)
	return err
}

// pause is the time between two looks at what consumers received.
const pause = 5 * time.Millisecond

// WaitTotal waits until some consumers have received at least n messages between them.
func WaitTotal(t testing.TB, n int, within time.Duration, consumers ...*Consumer) {
	t.Helper()
	if total, done := waitTotal(n, within, consumers); !done {
		t.Fatalf("after %v %d of %d messages: %s", within, total, n, Summary(consumers...))
	}
}

func waitTotal(n int, within time.Duration, consumers []*Consumer) (total int, done bool) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		total = 0
		for _, c := range consumers {
			total += c.Count()
		}
		if total >= n {
			return total, true
		}
		select {
		case <-timer.C:
			return total, false
		case <-tick.C:
		}
	}
}

// Summary says what each of some consumers received, for a failing test's message.
func Summary(consumers ...*Consumer) string {
	parts := make([]string, len(consumers))
	for i, c := range consumers {
		c.mu.Lock()
		parts[i] = fmt.Sprintf("%s %d %v", c.dest, len(c.received), Bodies(c.received))
		if len(c.faults) > 0 {
			parts[i] += fmt.Sprintf(" faults %v", c.faults)
		}
		c.mu.Unlock()
	}
	return strings.Join(parts, "; ")
}
