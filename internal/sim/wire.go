package sim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"hopwire/internal/message"
)

// cable is what is between two brokers, or a client and a broker: all their sockets fail together.
type cable struct {
	w       *World
	a, b    string
	sockets []*socket
	cut     bool
	clogged [2]bool // from a, from b
	held    [2][]packet
}

// socket is one connection over a cable.
type socket struct {
	cable *cable
	stall time.Duration // nothing arrives before
	ends  [2]*end       // who called, who was called
}

// end is one side of a socket.
type end struct {
	socket  *socket
	side    int
	name    string
	env     *env                  // whose loop hears; nil for a client, who hears at once
	does    map[int32]func(*life) // of a client: what a command means once it is executed
	recv    func(message.Command)
	down    func(error)
	closed  bool // closed here, or heard that it ended
	ended   bool // said that nothing more comes, and still hears
	severed bool // what is sent gets lost
	last    time.Duration
	flying  int  // messages sent and not arrived
	full    bool // it was asked for room, and had none
	onRoom  []func()
}

// room reports whether more messages should be sent.
func (e *end) room() bool {
	most := e.socket.cable.w.opt.Flying
	e.full = e.full || most > 0 && e.flying >= most
	return !e.full
}

// landed tells that a message of this end arrived.
func (e *end) landed() {
	e.flying--
	if !e.full || e.flying > e.socket.cable.w.opt.Flying/2 || e.closed {
		return
	}
	e.full = false
	e.env.post(func() {
		for _, f := range e.onRoom {
			f()
		}
	})
}

// isMessage reports whether a command carries a message.
func isMessage(c message.Command) bool {
	switch c := c.(type) {
	case *message.Message:
		return true
	case *message.MessageDispatch:
		return c.Message != nil
	}
	return false
}

// packet is a command on its way; none is the end of the connection.
type packet struct {
	from *end
	cmd  message.Command
}

var errEnded = errors.New("the connection ended")

func (w *World) cable(a, b string) *cable {
	for _, c := range w.cables {
		if c.a == a && c.b == b || c.a == b && c.b == a {
			return c
		}
	}
	c := &cable{w: w, a: a, b: b}
	w.cables = append(w.cables, c)
	return c
}

// connect makes a socket; both ends still need their functions.
func (c *cable) connect(caller, called string) *socket {
	s := &socket{cable: c}
	s.ends[0] = &end{socket: s, side: 0, name: caller}
	s.ends[1] = &end{socket: s, side: 1, name: called}
	c.sockets = append(c.sockets, s)
	return s
}

func (e *end) other() *end { return e.socket.ends[1-e.side] }

func (c *cable) direction(from string) int {
	if from == c.a {
		return 0
	}
	return 1
}

// send puts a command on its way. Commands of one end arrive in order.
func (e *end) send(cmd message.Command) {
	if e.closed || e.ended {
		return
	}
	if isMessage(cmd) {
		e.flying++
	}
	e.put(packet{e, duplicate(cmd)})
}

func (e *end) put(p packet) {
	w := e.socket.cable.w
	at := max(e.last, w.now+w.opt.Latency+w.within(w.opt.Jitter))
	e.last = at
	w.After(at-w.now, func() { e.socket.cable.arrive(p) })
}

func (c *cable) arrive(p packet) {
	if wait := p.from.socket.stall - c.w.now; wait > 0 {
		c.w.After(wait, func() { c.arrive(p) })
		return
	}
	dir := c.direction(p.from.name)
	if c.clogged[dir] {
		c.held[dir] = append(c.held[dir], p)
		return
	}
	c.deliver(p)
}

func (c *cable) deliver(p packet) {
	to := p.from.other()
	if p.from.severed || to.closed {
		return
	}
	if p.cmd == nil {
		to.hangUp(errEnded)
		return
	}
	if m, ok := p.cmd.(*message.Message); ok && c.w.opt.Trace != nil &&
		!m.Destination.IsAdvisory() {
		c.w.trace("%s->%s: %s %s path=%v", p.from.name, to.name, m.Destination, m.ID, m.BrokerPath)
	}
	if isMessage(p.cmd) {
		p.from.landed()
	}
	if c.w.tap != nil {
		c.w.tap(p.from.name, to.name, p.cmd)
	}
	if to.env == nil {
		to.recv(p.cmd)
		return
	}
	to.env.post(func() {
		if !to.closed {
			to.recv(p.cmd)
		}
	})
}

// close ends the connection from this side: the other hears it behind what was sent before.
func (e *end) close() {
	if e.closed {
		return
	}
	e.closed = true
	if !e.ended {
		e.put(packet{from: e})
	}
	e.socket.forget()
}

// finish tells the other side that nothing more comes; it closes then, behind what it sent before.
func (e *end) finish() {
	if !e.closed && !e.ended {
		e.ended = true
		e.put(packet{from: e})
	}
}

// hangUp tells this side that the connection ended.
func (e *end) hangUp(err error) {
	end := func() {
		if e.closed {
			return
		}
		if e.other().ended {
			e.put(packet{from: e})
		}
		e.closed = true
		e.socket.forget()
		e.down(err)
	}
	if e.env == nil {
		end()
		return
	}
	e.env.post(end) // behind the commands that came before
}

// gone reports whether the connection is over, noticed or not.
func (e *end) gone() bool { return e.severed || e.other().closed || e.other().severed }

// forget takes a socket off its cable once both ends are closed.
func (s *socket) forget() {
	if s.ends[0].closed && s.ends[1].closed {
		s.cable.sockets = slices.DeleteFunc(s.cable.sockets,
			func(x *socket) bool { return x == s })
	}
}

// sever loses everything on its way; each side notices at some time within detect.
func (s *socket) sever(detect time.Duration) {
	w := s.cable.w
	for _, e := range s.ends {
		if e.severed {
			continue
		}
		e.severed = true
		w.After(w.within(detect), func() { e.hangUp(errors.New("connection reset")) })
	}
}

// Cut breaks the cable between two brokers until Heal. What is on its way is lost; each side
// notices within detect, and until then talks to nobody.
func (w *World) Cut(a, b string, detect time.Duration) {
	c := w.cable(a, b)
	c.cut = true
	w.trace("cut %s-%s, noticed within %v", a, b, detect)
	for _, s := range slices.Clone(c.sockets) {
		s.sever(detect)
	}
}

// Reset breaks all connections between two brokers; new ones are possible at once.
func (w *World) Reset(a, b string, detect time.Duration) {
	w.trace("reset %s-%s, noticed within %v", a, b, detect)
	for _, s := range slices.Clone(w.cable(a, b).sockets) {
		s.sever(detect)
	}
}

// Linger makes one side give up the connections between two brokers while what it sent is still on
// its way: it arrives, up to d later, where the connection is not known to be over.
func (w *World) Linger(a, b string, d time.Duration) {
	w.trace("%s gives up its connections to %s, what it sent lingers for %v", a, b, d)
	for _, s := range slices.Clone(w.cable(a, b).sockets) {
		s.stall = w.now + d
		for _, e := range s.ends {
			if e.name == a && !e.closed {
				e.put(packet{from: e})
				e.hangUp(errors.New("no sign of life"))
			}
		}
	}
}

// Stall holds back, for a while, all that goes over the connections that one broker made to
// another.
func (w *World) Stall(caller, called string, d time.Duration) {
	w.trace("%s->%s stalls for %v", caller, called, d)
	for _, s := range w.cable(caller, called).sockets {
		if s.ends[0].name == caller {
			s.stall = w.now + d
		}
	}
}

// Clog holds back what goes from one broker to another until Heal, and loses nothing.
func (w *World) Clog(from, to string) {
	c := w.cable(from, to)
	c.clogged[c.direction(from)] = true
	w.trace("clog %s->%s", from, to)
}

// Heal ends cuts and clogs between two brokers.
func (w *World) Heal(a, b string) {
	c := w.cable(a, b)
	w.trace("heal %s-%s", a, b)
	c.cut, c.clogged = false, [2]bool{}
	for dir := range c.held {
		held := c.held[dir]
		c.held[dir] = nil
		for _, p := range held {
			c.deliver(p)
		}
	}
}

// duplicate gives a command of its own to whoever receives it, as a wire does.
func duplicate(c message.Command) message.Command {
	switch c := c.(type) {
	case *message.Message:
		return c.Clone()
	case *message.MessageDispatch:
		d := *c
		if d.Message != nil {
			d.Message = d.Message.Clone()
		}
		return &d
	case *message.Response:
		d := *c
		return &d
	}
	v := reflect.ValueOf(c)
	d := reflect.New(v.Type().Elem())
	d.Elem().Set(v.Elem())
	return d.Interface().(message.Command)
}

// down tells why no connection can be made now; "" when it can.
func (c *cable) refuses() error {
	if c.cut || c.clogged[0] || c.clogged[1] {
		return fmt.Errorf("no answer from the other side of %s-%s", c.a, c.b)
	}
	return nil
}
