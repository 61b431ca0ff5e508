package wire

import (
	"context"
	"errors"
	"net"
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
	// MessageBudget is how many bytes of messages may wait for a peer to read before Room says that
	// no more should be sent. A peer whose kernel takes them never comes near it.
	MessageBudget = 4 << 20
	// MessageLimit is how many may wait whoever sends them: then the peer is given up. Room makes
	// that never happen; this is the limit behind it.
	MessageLimit = 1 << 30
	// AnswerLimit is the same for everything else: answers and commands, which the peer itself may
	// cause without end. A peer that reads never comes near it.
	AnswerLimit = 64 << 20
	// StrangerLimit is the same for all that waits for a peer that has not logged in. As much may
	// be encoded already, which makes 64 KiB.
	StrangerLimit = 32 << 10
	// closeTimeout is how long a closed session may take to send what waits.
	closeTimeout = 5 * time.Second
	// closeLinger is how long it then waits for the peer to close, so that the last answer is
	// read and not torn away by a reset.
	closeLinger = 2 * time.Second
	// postingCredit is how many batches the reader may be ahead of the loop, the one that it reads
	// included.
	postingCredit = 5
	// alone is how many bytes of a large frame the loop looks at before more is read: it may hold the
	// peer then.
	alone = 1 << 20
	// calmCommands is how many commands a batch may have for the reader to run them itself. A
	// peer that sends more at a time gains more by being read meanwhile.
	calmCommands = 4
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
	// HelloTimeout bounds the wait for the peer's hello, and then, of a guarded session, for Trust;
	// 0 is 30 s.
	HelloTimeout time.Duration
	// Guarded keeps frames small, what waits unsent little and batches in lockstep with the loop
	// until Trust is called, so that a peer which has not logged in costs little. Without Trust
	// the session ends with ErrNoLogin in time, whatever the peer's hello says about inactivity.
	Guarded bool

	// Up is called when the hellos agreed, before anything is received.
	Up func(Peer)
	// Receive takes one command. A message above the frame limit comes as a *message.Oversized,
	// whose Cause is the *openwire.FrameTooBigError. The frame was read over; the session goes on,
	// unless an object cache could be out of step: then it closes after the answer.
	Receive func(message.Command)
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
	dirty    bool // is in the hub's list
	closed   bool
	finished bool // nothing more is given to send
	out      []item
	onRoom   []func() // told when there is room again

	mu      sync.Mutex
	waiting []item // handed over, not taken by the writer
	closing bool   // nothing more will be handed over
	ending  bool   // it was closed, and the hub waits for the writer
	through bool   // the writer has ended
	alive   bool   // a KeepAliveInfo is due
	cause   error  // the first reason of the end

	// Of the writer, or of the loop while it writes (transport.Writer sees to that):
	current []item
	next    int
	enc     *Encoder // nil before the hellos agreed: nothing is sent until then
	wallMS  int64
	apart   int // bytes of what fill gives that are not in its answer

	writer  *transport.Writer
	unsent  [2]atomic.Int64 // bytes that wait, by load
	written atomic.Uint64   // deliveries that are or were encoded; isCut ends it
	full    atomic.Bool     // Room said no since there was room
	login   *time.Timer     // ends a stranger; set before Up, nil when not guarded
	trusted atomic.Bool
	free    chan *batch
	looked  chan struct{} // the loop looked at a guarded batch
	done    chan struct{} // the reader ended
	gone    chan struct{} // the connection is closed; wakes a reader that is held
	cutting sync.Once
	down    sync.Once

	// Of the loop, as above:
	held          bool
	kept          []*batch // the reader's, while it is held
	cutDeliveries bool
	final         uint64 // what was written when deliveries were cut
}

// batch is what one read of the socket gave.
type batch struct {
	s        *Session
	cmds     []message.Command
	run      func()
	lockstep bool  // nothing more is read before the loop has looked at it
	loan     *loan // of a large frame in it; given back when the loop has seen it
}

// New makes a session of a connection, which is the session's from here on. Nothing happens before
// Start.
func New(cfg Config) *Session {
	if cfg.HelloTimeout <= 0 {
		cfg.HelloTimeout = transport.DefaultConnectionTimeout
	}
	cfg.Offer = cfg.Offer.as(cfg.Hub.run)
	s := &Session{
		cfg: cfg, conn: cfg.Conn, free: make(chan *batch, postingCredit),
		looked: make(chan struct{}, 1), done: make(chan struct{}), gone: make(chan struct{}),
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

// ErrNoLogin is the end of guarded sessions that were not trusted in time, or cost too much before.
var ErrNoLogin = errors.New("no login")

var (
	errFlushed  = errors.New("all is written")
	errLoopGone = message.Errorf(message.Unavailable, "the broker has ended")
)

// abandon ends a session whose goroutines never ran.
func (s *Session) abandon(err error) {
	s.writerEnded()
	s.cut()
	close(s.done)
	s.ended(err)
}

// Hold stops reading, until it is called with false, so that the peer has to wait. What was read
// already still comes, and one batch more. While it lasts a failed write tells that the peer is
// gone, or the monitor that its machine is.
func (s *Session) Hold(on bool) {
	if s.held == on || on && (s.closed || s.finished) {
		return
	}
	s.held = on
	s.conn.Hold(on)
	if on {
		s.keepFree()
		return
	}
	for _, b := range s.kept {
		s.free <- b
	}
	s.kept = nil
}

// keepFree leaves the reader of a session that is held nothing to read into but what it has.
func (s *Session) keepFree() {
	for {
		select {
		case b := <-s.free:
			s.kept = append(s.kept, b)
		default:
			return
		}
	}
}

// cut closes the connection and wakes its reader, from any goroutine.
func (s *Session) cut() {
	_ = s.conn.Close()
	s.cutting.Do(func() { close(s.gone) })
}

// fail ends the connection from any goroutine; the first reason counts.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = err
	}
	s.mu.Unlock()
	s.cut()
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
	if s.login != nil {
		s.login.Stop()
	}
	s.mu.Lock()
	if s.cause != nil {
		err = s.cause
	}
	s.mu.Unlock()
	s.cut()
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
	s.setEncoder(peer.Format)
	s.mu.Unlock()
	s.writer.Wake()
	if s.cfg.Guarded {
		s.login = time.AfterFunc(s.cfg.HelloTimeout, s.noLogin)
	}
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
	room := &s.cfg.Hub.frames
	from := &borrower{room: room, conn: s.conn, gone: s.gone, fail: s.fail}
	defer func() { room.giveBack(from.pass()) }()
	frames.SetRoom(from)
	trusted := false
	for {
		// It comes first: what is read must not wait for the loop, as others may wait for its room.
		var b *batch
		select {
		case b = <-s.free:
		case <-s.gone:
			return net.ErrClosed
		}
		if !trusted && s.trusted.Load() {
			trusted = true
			frames.SetLimit(s.cfg.Offer.FrameLimit)
		}
		fs, err := frames.ReadBatch()
		var big *openwire.FrameTooBigError
		if errors.As(err, &big) && trusted {
			err = s.skip(frames, d, big)
			if err == nil {
				s.free <- b
				continue
			}
		}
		if err != nil {
			return err
		}
		b.loan = from.pass()
		if err := s.post(d, b, fs, !trusted); err != nil {
			return err
		}
	}
}

// post decodes the frames and hands them to the loop; what came before a bad one is handed over.
func (s *Session) post(d *Decoder, b *batch, frames [][]byte, guarded bool) error {
	b.lockstep = guarded || b.loan != nil && b.loan.has >= alone
	lockstep := b.lockstep
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
		b.giveBack()
		s.free <- b
		return err
	}
	hand := s.cfg.Hub.loop.Post
	if len(b.cmds) <= calmCommands {
		hand = s.cfg.Hub.loop.Do
	}
	if !hand(b.run) {
		b.giveBack()
		return errLoopGone
	}
	if lockstep {
		select {
		case <-s.looked:
		case <-s.gone:
		}
	}
	return err
}

func (b *batch) giveBack() {
	b.s.cfg.Hub.frames.giveBack(b.loan)
	b.loan = nil
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
	b.giveBack()
	clear(b.cmds)
	if b.cmds = b.cmds[:0]; cap(b.cmds) > batchKept {
		b.cmds = nil
	}
	lockstep := b.lockstep
	if s.held {
		s.kept = append(s.kept, b)
	} else {
		s.free <- b
	}
	if lockstep {
		select {
		case s.looked <- struct{}{}:
		default: // the connection is gone, and nobody waits
		}
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
		s.cfg.Receive(&message.Oversized{Message: m, Cause: big})
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
func (s *Session) Trust() {
	s.trusted.Store(true)
	if s.login != nil {
		s.login.Stop()
	}
}

// noLogin ends a session that nobody came to trust.
func (s *Session) noLogin() {
	if !s.trusted.Load() {
		s.fail(message.Errorf(message.Unavailable, "%w within %v after the hello", ErrNoLogin,
			s.cfg.HelloTimeout))
	}
}

// Remote is the peer's address.
func (s *Session) Remote() string { return s.conn.Remote() }
