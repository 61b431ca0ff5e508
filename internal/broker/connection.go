package broker

import (
	"slices"
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Outbox takes what goes out to one connection. It is called on the loop and never blocks; what it
// is given is flushed at the end of the turn.
type Outbox interface {
	// Room reports whether more messages should be delivered: not when much waits for the peer to
	// read. The function given to OnRoom is called when there is room again.
	Room() bool
	OnRoom(f func())
	// Deliver dispatches a message to a consumer; Written is how many such are on their way.
	Deliver(c message.ConsumerID, d message.Destination, m *message.Message, redelivery int32)
	Written() uint64
	// Cut ends deliveries: those that are not on their way yet never will be, so that Written is
	// true from here on. What else waits is still sent.
	Cut()
	// Respond answers the command with that id, without data.
	Respond(correlation int32)
	// Send sends any other command.
	Send(c message.Command)
	// Finish lets the peer read the end after what waits was sent: nothing more is. Commands that
	// were on their way still come, for a few seconds, until the peer closes in turn and the
	// connection is Gone. It may be called more than once.
	Finish()
	// Close ends the connection after what waits was sent; why is logged.
	Close(why string)
}

// Remote says where a connection comes from.
type Remote struct {
	Address      string
	Connector    string // name of the transport connector
	HopwireLevel int    // of a peer broker; 0 for clients and ActiveMQ
	LinkStealing bool   // allowLinkStealing: it ends a connection of its client id
}

// host is the address without its port.
func (r Remote) host() string {
	if i := strings.LastIndexByte(r.Address, ':'); i > 0 {
		return r.Address[:i]
	}
	return r.Address
}

// Connection is one client's or peer's connection: its sessions, consumers, producers and
// transactions.
type Connection struct {
	b      *Broker
	out    Outbox
	remote Remote

	id        message.ConnectionID
	clientID  string
	info      *message.ConnectionInfo
	principal message.Principal
	rights    *rights
	opened    bool
	closed    bool
	seen      int64 // what its RemoveInfo says that the application saw last

	sessions     map[message.SessionID]bool
	consumers    map[message.ConsumerID]*consumer
	order        []*consumer
	producers    map[message.ProducerID]*producer
	transactions map[message.TransactionID]*transaction
	following    following
	branches     map[*transaction]bool // XA ones that it began, joined or prepared
	temps        []*destination

	network bool // a peer broker's bridge
	peer    network.Peer
	// connector is what the peer calls its networkConnector; "" when it does not say.
	connector string
	duplex    func(info *message.BrokerInfo)
	mirror    *message.BrokerInfo // a duplex peer's introduction
	barred    error               // why it may not log in

	received int64         // messages of a peer's bridge
	since    time.Duration // when it was let in; monotonic

	given uint64 // deliveries

	last *producer // of the last message: producers send in runs

	parkedBytes int64 // of sends that wait for space
	held        bool  // nothing is read

	active time.Duration // when it was last heard of; monotonic

	finished bool // by a stop: nothing that wants an answer is done
}

// Connect begins a connection. duplex is called when the peer asks for a bridge in the other
// direction over the same connection; nil refuses that.
func (b *Broker) Connect(out Outbox, r Remote, duplex func(*message.BrokerInfo)) *Connection {
	b.counts.Connections++
	c := &Connection{b: b, out: out, remote: r, duplex: duplex,
		seen:         message.LastDeliveredUnknown,
		sessions:     map[message.SessionID]bool{},
		consumers:    map[message.ConsumerID]*consumer{},
		producers:    map[message.ProducerID]*producer{},
		transactions: map[message.TransactionID]*transaction{},
	}
	out.OnRoom(c.roomy)
	return c
}

// deliver dispatches a message to a consumer.
func (c *Connection) deliver(s *consumer, d message.Destination, m *message.Message,
	redelivery int32) {
	c.given++
	c.out.Deliver(s.info.ID, d, m, redelivery)
}

// roomy goes on with what waited for the peer to read.
func (c *Connection) roomy() {
	for _, s := range slices.Clone(c.order) {
		switch {
		case s.ended:
		case s.browse != nil:
			s.browse.walk()
		default:
			s.ready()
			s.drainBacklog()
		}
	}
}

// Greeting is what the broker says first on every connection.
func (b *Broker) Greeting() *message.BrokerInfo {
	info := b.Info()
	return &info
}

// Handle executes one command of the connection and answers it if it asks for that. One that is
// finished takes only what ends something: what cannot be answered is not done.
func (c *Connection) Handle(cmd message.Command) {
	if c.closed {
		return
	}
	c.active = c.b.beat
	c.follow(cmd)
	if c.b.stopping() {
		if (c.finished || !c.opened) && !ends(cmd) {
			c.refuseLate(cmd)
			return
		}
		c.active = c.b.env.Mono()
	}
	switch cmd := cmd.(type) {
	case *message.Message:
		c.send(cmd)
		return
	case *message.Oversized:
		c.oversized(cmd)
		return
	case *message.MessageAck:
		c.acknowledge(cmd)
		return
	case *message.TransactionInfo:
		c.transact(cmd)
		return
	case *message.RemoveInfo:
		c.answer(cmd, c.remove(cmd))
		if id, ok := cmd.Object.(message.ConnectionID); ok && id == c.id {
			c.release()
		}
		return
	case *message.ShutdownInfo:
		c.clientLeft()
		c.close("")
		return
	}
	c.handleInfo(cmd)
}

// handleInfo executes the commands that open, close and steer.
func (c *Connection) handleInfo(cmd message.Command) {
	var err error
	switch cmd := cmd.(type) {
	case *message.ConnectionInfo:
		c.open(cmd)
		return
	case *message.SessionInfo:
		if err = c.mustBe(cmd.ID.Connection); err == nil {
			c.sessions[cmd.ID] = true
		}
	case *message.ProducerInfo:
		err = c.addProducer(cmd)
	case *message.ConsumerInfo:
		c.addConsumer(cmd)
		return
	case *message.DestinationInfo:
		err = c.destination(cmd)
	case *message.RemoveSubscriptionInfo:
		c.unsubscribe(cmd)
		return
	case *message.MessagePull:
		err = c.pull(cmd)
	case *message.ConsumerControl:
		c.control(cmd)
	case *message.BrokerInfo:
		err = c.introduce(cmd)
	case *message.BrokerSubscriptionInfo:
		// Durable subscriptions of a peer: none can match ours.
	case *message.ControlCommand:
		c.talk(cmd)
	case *message.KeepAliveInfo:
		if cmd.ResponseRequired {
			c.out.Send(&message.KeepAliveInfo{})
		}
		return
	}
	c.answer(cmd, err)
}

// answer responds to a command: to one that asked always, to others only with an error.
func (c *Connection) answer(cmd message.Command, err error) {
	h := cmd.Head()
	switch {
	case err == nil && h.ResponseRequired:
		c.out.Respond(h.CommandID)
	case err != nil:
		c.refuse(h, err)
	}
}

// refuse reports an error, as an answer if one is asked for.
func (c *Connection) refuse(h *message.Header, err error) {
	t := message.Exception(err)
	if h.ResponseRequired {
		c.out.Send(&message.Response{Correlation: h.CommandID, Exception: t})
		return
	}
	c.out.Send(&message.ConnectionError{Exception: t})
}

func (c *Connection) mustBe(id message.ConnectionID) error {
	if !c.opened || id != c.id {
		return message.Errorf(message.IllegalState,
			"Cannot use connection %s: it had not been registered", id)
	}
	return nil
}

func (c *Connection) mustHave(s message.SessionID) error {
	if err := c.mustBe(s.Connection); err != nil {
		return err
	}
	if !c.sessions[s] {
		return message.Errorf(message.IllegalState,
			"Cannot use session %s: it had not been registered", s)
	}
	return nil
}

// remove closes what a RemoveInfo names.
func (c *Connection) remove(cmd *message.RemoveInfo) error {
	switch id := cmd.Object.(type) {
	case message.ConsumerID:
		if s := c.consumers[id]; s != nil {
			s.end(cmd.LastDelivered)
		}
	case message.ProducerID:
		p := c.producers[id]
		if p == nil {
			return message.Errorf(message.IllegalState,
				"Cannot remove a producer that had not been registered: %s", id)
		}
		p.leave()
		c.endProducer(p)
	case message.SessionID:
		c.endSession(id, cmd.LastDelivered)
	case message.ConnectionID:
		if err := c.mustBe(id); err != nil {
			return err
		}
		c.seen = cmd.LastDelivered
		c.clientLeft()
	}
	return nil
}

func (c *Connection) endSession(id message.SessionID, last int64) {
	for _, s := range append([]*consumer(nil), c.order...) {
		if s.info.ID.SessionID() == id {
			s.end(last)
		}
	}
	for _, p := range sortedProducers(c.producers) {
		if p.info.ID.SessionID() == id {
			p.left = true
			c.endProducer(p)
		}
	}
	c.releaseAll(func(p message.ProducerID) bool { return p.SessionID() == id })
	delete(c.sessions, id)
}

// release gives back everything the connection holds; it may be opened again.
func (c *Connection) release() {
	if !c.opened {
		return
	}
	for _, tx := range c.openTransactions() {
		tx.by = c
		tx.rollback()
	}
	c.leaveBranches()
	for _, s := range append([]*consumer(nil), c.order...) {
		s.end(c.seen)
	}
	c.seen = message.LastDeliveredUnknown
	for _, p := range sortedProducers(c.producers) {
		c.endProducer(p)
	}
	for len(c.temps) > 0 {
		c.disown(c.temps[0])
	}
	clear(c.sessions)
	c.opened = false
	b := c.b
	delete(b.connections, c.id)
	drop(&b.connOrder, c)
	if b.clientIDs[c.clientID] == c {
		delete(b.clientIDs, c.clientID)
	}
	b.adviseConnectionGone(c)
	b.tell(Event{Kind: ConnectionClosed, Text: c.remote.Address + " as " + c.clientID})
	c.tellOfBridge(BridgeLeft)
}

// close ends the connection from this side; why is "" when the client asked for it.
func (c *Connection) close(why string) {
	if c.closed {
		return
	}
	if why != "" { // else the client took its leave: what it sent before is to arrive
		c.dropParked()
	}
	c.out.Cut()
	c.release()
	c.closed = true
	c.pace()
	c.out.Close(why)
}

// Principal is who the peer was let in as.
func (c *Connection) Principal() message.Principal { return c.principal }

// Opened reports whether the peer was let in.
func (c *Connection) Opened() bool { return c.opened }

// Gone tells that the connection's socket is gone.
func (c *Connection) Gone() {
	if !c.closed {
		if c.opened {
			c.dropParked()
		}
		c.out.Cut()
		c.goesAway()
		c.release()
		c.closed = true
		c.pace()
	}
}

// destination executes a DestinationInfo.
func (c *Connection) destination(info *message.DestinationInfo) error {
	if err := c.mustBe(c.id); err != nil {
		return err
	}
	if err := testName(info.Destination); err != nil {
		return err
	}
	if info.Destination.IsComposite() {
		return message.Errorf(message.InvalidDestination,
			"%s is several destinations: name one at a time", info.Destination)
	}
	switch info.Op {
	case message.AddDestination:
		if info.Destination.IsAdvisory() {
			return nil // these are there always
		}
		if c.b.dests[info.Destination] == nil {
			if err := c.rights.allow(making, info.Destination); err != nil {
				return err
			}
		}
		d := c.b.destination(info.Destination)
		if info.Destination.IsTemp() {
			c.own(d)
		}
		return nil
	case message.RemoveDestination:
		if err := c.rights.allow(removing, info.Destination); err != nil {
			return err
		}
		d := c.b.find(info.Destination)
		if d == nil {
			return nil
		}
		return c.b.removeDestination(d, info.Timeout > 0 && !d.name.IsTemp())
	}
	return message.Errorf(message.Protocol, "unknown destination operation %d", info.Op)
}
