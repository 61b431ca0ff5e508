package bridge

import (
	"fmt"
	"strings"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Bounds of waits.
const (
	infoTimeout  = 30 * time.Second // for the peer's BrokerInfo
	doubtTimeout = 30 * time.Second // for one answer about copies in doubt
	drainTimeout = 30 * time.Second // for answers after the last remote consumer left
	stopTimeout  = 5 * time.Second  // for answers at a clean stop
	silentAfter  = 30 * time.Second // without an answer a peer is called silent
	silenceTold  = 3 * time.Second  // without an answer it is told how long
	tick         = time.Second      // idle advisory acks, retries
)

// phase is where a link stands.
type phase uint8

const (
	awaitingInfo phase = iota
	resolving
	running
	over
)

// pending is a copy that was handed to the link and is not answered.
type pending struct {
	demand *demand
	ref    message.CopyRef
	msg    *message.Message // as it was at home
}

// Bridge is one link to a peer: the demand the peer has told, what is forwarded for it, and, on
// duplex links, the reverse direction.
type Bridge struct {
	home     *Home
	opts     *Options
	link     Link
	hello    Hello
	self     message.BrokerInfo
	peer     message.BrokerInfo
	uri      string // that led here; "" for an accepted one
	accepted bool   // the peer made the connection (duplex)
	duplex   bool
	phase    phase
	stopping bool
	goodbye  bool    // the peer said that it shuts down
	proven   bool    // the peer acted on our login, so that a complaint is about something else
	closing  *demand // the home broker closes this one itself
	began    time.Duration
	as       *message.Principal // at home
	count    *counters
	onEnd    func(err error)
	onPhase  func()

	table    *table
	pending  map[int32]pending
	parked   parking
	unfit    unfit
	dirty    []*demand // with settlements that wait for a flush
	flushing bool
	heard    time.Duration // the last answer, or the first copy after a time without any
	lastID   int32

	local, inbound, remote message.ConnectionID
	mirrored               message.ConnectionID // the peer's, over a duplex link of ours
	consumers              int64                // last number given to a consumer
	advisories             advisories
	denial                 denial
	probe                  probe
	unseen                 string // why demand may be unseen; "" when the signal works
	ping                   ping
	doubts                 asking
	wait                   loop.Timer // bounds the phase
	ticker                 loop.Timer
	stopped                []func()
}

func newBridge(h *Home, o *Options, l Link, hello Hello, count *counters) *Bridge {
	b := &Bridge{home: h, opts: o, link: l, hello: hello, count: count, duplex: o.Duplex,
		self: h.local.Info(), pending: map[int32]pending{}, parked: parking{},
		unfit: unfit{}, as: o.As,
		began: h.env.Mono()}
	l.OnRoom(b.roomy)
	b.table = newTable(o, b.self.ID, "", h.selectors)
	b.onEnd, b.onPhase = func(error) {}, func() {}
	return b
}

// await waits for the peer's BrokerInfo.
func (b *Bridge) await() {
	b.phase = awaitingInfo
	b.bound(infoTimeout, "the peer sent no BrokerInfo")
}

// bound ends the link when the phase takes longer than d.
func (b *Bridge) bound(d time.Duration, what string) {
	b.unbound()
	b.wait = b.home.env.After(d, func() {
		b.wait = nil
		b.fail(message.Unavailable, "%s within %v; is it busy or no broker?", what, d)
	})
}

func (b *Bridge) unbound() {
	if b.wait != nil {
		b.wait.Stop()
		b.wait = nil
	}
}

func (b *Bridge) fail(kind message.ErrorKind, format string, args ...any) {
	b.end(message.Errorf(kind, "bridge %s to %s: "+format,
		append([]any{b.opts.Name, b.peerText()}, args...)...))
}

func (b *Bridge) peerText() string {
	if b.peer.Name != "" {
		return b.peer.Name + " (" + b.hello.Remote + ")"
	}
	return b.hello.Remote
}

// Receive takes a command of the peer.
func (b *Bridge) Receive(c message.Command) {
	if b.phase == over {
		return
	}
	if info, ok := c.(*message.BrokerInfo); ok {
		if b.phase == awaitingInfo {
			b.introduced(info)
		}
		return
	}
	switch c := c.(type) {
	case *message.KeepAliveInfo:
		b.ping.back() // those that ask for an answer get it from the link
	case *message.ShutdownInfo:
		b.goodbye = true
		b.fail(message.Unavailable, "the peer shut down")
	case *message.ConnectionError:
		b.connectionError(c)
	case *message.ConnectionControl:
		// A peer that rebalances its clients; bridges stay where they are.
	default:
		if b.phase == awaitingInfo {
			b.fail(message.Protocol, "%T came before BrokerInfo", c)
			return
		}
		b.receive(c)
	}
}

func (b *Bridge) receive(c message.Command) {
	switch c := c.(type) {
	case *message.Response:
		b.answered(c)
	case *message.MessageDispatch:
		if c.Message != nil {
			b.dispatched(c)
		}
	case *message.ControlCommand:
		b.talk(c.Command)
	case *message.ConsumerControl:
		b.aborted(c)
	case *message.Message:
		b.arrived(c)
	case *message.Oversized:
		b.oversized(c)
	case *message.ConnectionInfo:
		b.mirrored = c.ID
		if b.hello.HopwireLevel > 0 {
			b.prove() // its half begins when ours was let in; an ActiveMQ peer's does at once
		}
	case *message.ConsumerInfo:
		if b.duplex {
			b.demanded(b.table.addDirect(c), c.ID)
		}
	case *message.RemoveInfo:
		if id, ok := c.Object.(message.ConsumerID); ok && b.duplex {
			b.removed(b.table.remove(id))
		}
	}
}

// connectionError is the peer's answer to a command that asked for none. Before the peer acted on
// our login it is about that, or the link as a whole: until then no message is sent without asking
// an answer, and a peer that did not let us in took none. Later it is about one command: a link
// that ended for it would meet it again at once. A peer that does not let us read its advisories
// leaves the static list.
func (b *Bridge) connectionError(c *message.ConnectionError) {
	x := c.Exception
	if x == nil {
		x = &message.Throwable{Message: "no reason given"}
	}
	text := x.Error()
	switch {
	case b.phase == awaitingInfo:
		b.fail(kindOf(x), "the peer refused the connection: %s%s", text, b.opts.loginCure(x))
	case strings.Contains(x.Class, "InvalidClientID") && b.proven:
		b.fail(kindOf(x), "the peer ended the link: %s", text)
	case aboutAdvisories(text):
		b.mayNotRead(text)
	case !b.proven:
		b.takeBack(func(pending) network.Settlement { return network.Returned })
		b.fail(kindOf(x), "the peer refused this bridge's login: %s%s", text, b.opts.loginCure(x))
	default:
		reason := unsendable(x)
		switch {
		case missing(x):
			reason = message.NoConsumer
		case reason == "":
			reason = reasonOf(x)
		}
		b.count.add(reason)
		b.event(Event{Kind: ForwardRefused, Reason: reason,
			Text: "the peer refused a command that asked for no answer; if it was a message " +
				"(alwaysSyncSend=false), that is lost: " + text})
	}
}

// kindOf is the kind of a peer's refusal of the whole link.
func kindOf(x *message.Throwable) message.ErrorKind {
	if strings.Contains(x.Class, "Security") {
		return message.Denied
	}
	return message.Unavailable
}

// introduced is the initiator's turn: it knows the peer now and sets up its side.
func (b *Bridge) introduced(info *message.BrokerInfo) {
	b.unbound()
	if info.ID == "" {
		b.fail(message.Protocol, "the peer's BrokerInfo has no id")
		return
	}
	b.meet(*info)
	if info.ID == b.self.ID {
		b.count.add(message.SelfConnect)
		b.end(selfConnect(b.opts.Name, b.hello.Remote))
		return
	}
	if info.Name == b.self.Name {
		b.count.add(message.SameName)
		b.event(Event{Kind: SameName, Reason: message.SameName, Text: "the broker at " +
			b.hello.Remote + " (" + string(info.ID) + ") is called " + info.Name + " as this one (" +
			string(b.self.ID) + "); give each broker of a network its own brokerName"})
	}
	remote := 2
	if b.duplex {
		remote = 3
	}
	b.name(remote)
	b.send(&message.BrokerInfo{ID: b.self.ID, Name: b.self.Name, URL: b.self.URL,
		NetworkConnection: true, Duplex: b.duplex, NetworkProperties: b.opts.properties(b.self)})
	b.setUp()
}

func (b *Bridge) meet(info message.BrokerInfo) {
	b.peer = info
	b.table.peer = info.ID
}

// name gives the link's three connections their ids: the local one that demand belongs to, the
// local one of arrivals on duplex links, and the one at the peer.
func (b *Bridge) name(remote int) {
	seed := b.home.seed(b.peer.Name)
	b.local = message.ConnectionID(seed + ":1")
	b.inbound = message.ConnectionID(seed + ":2")
	b.remote = message.ConnectionID(fmt.Sprintf("%s:%d", seed, remote))
}

// setUp opens connection, session, producer and advisory consumer at the peer, all at once and
// without asking answers, then turns to copies in doubt.
func (b *Bridge) setUp() {
	user, password := b.opts.remoteLogin()
	b.send(&message.ConnectionInfo{ID: b.remote, ClientID: b.clientID("outbound"),
		UserName: user, Password: password, ClientMaster: true})
	b.send(&message.SessionInfo{ID: message.SessionID{Connection: b.remote, Value: 1}})
	b.send(&message.ProducerInfo{ID: b.producer()})
	b.consumers = 1
	if !b.opts.StaticBridge {
		b.openAdvisories(false)
	}
	b.table.addStatic()
	b.home.bridges = append(b.home.bridges, b)
	b.home.local.Advise(network.Event{Peer: b.peer, Link: b.local, Started: true,
		CreatedByDuplex: b.accepted,
		Duplex:          b.accepted || b.opts.Duplex,
		RemoteIP:        b.hello.Remote,
		Temps:           b.hearsOfTemps()})
	b.ticker = b.home.env.After(tick, b.onTick)
	b.enter(resolving)
	b.resolve()
}

// hearsOfTemps reports whether the peer tells this link of its temporary destinations.
func (b *Bridge) hearsOfTemps() bool {
	return b.opts.BridgeTempDestinations && !b.opts.StaticBridge
}

func (b *Bridge) enter(p phase) {
	b.phase = p
	b.onPhase()
}

// run opens all demand: nothing is in doubt any more.
func (b *Bridge) run() {
	b.unbound()
	b.enter(running)
	b.home.absences.succeeded(b)
	b.reflect()
	b.openWaiting()
	if b.unseen == "" {
		b.startProbe()
	}
}

// reflect tells of a pair that mirrors itself: this broker has a connector to the peer, and the
// peer a duplex one to this broker, so that two bridges lead there. Nothing is lost or doubled by
// it, but it is seldom meant: messages are divided between the two, each with its own settings.
func (b *Bridge) reflect() {
	for _, x := range b.home.bridges {
		if x.peer.ID != b.peer.ID || x.accepted == b.accepted {
			continue
		}
		ours, theirs := b.opts.Name, x.opts.Name
		if b.accepted {
			ours, theirs = theirs, ours
		}
		b.count.add(message.DuplexMirror)
		b.event(Event{Kind: Mirrored, Reason: message.DuplexMirror, Text: "connector " + ours +
			" leads to " + b.peer.Name + ", whose duplex connector " + theirs +
			" leads there, too; remove one of them, or duplex there"})
		return
	}
}

func (b *Bridge) producer() message.ProducerID {
	return message.ProducerID{Connection: b.remote, Session: 1, Value: 1}
}

// clientID is NAME_LOCAL_outbound at the peer.
func (b *Bridge) clientID(role string) string {
	t := b.opts.ClientIDToken
	return b.opts.Name + t + b.self.Name + t + role
}

// localClientID is NAME_REMOTE_inbound_LOCAL, the client id of subscriptions at home.
func (b *Bridge) localClientID() string {
	t := b.opts.ClientIDToken
	role := t + "inbound" + t
	if b.accepted {
		role += "duplex" + t
	}
	return b.opts.Name + t + b.peer.Name + role + b.self.Name
}

// send gives a command the link's next number and sends it.
func (b *Bridge) send(c message.Command) int32 {
	b.lastID++
	c.Head().CommandID = b.lastID
	b.link.Send(c)
	return b.lastID
}

func (b *Bridge) onTick() {
	b.ticker = b.home.env.After(tick, b.onTick)
	b.advisories.idle(b)
	b.ping.send(b)
	now := b.home.env.Mono()
	b.denial.askAgain(b, now)
	if b.unseen != "" && !b.denial.on && b.phase == running &&
		b.probe.timer == nil && now >= b.probe.again {
		b.startProbe()
	}
	for _, d := range b.table.demands {
		if d.state == refused && now >= d.refusal.again {
			b.openWaiting()
			return
		}
	}
}

func (b *Bridge) event(e Event) {
	e.Connector, e.Peer, e.PeerName = b.opts.Name, b.peer.ID, b.peer.Name
	if !b.accepted {
		e.URI = b.opts.URIs[0]
	}
	b.home.observe(e)
}

// stop drains: no new copies, and the end when the last answer is there or time is over.
func (b *Bridge) stop(done func()) {
	if b.phase == over {
		done()
		return
	}
	b.stopping, b.stopped = true, append(b.stopped, done)
	if len(b.pending) == 0 {
		b.shutDown()
		return
	}
	b.unbound()
	b.wait = b.home.env.After(stopTimeout, b.shutDown)
}

func (b *Bridge) shutDown() {
	if b.phase == over {
		return
	}
	if b.phase != awaitingInfo {
		b.send(&message.ShutdownInfo{})
	}
	b.end(nil)
}

// end is the only way a link ends. Copies that were handed over and not answered are in doubt
// where the peer can be asked, and go back as redelivered where not. Copies of topics live in
// the subscription alone: nobody else can get them meanwhile, so they need no doubt.
func (b *Bridge) end(err error) {
	if b.phase == over {
		return
	}
	b.phase = over
	b.unbound()
	b.probe.stop()
	if b.ticker != nil {
		b.ticker.Stop()
		b.home.leave(b)
	}
	doubted := b.abandon()
	b.flush()
	for _, d := range b.table.demands {
		if d.state.subscribed() && d != b.closing {
			b.unsubscribe(d)
		}
	}
	if doubted || b.doubts.unfinished() {
		b.home.absences.left(b, doubted)
	}
	if b.ticker != nil {
		b.home.local.Advise(network.Event{Peer: b.peer, Link: b.local, CreatedByDuplex: b.accepted,
			RemoteIP: b.hello.Remote, Temps: b.hearsOfTemps()})
	}
	reason := "stopped"
	if err != nil {
		reason = err.Error()
	}
	b.link.Close(reason)
	b.home.reconsider()
	b.onEnd(err)
	for _, done := range b.stopped {
		done()
	}
}
