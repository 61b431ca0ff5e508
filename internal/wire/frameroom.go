package wire

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/transport"
)

const (
	// slowLook is how often, while frames wait for room, those that hold some are looked at.
	slowLook = 10 * time.Second
	// slowBytes is what must come of such a frame from one look to the next, at least; of one that
	// holds much slowPart of that: who waits for it waits some minutes, however large it is.
	slowBytes = 256 << 10
	slowPart  = 30
	// sideFrame is up to what size a frame gets its memory beside the line, from a sidePart of the
	// limit.
	sideFrame = 1 << 20
	sidePart  = 4
)

// frameRoom bounds the memory of large frames that the loop has not seen: what it takes of them is
// accounted by the broker. It is given as the bytes of a frame arrive, first come, first served.
// Since each could hold a part and wait for the rest, one frame at a time gets all that it asks
// for, whatever the limit: used <= limit + one frame. Frames that are not so large need not wait
// for those that are: they have some memory beside.
//
// While others wait for what it holds a frame must arrive at some pace, or its connection ends: who
// sends a byte a minute would hold the room for ever.
type frameRoom struct {
	mu      sync.Mutex
	limit   int64 // of used; 0: none
	used    int64 // by frames in line
	side    int64 // by frames up to sideFrame, beside the line
	reading map[*loan]bool
	waiting []*loan
	first   *loan // gets what it asks for
	looks   *time.Timer
	waits   int64 // frames that ever waited
	slow    int64 // connections that were ended
}

// loan is what one frame has of the room.
type loan struct {
	size      int64 // of the whole frame
	has, want int64
	side      int64 // of has, what is beside the line
	seen      int64 // bytes that had come at the last look; -1 before the first
	waited    bool
	turn      chan struct{} // closed when it has what it waits for
	came      atomic.Int64
	fail      func(error)
}

// Frames tells of large frames that are being read.
type Frames struct {
	Bytes      int64 // memory that they take
	LimitBytes int64 // above which they wait; 0 is none
	Waiting    int   // connections that are not read until there is room
	Waited     int64 // frames that ever waited
	Slow       int64 // connections that ended since others waited for what they held
}

// LimitFrames bounds the memory of large frames that are being read, in bytes; 0 is no limit. It is
// called before there are sessions.
func (h *Hub) LimitFrames(n int64) { h.frames.limit = n }

// Frames tells of the large frames that are being read. It may be called from any goroutine.
func (h *Hub) Frames() Frames {
	r := &h.frames
	r.mu.Lock()
	defer r.mu.Unlock()
	return Frames{Bytes: r.used + r.side, LimitBytes: r.limit, Waiting: len(r.waiting),
		Waited: r.waits, Slow: r.slow}
}

// ask gives n bytes to the loan of a frame, or has it wait in line; then the channel is closed
// later.
func (r *frameRoom) ask(l *loan, n, size int64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading == nil {
		r.reading = map[*loan]bool{}
	}
	r.reading[l] = true
	l.want, l.size = n, size
	if r.grantBeside(l) {
		return nil
	}
	if l == r.first || len(r.waiting) == 0 && r.fits(l) {
		r.grant(l)
		return nil
	}
	turn := make(chan struct{})
	l.turn = turn
	r.waiting = append(r.waiting, l)
	if r.advance(); l.turn != nil && !l.waited {
		l.waited = true
		r.waits++
	}
	return turn
}

func (r *frameRoom) fits(l *loan) bool { return r.limit == 0 || r.used+l.want <= r.limit }

func (r *frameRoom) grant(l *loan) {
	r.used += l.want
	l.give()
}

// small reports whether a loan may get what it wants beside the line, once there is room.
func (r *frameRoom) small(l *loan) bool {
	return l.size <= sideFrame && l.want <= r.limit/sidePart
}

// grantBeside gives a loan what it wants beside the line, if there is room.
func (r *frameRoom) grantBeside(l *loan) bool {
	if !r.small(l) || r.side+l.want > r.limit/sidePart {
		return false
	}
	r.side += l.want
	l.side += l.want
	l.give()
	return true
}

// give tells the loan that it has what it wants.
func (l *loan) give() {
	l.has += l.want
	l.want, l.seen = 0, -1
	if l.turn != nil {
		close(l.turn)
		l.turn = nil
	}
}

// advance lets those go on that there is room for beside the line, and in line, and one more.
func (r *frameRoom) advance() {
	r.waiting = slices.DeleteFunc(r.waiting, r.grantBeside)
	for len(r.waiting) > 0 {
		l := r.waiting[0]
		if !r.fits(l) {
			if r.first != nil {
				break
			}
			r.first = l
		}
		r.waiting = slices.Delete(r.waiting, 0, 1)
		r.grant(l)
	}
	switch {
	case len(r.waiting) == 0 && r.looks != nil:
		r.looks.Stop()
		r.looks = nil
		for l := range r.reading {
			l.seen = -1
		}
	case len(r.waiting) > 0 && r.looks == nil:
		r.looks = time.AfterFunc(slowLook, r.look)
	}
}

// look ends the connections of frames that others wait for and that hardly arrive. What a frame has
// beside the line is no use to those that only the line has room for.
func (r *frameRoom) look() {
	var slow []func()
	r.mu.Lock()
	if r.looks != nil {
		r.looks.Reset(slowLook)
		besideToo := slices.ContainsFunc(r.waiting, r.small)
		for l := range r.reading {
			came, least := l.came.Load(), max(slowBytes, l.has/slowPart)
			waitedFor := l.has > l.side || besideToo
			if waitedFor && l.want == 0 && l.seen >= 0 && came-l.seen < least {
				slow = append(slow, func() {
					l.fail(message.Errorf(message.Limit, "%s: of a large frame %d bytes came, less than"+
						" %d in the last %v, and others wait for its memory", message.FrameSlow, came, least,
						slowLook))
				})
				r.slow++
				delete(r.reading, l) // once is enough
			}
			l.seen = came
		}
	}
	r.mu.Unlock()
	for _, end := range slow {
		end()
	}
}

// arrived says that the whole frame is there.
func (r *frameRoom) arrived(l *loan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, l)
}

// giveBack ends a loan.
func (r *frameRoom) giveBack(l *loan) {
	if l == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, l)
	if i := slices.Index(r.waiting, l); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
	r.used -= l.has - l.side
	r.side -= l.side
	l.has, l.side = 0, 0
	if r.first == l {
		r.first = nil
	}
	r.advance()
}

// borrower is the reader of one session, as its FrameReader sees it.
type borrower struct {
	room *frameRoom
	conn *transport.Conn
	gone <-chan struct{}
	fail func(error)
	loan *loan // of the frame that is being read, or was; nil when none is large
}

// Take implements openwire.FrameRoom. While it waits the peer has to.
func (b *borrower) Take(n, size int) error {
	if b.loan == nil {
		b.loan = &loan{seen: -1, fail: b.fail}
	}
	turn := b.room.ask(b.loan, int64(n), int64(size))
	if turn == nil {
		return nil
	}
	b.conn.Hold(true)
	defer b.conn.Hold(false)
	select {
	case <-turn:
		return nil
	case <-b.gone:
		return net.ErrClosed
	}
}

// Came implements openwire.FrameRoom.
func (b *borrower) Came(n int) { b.loan.came.Add(int64(n)) }

// pass gives the loan of the frames that were read to who has them now.
func (b *borrower) pass() *loan {
	l := b.loan
	if b.loan = nil; l != nil {
		b.room.arrived(l)
	}
	return l
}
