package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

// Limits of a session.
const (
	// UnsentLimit is how many bytes may wait for a peer that does not take them before it is
	// given up. What waits is bounded by prefetches already; this is the limit behind them.
	UnsentLimit = 1 << 30
	// closeTimeout is how long a closed session may take to send what waits.
	closeTimeout = 5 * time.Second
	// closeLinger is how long it then waits for the peer to close, so that the last answer is
	// read and not torn away by a reset.
	closeLinger = 2 * time.Second
	// postingCredit is how many batches the reader may be ahead of the loop.
	postingCredit = 4
	// batchKept is how many commands a batch's memory is kept for.
	batchKept = 1024
)

// Config is what a Session needs. The functions run on the hub's loop.
type Config struct {
	Hub   *Hub
	Group *rungroup.Group
	Conn  *transport.Conn
	Offer Offer
	Name  string // of its goroutines
	// HelloTimeout bounds the wait for the peer's hello; 0 is 30 s.
	HelloTimeout time.Duration
	// Guarded keeps frames small and batches in lockstep with the loop until Trust is called, so
	// that a peer which has not logged in costs little.
	Guarded bool

	// Up is called when the hellos agreed, before anything is received.
	Up func(Peer)
	// Receive takes one command.
	Receive func(message.Command)
	// TooBig is told of a message above the frame limit: of m only what comes before the body is
	// known. err is the *openwire.FrameTooBigError. The frame was read over; the session goes on,
	// unless an object cache could be out of step: then it closes after the answer.
	TooBig func(m *message.Message, err error)
	// Congested is asked after each batch; while it is true nothing more is read. nil is never.
	Congested func() bool
	// Unsent is told of a command that cannot be encoded for this peer: it was left out. A
	// delivery comes as a *message.MessageDispatch.
	Unsent func(c message.Command, err error)
	// Down is called once, at the end, also when Up never was.
	Down func(error)
}

// Session is one OpenWire connection after Start. Its methods are called on the loop.
type Session struct {
	cfg  Config
	conn *transport.Conn
	peer Peer

	// Of the loop:
	dirty  bool // is in the hub's list
	closed bool
	out    []item

	mu      sync.Mutex
	waiting []item // handed over, not taken by the writer
	closing bool   // nothing more will be handed over
	alive   bool   // a KeepAliveInfo is due
	cause   error  // the first reason of the end

	// Of the writer:
	current []item
	next    int
	enc     *Encoder // nil before the hellos agreed: nothing is sent until then
	wallMS  int64

	writer  *transport.Writer
	unsent  atomic.Int64
	trusted atomic.Bool
	free    chan *batch
	looked  chan struct{} // the loop looked at a guarded batch
	done    chan struct{} // the reader ended
	failed  chan struct{} // cause is set
	down    sync.Once
}

// batch is what one read of the socket gave.
type batch struct {
	s       *Session
	cmds    []message.Command
	run     func()
	guarded bool
}

// New makes a session of a connection, which is the session's from here on. Nothing happens before
// Start.
func New(cfg Config) *Session {
	if cfg.HelloTimeout <= 0 {
		cfg.HelloTimeout = transport.DefaultConnectionTimeout
	}
	s := &Session{
		cfg: cfg, conn: cfg.Conn, free: make(chan *batch, postingCredit),
		looked: make(chan struct{}, 1), done: make(chan struct{}),
		failed: make(chan struct{}),
	}
	s.trusted.Store(!cfg.Guarded)
	s.writer = transport.NewWriter(s.conn, s.fill)
	return s
}

// Start sends the hello and begins to read. It may be called from any goroutine, once.
func (s *Session) Start() {
	cfg := &s.cfg
	hello, err := openwire.NewHello(cfg.Offer.Version, cfg.Offer.Options)
	var first []byte
	if err == nil {
		first, err = hello.AppendFrame(nil)
	}
	if err != nil {
		s.abandon(err)
		return
	}
	if !cfg.Group.Go(cfg.Name+" reader", func(ctx context.Context) error {
		s.converse(ctx, hello)
		return nil
	}) {
		s.abandon(ErrStopping)
		return
	}
	cfg.Group.Go(cfg.Name+" writer", func(context.Context) error {
		s.write(first)
		return nil
	})
}

// ErrStopping is the end of sessions whose group stops.
var ErrStopping = message.Errorf(message.Unavailable, "stopping")

var (
	errFlushed  = errors.New("all is written")
	errLoopGone = message.Errorf(message.Unavailable, "the broker has ended")
)

// abandon ends a session whose goroutines never ran.
func (s *Session) abandon(err error) {
	_ = s.conn.Close()
	close(s.done)
	s.ended(err)
}

// fail ends the connection from any goroutine; the first reason counts.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = err
		close(s.failed)
	}
	s.mu.Unlock()
	_ = s.conn.Close()
}

// ended tells of the end, once.
func (s *Session) ended(err error) {
	s.down.Do(func() {
		s.cfg.Hub.loop.Post(func() {
			s.closed = true
			s.cfg.Down(err)
		})
	})
}

// converse is the reader: hellos, then commands until the end.
func (s *Session) converse(ctx context.Context, hello *openwire.WireFormatInfo) {
	stop := context.AfterFunc(ctx, func() { s.fail(ErrStopping) })
	defer stop()
	err := s.greet(hello)
	s.mu.Lock()
	if s.cause != nil {
		err = s.cause
	}
	s.mu.Unlock()
	_ = s.conn.Close()
	close(s.done)
	s.ended(err)
}

func (s *Session) greet(hello *openwire.WireFormatInfo) error {
	late := time.AfterFunc(s.cfg.HelloTimeout, func() {
		s.fail(message.Errorf(message.Unavailable, "no hello within %v: no OpenWire peer, or busy",
			s.cfg.HelloTimeout))
	})
	frames := openwire.NewFrameReader(s.conn)
	first, err := frames.ReadBatch()
	late.Stop()
	if err != nil {
		return err
	}
	peer, err := s.cfg.Offer.agree(hello, first[0], s.conn.Remote())
	if err != nil {
		return err
	}
	s.peer = *peer
	s.mu.Lock()
	s.enc = NewEncoder(peer.Format)
	s.mu.Unlock()
	s.writer.Wake()
	if !s.cfg.Hub.loop.Post(func() {
		if !s.closed {
			s.cfg.Up(*peer)
		}
	}) {
		return errLoopGone
	}
	s.conn.Watch(peer.Format.Inactivity, peer.Format.InitialDelay, s.keepAlive, s.fail)
	return s.read(frames, NewDecoder(peer.Format))
}

// read turns frames into batches for the loop.
func (s *Session) read(frames *openwire.FrameReader, d *Decoder) error {
	for range postingCredit {
		b := &batch{s: s}
		b.run = b.handle
		s.free <- b
	}
	frames.SetLimit(openwire.HelloLimit)
	trusted := false
	for {
		if !trusted && s.trusted.Load() {
			trusted = true
			frames.SetLimit(s.cfg.Offer.FrameLimit)
		}
		fs, err := frames.ReadBatch()
		var big *openwire.FrameTooBigError
		if errors.As(err, &big) && trusted {
			err = s.skip(frames, d, big)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := s.post(d, fs, !trusted); err != nil {
			return err
		}
	}
}

// post decodes the frames and hands them to the loop; what came before a bad one is handed over.
func (s *Session) post(d *Decoder, frames [][]byte, guarded bool) error {
	var b *batch
	select {
	case b = <-s.free:
	case <-s.done:
		return ErrStopping
	case <-s.failed:
		return ErrStopping // the first reason counts
	}
	b.guarded = guarded
	var err error
	for _, f := range frames {
		var c message.Command
		if c, err = d.Decode(f); err != nil {
			break
		}
		if k, ok := c.(*message.KeepAliveInfo); ok && !k.ResponseRequired && k.CommandID == 0 {
			continue // a sign of life; nobody waits for it
		}
		b.cmds = append(b.cmds, c)
	}
	if len(b.cmds) == 0 {
		s.free <- b
		return err
	}
	if !s.cfg.Hub.loop.Post(b.run) {
		return errLoopGone
	}
	if guarded {
		<-s.looked
	}
	return err
}

// handle runs on the loop.
func (b *batch) handle() {
	s := b.s
	for _, c := range b.cmds {
		if s.closed {
			break
		}
		if k, ok := c.(*message.KeepAliveInfo); ok && k.ResponseRequired {
			// The answer has the number of the question, as Java's has.
			answer := &message.KeepAliveInfo{}
			answer.CommandID = k.CommandID
			s.Send(answer)
			continue
		}
		s.cfg.Receive(c)
	}
	clear(b.cmds)
	if b.cmds = b.cmds[:0]; cap(b.cmds) > batchKept {
		b.cmds = nil
	}
	if s.cfg.Congested != nil && !s.closed && s.cfg.Congested() {
		s.conn.Pause(true)
		s.cfg.Hub.withheld = append(s.cfg.Hub.withheld, b)
		return
	}
	b.giveBack()
}

// giveBack lets the reader use the batch again.
func (b *batch) giveBack() {
	guarded := b.guarded
	b.s.free <- b
	if guarded {
		b.s.looked <- struct{}{}
	}
}

// skipLimit is the largest frame that is read over; a larger one is more likely a broken stream.
const skipLimit = 1 << 30

// skip reads over a frame above the limit and tells the loop whose it was.
func (s *Session) skip(frames *openwire.FrameReader, d *Decoder, big *openwire.FrameTooBigError,
) error {
	if big.Size > skipLimit {
		return big
	}
	head, err := frames.Skip()
	if err != nil {
		return err
	}
	m := d.head(head)
	if m == nil {
		return big
	}
	if !s.cfg.Hub.loop.Post(func() {
		if s.closed {
			return
		}
		s.cfg.TooBig(m, big)
		if s.peer.Format.Cache {
			s.Close(big.Error())
		}
	}) {
		return errLoopGone
	}
	return nil
}

// keepAlive is the inactivity monitor's: something must be written.
func (s *Session) keepAlive() {
	s.mu.Lock()
	s.alive = true
	s.mu.Unlock()
	s.writer.Wake()
}

// Peer is what the hellos told; it is complete from Up on.
func (s *Session) Peer() Peer { return s.peer }

// Trust lifts the guard: the peer has logged in.
func (s *Session) Trust() { s.trusted.Store(true) }

// Remote is the peer's address.
func (s *Session) Remote() string { return s.conn.Remote() }
