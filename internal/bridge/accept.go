package bridge

import (
	"slices"

	"hopwire/internal/message"
)

// Acceptor is the half of a duplex bridge at the broker that was called. It lives as long as the
// connection; the connector on the other side makes the next one.
type Acceptor struct {
	home   *Home
	key    string
	opts   Options
	bridge *Bridge
	count  *counters
	err    string
	// replaced is set when a new connection of the same connector has taken the place of this one.
	replaced bool
}

// Accept adopts a connection whose peer asked for a duplex bridge: info is the BrokerInfo that it
// sent, after its ConnectionInfo was let in. Our half starts at once. A live connection of the
// same connector and user is ended first; with one of another user this one is refused.
func (h *Home) Accept(l Link, hello Hello, info *message.BrokerInfo) (*Acceptor, error) {
	self := h.local.Info()
	if info.ID == "" || info.ID == self.ID {
		return nil, message.Errorf(message.Protocol,
			"duplex bridge from %s: its broker id %q is ours or none", hello.Remote, info.ID)
	}
	a := &Acceptor{home: h, count: newCounters()}
	a.opts = optionsOf(info.NetworkProperties)
	if err := a.opts.Validate(); err != nil {
		return nil, message.Errorf(message.Protocol, "duplex bridge from %s (%s): %w", info.Name,
			hello.Remote, err)
	}
	a.key = a.opts.Name + "@" + string(info.ID)
	for _, old := range slices.Clone(h.accepted) {
		if old.key != a.key {
			continue
		}
		if old.bridge.user() != hello.As.User {
			old.count.add(message.LoginRefused)
			return nil, message.Errorf(message.Denied, "duplex bridge from %s (%s): a link of"+
				" connector %s of this broker is there, of another user", info.Name, hello.Remote,
				a.opts.Name)
		}
		old.replaced = true
		old.bridge.fail(message.Unavailable, "a new connection took its place")
	}
	h.accepted = append(h.accepted, a)
	h.back(a.opts.Name, info.Name)
	b := newBridge(h, &a.opts, l, hello, a.count)
	a.bridge = b
	b.accepted, b.duplex = true, true
	b.as = &b.hello.As
	b.proven = true // an initiator lets its acceptor in without a look
	b.onEnd = a.ended
	b.onPhase = a.changed
	b.meet(*info)
	b.name(3)
	b.setUp()
	return a, nil
}

// Receive takes a command of the peer.
func (a *Acceptor) Receive(c message.Command) { a.bridge.Receive(c) }

// Down tells that the connection ended; nil for no known reason.
func (a *Acceptor) Down(err error) {
	if err == nil {
		a.bridge.fail(message.Unavailable, "the connection ended")
		return
	}
	a.bridge.end(err)
}

// Stop ends the half after at most 5 s of waiting for answers; done, which may be nil, follows.
func (a *Acceptor) Stop(done func()) {
	if done == nil {
		done = func() {}
	}
	a.bridge.stop(done)
}

func (a *Acceptor) ended(err error) {
	if err != nil {
		a.err = err.Error()
	}
	a.home.accepted = slices.DeleteFunc(a.home.accepted, func(x *Acceptor) bool { return x == a })
	a.replaced = a.replaced || slices.ContainsFunc(a.home.accepted, func(x *Acceptor) bool {
		return x.opts.Name == a.opts.Name && x.bridge.peer.Name == a.bridge.peer.Name
	})
	if a.state() == Gone {
		a.home.missed(a)
	}
	a.changed()
}

func (a *Acceptor) changed() {
	a.bridge.event(Event{Kind: StateChanged, State: a.state(), Text: a.err})
}

func (a *Acceptor) state() State {
	b := a.bridge
	switch {
	case b.phase == over && a.err != "" && !b.goodbye && !b.stopping && !a.replaced:
		return Gone
	case b.phase == over:
		return Stopped
	case b.stopping:
		return Stopping
	case b.phase == resolving:
		return Resolving
	case b.unseen != "":
		return Degraded
	}
	return Running
}

// Status tells how the half stands.
func (a *Acceptor) Status() Status {
	s := Status{Name: a.opts.Name, URI: a.bridge.hello.Remote, State: a.state(), Error: a.err,
		Since: a.bridge.began}
	a.bridge.fill(&s)
	a.count.fill(&s)
	return s
}

// Explain gives the reason why messages of d have no way over this half; "" when they have.
func (a *Acceptor) Explain(d message.Destination) message.Reason {
	if a.bridge.phase == over {
		return message.BridgeDown
	}
	return a.bridge.explain(d)
}

// Accepted gives the live accepting halves, the oldest first.
func (h *Home) Accepted() []*Acceptor { return slices.Clone(h.accepted) }
