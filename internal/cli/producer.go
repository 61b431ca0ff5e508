package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/client"
	"hopwire/internal/address"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/rungroup"
	"hopwire/internal/terminal"
)

// payloadLimit is how many bytes --payloadUrl may give, and a size may say: a broker's frame is 100
// MiB, if nobody says otherwise, and holds the headers as well.
const payloadLimit = 100<<20 - 64<<10

// pause waits between messages.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// producerCommand is hopwire producer.
type producerCommand struct {
	dialFlags
	oneDestination
	Persistent yesNo   `default:"true" help:"${producerPersistent}"`
	Count      int     `name:"messageCount" default:"1000" help:"Messages of each thread."`
	Sleep      millis  `name:"sleep" placeholder:"MS" help:"${producerSleep}"`
	Batch      int     `name:"transactionBatchSize" placeholder:"N" help:"${producerBatch}"`
	Threads    int     `name:"parallelThreads" default:"1" help:"Senders at the same time."`
	TTL        millis  `name:"msgTTL" placeholder:"MS" help:"${producerTTL}"`
	Size       int     `name:"messageSize" placeholder:"BYTES" help:"${producerSize}"`
	TextSize   int     `name:"textMessageSize" placeholder:"CHARS" help:"${producerTextSize}"`
	Text       *string `name:"message" placeholder:"TEXT" help:"Send this text."`
	PayloadURL string  `name:"payloadUrl" placeholder:"URL" help:"${producerPayloadURL}"`
	GroupID    string  `name:"msgGroupID" placeholder:"NAME" help:"${producerGroupID}"`
	Priority   int     `name:"messagePriority" default:"4" help:"Priority, 0 to 9."`
	Undated    yesNo   `name:"disableMessageTimestamp" help:"Leave timestamps to the broker."`

	asked  questions
	open   atomic.Int64 // messages that are sent, or committed, and of which nothing was heard
	undone atomic.Int64 // messages that were sent in a transaction that was not committed
	heard  refusals     // of sends in transactions
}

// questions counts what the broker was asked, sends and commits, and its answers.
type questions struct{ asked, answered atomic.Int64 }

// unanswered is how long a broker that answers nothing goes untold; each look is whether it does.
const (
	unanswered = 10 * time.Second
	look       = time.Second
)

// of asks one and waits for its answer.
func (q *questions) of(f func() error) error {
	q.asked.Add(1)
	defer q.answered.Add(1)
	return f()
}

// watch tells of a broker that does not answer, once until it does.
func (q *questions) watch(ctx context.Context, out *lines, to *client.Destination) error {
	var last, before int64 // answers, and questions without one
	quiet := time.Duration(0)
	for pause(ctx, look) == nil {
		n := q.answered.Load()
		open := q.asked.Load() - n
		if n != last || before == 0 || open == 0 {
			quiet = 0
		} else {
			quiet += look
		}
		last, before = n, open
		if quiet == unanswered {
			name := client.FormatDestination(to)
			if err := out.printf("the broker has not answered for %s: %s to %s not confirmed; if it"+
				" lacks room, its log and hopwire explain %s say so\n", unanswered,
				plural.Of(open, "send"), name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run sends messages.
func (c *producerCommand) Run(ctx context.Context, s *streams) error {
	to, err := c.parse()
	if err != nil {
		return err
	}
	if name, _ := message.ParseDestination(to.PhysicalName, message.Queue); name.IsPattern() {
		return usageError{fmt.Sprintf("%s is a pattern, for consumers; messages go to one name",
			client.FormatDestination(to))}
	}
	if c.Count < 0 {
		return usageError{fmt.Sprintf("--messageCount %d; it may not be negative", c.Count)}
	}
	if c.Priority < 0 || c.Priority > 9 {
		return usageError{fmt.Sprintf("--messagePriority %d; it may be 0 to 9", c.Priority)}
	}
	if c.Threads < 1 || c.Size < 0 || c.TextSize < 0 || c.Batch < 0 {
		return usageError{"counts and sizes may not be negative; --parallelThreads is at least 1"}
	}
	if max(c.Size, c.TextSize) > payloadLimit {
		return usageError{fmt.Sprintf("--messageSize and --textMessageSize may be %d at most, 100 MiB"+
			" less 64 KiB for what goes with a body", payloadLimit)}
	}
	if c.PayloadURL != "" {
		text, err := payload(ctx, c.PayloadURL)
		if err != nil {
			return err
		}
		c.Text = &text
	}
	c.heard.told = make(chan struct{})
	tell := telling(s.err)
	if c.Batch > 0 {
		tell = c.heard.hear
	}
	conn, leave, err := dialTelling(ctx, c.BrokerURL, c.User, c.Password, "", s.err, tell)
	if err != nil {
		return err
	}
	defer leave()
	out := &lines{out: s.out}
	var all atomic.Int64
	told := s.err
	watch := rungroup.New(ctx)
	watch.Go("producer watch", func(ctx context.Context) error {
		return c.asked.watch(ctx, &lines{out: told}, to)
	})
	defer watch.Stop()
	err = parallel(ctx, "producer", c.Threads, func(one context.Context, name string) error {
		started := time.Now()
		n, err := c.send(one, conn, to)
		all.Add(n)
		if ctx.Err() != nil {
			return err // one line tells of all threads
		}
		_ = out.printf("%s: sent %s to %s %s\n", name, plural.Of(n, "message"),
			client.FormatDestination(to), rate(n, time.Since(started))) // the end tells of it
		return err
	})
	if ctx.Err() != nil {
		done := fmt.Sprintf("the broker confirmed %s to %s", plural.Of(all.Load(), "message"),
			client.FormatDestination(to))
		return interruptedError{done + c.rest()}
	}
	if err == nil {
		err = c.heard.first() // a broker may commit what it did not refuse
	}
	return err
}

// rest tells of what was sent beside what the broker confirmed.
func (c *producerCommand) rest() (text string) {
	if n := c.open.Load(); n > 0 {
		what := "sent"
		if c.Batch > 0 {
			what = "committed"
		}
		text = fmt.Sprintf("; %d more %s %s and not answered: %s may come in", n,
			plural.Form(n, "was", "were"), what, plural.Form(n, "it", "they"))
	}
	if n := c.undone.Load(); n > 0 {
		text += fmt.Sprintf("; %d more %s sent in a transaction that was rolled back: %s not come in",
			n, plural.Form(n, "was", "were"), plural.Form(n, "it does", "they do"))
	}
	return text
}

// lines lets several goroutines write whole lines.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) printf(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := terminal.Fprintf(l.out, format, args...)
	return err
}

// parallel runs something several times at once and gives the first errors.
func parallel(ctx context.Context, name string, n int,
	f func(ctx context.Context, name string) error,
) error {
	g := rungroup.New(ctx)
	defer g.Stop()
	for i := range n {
		one := fmt.Sprintf("%s-%d", name, i+1)
		g.Go(one, func(ctx context.Context) error { return f(ctx, one) })
	}
	return errors.Join(g.Wait(), ctx.Err())
}

func rate(n int64, took time.Duration) string {
	unit := time.Millisecond
	if took < 10*unit {
		unit = time.Microsecond
	}
	text := "in " + took.Round(unit).String()
	if took > 0 {
		text += fmt.Sprintf(" (%.0f/s)", float64(n)/took.Seconds())
	}
	return text
}

// send sends the messages of one thread and counts those that the broker has.
func (c *producerCommand) send(ctx context.Context, conn *client.Conn, to *client.Destination,
) (int64, error) {
	mode := client.AutoAck
	if c.Batch > 0 {
		mode = client.Transacted
	}
	session, err := conn.Session(ctx, mode)
	if err != nil {
		return 0, err
	}
	options := []client.SendOption{
		client.Priority(c.Priority), client.TTL(c.TTL.Duration),
	}
	if !c.Persistent {
		options = append(options, client.NonPersistent())
	}
	if c.Undated {
		options = append(options, client.NoTimestamp())
	}
	producer, err := session.Producer(ctx, to, options...)
	if err != nil {
		return 0, err
	}
	if c.Batch > 0 {
		return c.sendBatches(ctx, session, producer)
	}
	var taken atomic.Int64
	refused := make(chan error, 1)
	for i := range c.Count {
		c.asked.asked.Add(1)
		c.open.Add(1)
		err = producer.SendAsync(ctx, c.message(i), func(err error) {
			c.asked.answered.Add(1)
			var no *client.BrokerError
			switch {
			case err == nil:
				c.open.Add(-1)
				taken.Add(1)
				return
			case errors.As(err, &no):
				c.open.Add(-1)
			}
			select {
			case refused <- err:
			default:
			}
		})
		if err != nil {
			c.open.Add(-1) // it was not sent
		} else {
			err = pause(ctx, c.Sleep.Duration)
		}
		if err != nil || len(refused) > 0 {
			break
		}
	}
	long, cancel := lingering(ctx)
	defer cancel()
	err = errors.Join(err, producer.Close(long))
	select {
	case no := <-refused:
		err = errors.Join(no, err)
	default:
	}
	return taken.Load(), err
}

// sendBatches sends in transactions. A send that the broker refuses ends it, and is why: what a
// commit answers then is that there is no transaction.
func (c *producerCommand) sendBatches(ctx context.Context, session *client.Session,
	producer *client.Producer,
) (committed int64, err error) {
	open := int64(0)
	defer func() { c.undone.Add(open) }() // the end of the connection rolls it back
	long, cancel := lingering(ctx)
	defer cancel()
	for i := range c.Count {
		if err := c.asked.of(func() error { return producer.Send(ctx, c.message(i)) }); err != nil {
			return committed, err
		}
		open++
		if err := c.heard.first(); err != nil {
			return committed, err
		}
		if open == int64(c.Batch) || i == c.Count-1 {
			err := c.asked.of(func() error { return session.Commit(long) })
			switch {
			case err == nil:
				committed, open = committed+open, 0
			case mayHold(err):
				c.open.Add(open)
				open = 0
			}
			if _, refused := errors.AsType[*client.BrokerError](err); refused {
				err = cmp.Or(c.heard.soon(), err)
			}
			if err != nil {
				return committed, err
			}
		}
		if err := pause(ctx, c.Sleep.Duration); err != nil {
			return committed, err
		}
	}
	return committed, nil
}

// refusals keeps the first of what a broker refuses without having been asked for an answer.
type refusals struct {
	once sync.Once
	why  error
	told chan struct{} // closed when why is there
}

func (r *refusals) hear(err error) { r.once.Do(func() { r.why = err; close(r.told) }) }

// first is nil if there was none.
func (r *refusals) first() error {
	select {
	case <-r.told:
		return r.why
	default:
		return nil
	}
}

// soon is first, after a moment: an answer that comes behind it is told on another goroutine.
func (r *refusals) soon() error {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-r.told:
	case <-late.C:
	}
	return r.first()
}

// mayHold reports whether a transaction whose commit failed may have been committed all the same.
func mayHold(err error) bool {
	_, refused := errors.AsType[*client.BrokerError](err)
	// A commit that was given up before it was sent is no ErrInDoubt.
	given := errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrInDoubt)
	return !refused && !given && !errors.Is(err, client.ErrRolledBack)
}

// message makes the message of a number.
func (c *producerCommand) message(i int) *client.Message {
	var m *client.Message
	switch {
	case c.Size > 0:
		m = client.NewBytes(make([]byte, c.Size))
	case c.TextSize > 0:
		text := fmt.Sprintf("message %d ", i)
		m = client.NewText((text + strings.Repeat("x", c.TextSize))[:c.TextSize])
	case c.Text != nil:
		m = client.NewText(*c.Text)
	default:
		m = client.NewText(fmt.Sprintf("test message: %d", i))
	}
	m.GroupID = c.GroupID
	return m
}

// payload reads a file or an http address.
func payload(ctx context.Context, where string) (string, error) {
	scheme, rest, found := strings.Cut(where, ":")
	if !found || !address.IsScheme(scheme) {
		scheme, rest = "", where
	}
	var body io.ReadCloser
	switch strings.ToLower(scheme) {
	case "http", "https":
		u, err := url.Parse(where)
		if err != nil {
			return "", usageError{fmt.Sprintf("--payloadUrl %q is no address; use file:///path or"+
				" http://host/path", address.Shown(where))}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		body = response.Body
		defer http.DefaultClient.CloseIdleConnections()
		if response.StatusCode != http.StatusOK {
			body.Close()
			return "", fmt.Errorf("--payloadUrl %s: %s", u.Redacted(), response.Status)
		}
	case "file", "":
		path := rest
		if scheme != "" {
			var err error
			if path, err = filePath(rest); err != nil {
				return "", usageError{fmt.Sprintf("--payloadUrl %s: %v", where, err)}
			}
		}
		if path == "" {
			return "", usageError{fmt.Sprintf("--payloadUrl %s names no file", where)}
		}
		var err error
		if body, err = os.Open(path); err != nil {
			return "", fileError{err}
		}
	default:
		return "", usageError{fmt.Sprintf("--payloadUrl %s: scheme %s; use file or http", where,
			scheme)}
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, payloadLimit+1))
	if err == nil && len(text) > payloadLimit {
		err = fmt.Errorf("--payloadUrl %s: more than %d bytes", where, payloadLimit)
	}
	return string(text), err
}
