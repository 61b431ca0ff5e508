package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"hopwire/client"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/terminal"
	"hopwire/openwire"
)

// consumerCommand is hopwire consumer.
type consumerCommand struct {
	dialFlags
	oneDestination
	Selector    string `placeholder:"SELECTOR" help:"JMS selector of the messages to take."`
	Count       *int64 `name:"messageCount" placeholder:"N" help:"${consumerCount}"`
	Sleep       millis `name:"sleep" placeholder:"MS" help:"Milliseconds after each message."`
	AckMode     string `name:"ackMode" default:"AUTO_ACKNOWLEDGE" help:"${consumerAckMode}"`
	Transacted  yesNo  `help:"As --ackMode SESSION_TRANSACTED."`
	BatchSize   int64  `name:"batchSize" default:"10" help:"Messages of a commit or ack."`
	Durable     yesNo  `help:"${consumerDurable}"`
	ClientID    string `name:"clientId" placeholder:"NAME" help:"${consumerClientID}"`
	Threads     int    `name:"parallelThreads" default:"1" help:"Receivers at a time."`
	BytesAsText yesNo  `name:"bytesAsText" help:"Show byte messages as text."`
	Wait        span   `default:"3s" help:"${consumerWait}"`

	made atomic.Bool // a consumer, and with it the queue
}

// Help tells kong the longer text.
func (*consumerCommand) Help() string { return words["consumerHelp"] }

// allowance is how many messages a thread takes when nobody says.
const allowance = 1000

// Run receives messages and shows their bodies.
func (c *consumerCommand) Run(ctx context.Context, s *streams) error {
	from, err := c.parse()
	if err != nil {
		return err
	}
	mode, err := c.mode()
	if err != nil {
		return err
	}
	if bool(c.Durable) && from.Type != openwire.TypeTopic {
		return usageError{fmt.Sprintf("--durable is for topics, and this is %s; write topic://%s",
			client.FormatDestination(from), from.PhysicalName)}
	}
	if bool(c.Durable) && c.ClientID == "" {
		return usageError{"--durable needs a --clientId, which names the owner of the subscription"}
	}
	limit := int64(allowance)
	if c.Count != nil {
		limit = *c.Count
	}
	if limit < 0 {
		return usageError{fmt.Sprintf("--messageCount %d; it may not be negative", limit)}
	}
	if c.Threads < 1 || c.BatchSize < 1 {
		return usageError{"--parallelThreads and --batchSize are at least 1"}
	}
	conn, leave, err := dial(ctx, c.BrokerURL, c.User, c.Password, c.ClientID, s.err)
	if err != nil {
		return err
	}
	defer leave()
	there, err := c.before(ctx, conn, from)
	if err != nil {
		return err
	}
	out := &lines{out: s.out}
	// What reads a body from a pipe or file is given what was sent.
	seen := func(text string) terminal.Text { return terminal.Text(text) }
	if isDevice(s.out) {
		seen = func(text string) terminal.Text { return terminal.Body(text, "") }
	}
	var all, settled atomic.Int64
	err = parallel(ctx, "consumer", c.Threads, func(one context.Context, name string) error {
		started := time.Now()
		n, acked, err := c.receive(one, conn, from, mode, name, limit, func(m *client.Message) error {
			return out.printf("%s: %s\n", name, c.text(m, seen))
		})
		all.Add(n)
		settled.Add(acked)
		if ctx.Err() != nil {
			return err // one line tells of all threads
		}
		_ = out.printf("%s: received %s from %s %s\n", name, plural.Of(n, "message"),
			client.FormatDestination(from), rate(n, time.Since(started))) // the end tells of it
		if err == nil && c.Count != nil && n < limit {
			err = message.Errorf(message.NotFound, "%d of %s: no more came within %s (--wait)", n,
				plural.Of(limit, "message"), c.Wait)
		}
		return err
	})
	if ctx.Err() != nil {
		return interruptedError{fmt.Sprintf("received %s from %s, of which %d are acknowledged",
			plural.Of(all.Load(), "message"), client.FormatDestination(from), settled.Load())}
	}
	if all.Load() == 0 && c.made.Load() && there.lacks(from) {
		terminal.Fprintf(s.err, "%s was not there before this consumer%s\n",
			client.FormatDestination(from), nearest(from.PhysicalName, there.names))
	}
	return err
}

// before gives the queues that are there before the consumer is, who makes its own.
func (c *consumerCommand) before(ctx context.Context, conn *client.Conn, from *client.Destination,
) (queues, error) {
	if from.Type != openwire.TypeQueue {
		return queues{}, nil
	}
	return queuesOf(ctx, conn)
}

func (c *consumerCommand) mode() (client.AckMode, error) {
	if c.Transacted {
		return client.Transacted, nil
	}
	for m := client.AutoAck; m <= client.Transacted; m++ {
		if strings.EqualFold(m.String(), c.AckMode) {
			return m, nil
		}
	}
	return 0, usageError{fmt.Sprintf("--ackMode %s; use AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE, "+
		"DUPS_OK_ACKNOWLEDGE, INDIVIDUAL_ACKNOWLEDGE or SESSION_TRANSACTED", c.AckMode)}
}

// receive takes the messages of one thread and counts them.
func (c *consumerCommand) receive(ctx context.Context, conn *client.Conn, from *client.Destination,
	mode client.AckMode, name string, limit int64, show func(*client.Message) error,
) (n, settled int64, err error) {
	batch := c.BatchSize
	switch mode {
	case client.AutoAck:
		// A session that acknowledges by itself does so before the message is written.
		mode, batch = client.ClientAck, 1
	case client.DupsOKAck:
		mode = client.ClientAck
	case client.IndividualAck:
		batch = 1
	}
	session, err := conn.Session(ctx, mode)
	if err != nil {
		return 0, 0, err
	}
	// What it has ahead is for the other threads.
	defer func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		err = errors.Join(err, session.Close(leaving))
	}()
	var options []client.ConsumerOption
	if c.Durable {
		options = append(options, client.WithDurable(name))
	}
	if c.Selector != "" {
		options = append(options, client.WithSelector(c.Selector))
	}
	consumer, err := session.Consumer(ctx, from, options...)
	if err != nil {
		return 0, 0, err
	}
	c.made.Store(true)
	long, cancel := lingering(ctx)
	defer cancel()
	var last *client.Message
	for n < limit {
		m, err := c.next(ctx, consumer)
		if err != nil {
			return n, settled, err
		}
		if m == nil {
			break
		}
		last = m
		if err := show(m); err != nil {
			return n, settled, err
		}
		n++
		if n%batch == 0 {
			if err := settle(long, session, m); err != nil {
				return n, settled, err
			}
			last, settled = nil, n
		}
		if err := pause(ctx, c.Sleep.Duration); err != nil {
			return n, settled, err
		}
	}
	if last != nil {
		if err = settle(long, session, last); err == nil {
			settled = n
		}
	}
	return n, settled, err
}

// next waits for a message; nil when none came in time.
func (c *consumerCommand) next(ctx context.Context, consumer *client.Consumer,
) (*client.Message, error) {
	if c.Wait.Duration <= 0 {
		return consumer.Receive(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, c.Wait.Duration)
	defer cancel()
	m, err := consumer.Receive(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return m, err
}

// settle commits or acknowledges, whichever the session does.
func settle(ctx context.Context, session *client.Session, m *client.Message) error {
	if session.Mode() == client.Transacted {
		return session.Commit(ctx)
	}
	return m.Ack()
}

// text is what is shown of a message; seen is what is shown of a text that was sent.
func (c *consumerCommand) text(m *client.Message, seen func(string) terminal.Text) terminal.Text {
	body, err := m.Body()
	if err != nil {
		return shown(fmt.Sprintf("[%s %s: %v]", m.Kind(), m.ID, err))
	}
	switch body := body.(type) {
	case string:
		return seen(body)
	case []byte:
		if c.BytesAsText {
			return seen(string(body))
		}
		return shown(fmt.Sprintf("[%s of %s]", m.Kind(), plural.Of(int64(len(body)), "byte")))
	case nil:
		return shown("[" + m.Kind() + "]")
	}
	return shown(fmt.Sprintf("[%s %s]", m.Kind(), plain(body)))
}
