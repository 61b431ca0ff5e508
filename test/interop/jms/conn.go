package jms

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Conn is a JMS connection.
type Conn struct {
	t  testing.TB
	p  *process
	id string

	mu      sync.Mutex
	auto    *Session // for Consumer and Send
	faults  []*Error // what the exception listener heard
	cuts    int      // how often the transport was interrupted
	resumes int      // how often it resumed
	changed chan struct{}
	closed  bool
}

// Mode is how a session acknowledges.
type Mode string

// The modes of JMS, ActiveMQ's own one, and that of a transaction manager.
const (
	Auto       Mode = "auto"
	Client     Mode = "client"
	DupsOK     Mode = "dups"
	Transacted Mode = "transacted"
	Individual Mode = "individual"
	XA         Mode = "xa" // of a connection with ConnectOptions.XA
)

func (c *Conn) hear(l line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.word == "exception":
		c.faults = append(c.faults, &Error{"exception listener", l.pairs["class"], l.pairs["text"]})
	case l.pairs["state"] == "interrupted":
		c.cuts++
	case l.pairs["state"] == "resumed":
		c.resumes++
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Session opens a session.
func (c *Conn) Session(mode Mode) *Session {
	c.t.Helper()
	s := &Session{t: c.t, p: c.p, id: name("s"), mode: mode}
	args := pairs{"on": c.id, "id": s.id, "mode": string(mode)}
	if _, _, err := c.p.call("session", args, 0); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// Consumer listens on a destination in an automatic session of its own.
func (c *Conn) Consumer(dest string) *Consumer {
	c.t.Helper()
	return c.Session(Auto).Consumer(ConsumerOptions{Dest: dest})
}

// Send sends n persistent text messages, confirmed one by one, and returns their ids. In the body
// {} becomes 0, 1, 2 and so on.
func (c *Conn) Send(dest string, n int, body string) []string {
	c.t.Helper()
	return c.session().Send(SendOptions{Dest: dest, N: n, Body: body})
}

// Put sends what o says in the connection's own automatic session.
func (c *Conn) Put(o SendOptions) []string {
	c.t.Helper()
	return c.session().Send(o)
}

// session is the connection's own automatic session.
func (c *Conn) session() *Session {
	c.t.Helper()
	if c.auto == nil {
		c.auto = c.Session(Auto)
	}
	return c.auto
}

// Request sends a text message with a temporary queue as reply-to and returns at most n replies,
// each awaited for the given time.
func (c *Conn) Request(o SendOptions, n int, wait time.Duration) []Msg {
	c.t.Helper()
	replies, err := c.session().Request(o, n, wait)
	if err != nil {
		c.t.Fatal(err)
	}
	return replies
}

// Ask sends a question with a temporary queue as reply-to, and a message to that queue after it; it
// returns what arrived between. That is what a broker itself answers, or nothing, without a wait.
func (c *Conn) Ask(o SendOptions, wait time.Duration) []Msg {
	c.t.Helper()
	args := o.pairs()
	args["session"] = c.session().id
	args["fence"] = "true"
	args.setInt("n", 1<<30)
	args.setInt("wait", wait.Milliseconds())
	_, replies, err := c.p.call("request", args, wait)
	if err != nil {
		c.t.Fatal(err)
	}
	return replies
}

// Browse lists the messages of a queue that match a selector, all if it is empty.
func (c *Conn) Browse(dest, selector string) []Msg {
	c.t.Helper()
	messages, err := c.TryBrowse(dest, selector)
	if err != nil {
		c.t.Fatal(err)
	}
	return messages
}

// TryBrowse is Browse for what the broker may refuse with an *Error.
func (c *Conn) TryBrowse(dest, selector string) ([]Msg, error) {
	c.t.Helper()
	args := pairs{"session": c.session().id, "dest": dest}
	args.set("selector", selector)
	_, messages, err := c.p.call("browse", args, 0)
	return messages, err
}

// Destroy removes a destination, a temporary one of this connection too.
func (c *Conn) Destroy(dest string) error {
	_, _, err := c.p.call("destroy", pairs{"on": c.id, "dest": dest}, 0)
	return err
}

// SetClientID names the client, which has to come first.
func (c *Conn) SetClientID(id string) error {
	_, _, err := c.p.call("clientid", pairs{"on": c.id, "clientid": id}, 0)
	return err
}

// Start begins delivery.
func (c *Conn) Start() error { return c.do("start") }

// Stop pauses delivery.
func (c *Conn) Stop() error { return c.do("stop") }

func (c *Conn) do(verb string) error {
	_, _, err := c.p.call(verb, pairs{"on": c.id}, 0)
	return err
}

// Close closes the connection and all that was opened on it.
func (c *Conn) Close() error { return c.end(0) }

func (c *Conn) end(wait time.Duration) error {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was || !c.p.alive() {
		return nil
	}
	_, _, err := c.p.call("close", pairs{"on": c.id}, wait)
	c.p.listen(c.id, nil)
	return err
}

// Faults lists what the exception listener heard so far.
func (c *Conn) Faults() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Error(nil), c.faults...)
}

// WaitFault waits for the exception listener's first call.
func (c *Conn) WaitFault(within time.Duration) *Error {
	c.t.Helper()
	c.await(within, "an exception", func() bool { return len(c.faults) > 0 })
	return c.Faults()[0]
}

// WaitResumed waits until a failover: connection was interrupted and resumed n times in all.
func (c *Conn) WaitResumed(n int, within time.Duration) {
	c.t.Helper()
	c.await(within, fmt.Sprintf("resumed %d times", n), func() bool { return c.resumes >= n })
}

func (c *Conn) await(within time.Duration, what string, seen func() bool) {
	c.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		c.mu.Lock()
		done, changed := seen(), c.changed
		state := fmt.Sprintf("%d interrupted, %d resumed, exceptions %v", c.cuts, c.resumes, c.faults)
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			c.t.Fatalf("after %v no %s: %s", within, what, state)
		}
	}
}
