package bridge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// fakeEnv is a clock that moves when the test says so.
type fakeEnv struct {
	now    time.Duration
	soon   []func()
	timers []*fakeTimer
	order  int
	rand   uint64
}

type fakeTimer struct {
	at    time.Duration
	order int
	f     func()
	dead  bool
}

func (t *fakeTimer) Stop() { t.dead = true }

func (e *fakeEnv) Wall() int64         { return 1_700_000_000_000 + e.now.Milliseconds() }
func (e *fakeEnv) Mono() time.Duration { return e.now }
func (e *fakeEnv) Soon(f func())       { e.soon = append(e.soon, f) }
func (e *fakeEnv) Rand() uint64        { e.rand += 0x9e3779b97f4a7c15; return e.rand }

func (e *fakeEnv) After(d time.Duration, f func()) loop.Timer {
	e.order++
	t := &fakeTimer{at: e.now + max(0, d), order: e.order, f: f}
	e.timers = append(e.timers, t)
	return t
}

// settle runs what waits now.
func (e *fakeEnv) settle() {
	for len(e.soon) > 0 {
		f := e.soon[0]
		e.soon = e.soon[1:]
		f()
	}
}

// advance moves the clock and runs each timer at its time.
func (e *fakeEnv) advance(d time.Duration) {
	end := e.now + d
	e.settle()
	for {
		e.timers = slices.DeleteFunc(e.timers, func(t *fakeTimer) bool { return t.dead })
		if len(e.timers) == 0 {
			break
		}
		t := slices.MinFunc(e.timers, func(a, b *fakeTimer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
		})
		if t.at > end {
			break
		}
		e.now, t.dead = max(e.now, t.at), true
		t.f()
		e.settle()
	}
	e.now = end
}

func (e *fakeEnv) live() int {
	e.timers = slices.DeleteFunc(e.timers, func(t *fakeTimer) bool { return t.dead })
	return len(e.timers)
}

// fakeHome is a home broker that writes down what it is told.
type fakeHome struct {
	info   message.BrokerInfo
	subs   map[message.ConsumerID]*network.Subscription
	log    []string
	refuse error
	doubts []network.Doubt
	// doubtful is whom the doubts are toward; "" is everybody.
	doubtful  message.BrokerID
	known     map[message.ReceiptKey]bool
	restarted bool                   // what is not known may have been seen
	links     []message.ConnectionID // of the last Known
	asker     network.Asker
	got       []*message.Message
	dones     []func(error)
	hold      bool // Receive is answered later
	failure   []*message.Message
	settled   func() // what telling of settlements brings; it runs once
}

func newHome(name string) *fakeHome {
	return &fakeHome{
		info: message.BrokerInfo{ID: message.BrokerID("ID:" + name), Name: name,
			URL: "tcp://" + name + ":61616"},
		subs:  map[message.ConsumerID]*network.Subscription{},
		known: map[message.ReceiptKey]bool{},
	}
}

func (h *fakeHome) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *fakeHome) Info() message.BrokerInfo { return h.info }

func (h *fakeHome) Subscribe(s *network.Subscription) error {
	if h.refuse != nil {
		return h.refuse
	}
	h.subs[s.Info.ID] = s
	h.note("subscribe %v", s.Info.Destination)
	return nil
}

func (h *fakeHome) Ready(id message.ConsumerID) { h.note("ready %v", h.name(id)) }

func (h *fakeHome) SetSelectors(id message.ConsumerID, s network.Selectors) {
	h.note("selectors %v %s", h.name(id), strings.ReplaceAll(string(s), "\n", " "))
}

func (h *fakeHome) Wake(id message.ConsumerID) { h.note("wake %v", h.name(id)) }

func (h *fakeHome) name(id message.ConsumerID) string {
	if s := h.subs[id]; s != nil {
		return s.Info.Destination.String()
	}
	return id.String()
}

func (h *fakeHome) Unsubscribe(id message.ConsumerID) {
	h.note("unsubscribe %v", h.name(id))
	delete(h.subs, id)
}

var settlementNames = [...]string{"acked", "returned", "redelivered", "doubted", "poisoned"}

func (h *fakeHome) Settle(id message.ConsumerID, refs []message.CopyRef, how network.Settlement) {
	var seqs []string
	for _, r := range refs {
		seqs = append(seqs, fmt.Sprint(r.Seq))
	}
	h.note("%s %v %s", settlementNames[how], h.name(id), strings.Join(seqs, " "))
	if f := h.settled; f != nil {
		h.settled = nil
		f()
	}
}

func (h *fakeHome) Receive(m *message.Message, from network.Peer, done func(error)) {
	h.got = append(h.got, m)
	if h.hold {
		h.dones = append(h.dones, done)
		return
	}
	done(nil)
}

func (h *fakeHome) InDoubt(peer message.BrokerID, after message.CopyRef, limit int,
	done func([]network.Doubt)) {
	var page []network.Doubt
	for _, d := range h.doubts {
		if (h.doubtful == "" || h.doubtful == peer) && d.Ref.Seq > after.Seq && len(page) < limit {
			page = append(page, d)
		}
	}
	done(page)
}

func (h *fakeHome) Resolve(peer message.BrokerID, refs []message.CopyRef,
	how network.Resolution) {
	names := [...]string{"was-taken", "was-not-taken", "never-learned", "maybe-seen"}
	var seqs []string
	for _, r := range refs {
		seqs = append(seqs, fmt.Sprint(r.Seq))
		h.doubts = slices.DeleteFunc(h.doubts, func(d network.Doubt) bool { return d.Ref == r })
	}
	h.note("%s %s", names[how], strings.Join(seqs, " "))
}

func (h *fakeHome) Known(from network.Asker, links []message.ConnectionID, keys []network.DoubtKey,
	done func([]bool, bool)) {
	h.links, h.asker = links, from
	out := make([]bool, len(keys))
	for i, k := range keys {
		out[i] = h.known[k.Key]
	}
	done(out, h.restarted)
}

func (h *fakeHome) Temp(from network.Peer, info *message.DestinationInfo) error {
	h.note("temp %v op %d path %v", info.Destination, info.Op, info.BrokerPath)
	return nil
}

func (h *fakeHome) Advise(e network.Event) {
	if e.Failed != nil {
		h.failure = append(h.failure, e.Failed)
		return
	}
	h.note("peer %s started=%v", e.Peer.Name, e.Started)
}

func (h *fakeHome) sub(t *testing.T, dest string) *network.Subscription {
	t.Helper()
	for _, s := range h.subs {
		if s.Info.Destination.String() == dest {
			return s
		}
	}
	t.Fatalf("no subscription to %s; the home has %v", dest, h.list())
	return nil
}

// list names all subscriptions, sorted.
func (h *fakeHome) list() []string {
	var out []string
	for _, s := range h.subs {
		out = append(out, s.Info.Destination.String())
	}
	slices.Sort(out)
	return out
}

func (h *fakeHome) take() []string {
	l := h.log
	h.log = nil
	return l
}

// fakeLink keeps what was sent.
type fakeLink struct {
	sent   []message.Command
	closed string
	full   bool
	onRoom func()
}

func (l *fakeLink) Send(c message.Command) { l.sent = append(l.sent, c) }
func (l *fakeLink) Room() bool             { return !l.full }
func (l *fakeLink) OnRoom(f func())        { l.onRoom = f }
func (l *fakeLink) Close(reason string)    { l.closed = reason }

func (l *fakeLink) take() []message.Command {
	s := l.sent
	l.sent = nil
	return s
}

// fakeDialer keeps the pending dials; the test plays the network.
type fakeDialer struct{ dials []*fakeDial }

type fakeDial struct {
	uri       string
	up        func(Link, Hello)
	receive   func(message.Command)
	down      func(error)
	cancelled bool
}

func (d *fakeDialer) Dial(uri string, up func(Link, Hello), receive func(message.Command),
	down func(error)) func() {
	x := &fakeDial{uri: uri, up: up, receive: receive, down: down}
	d.dials = append(d.dials, x)
	return func() {
		if !x.cancelled {
			x.cancelled = true
			down(message.Errorf(message.Unavailable, "cancelled"))
		}
	}
}

func (d *fakeDialer) last() *fakeDial { return d.dials[len(d.dials)-1] }

// world is a home broker with one connector and the network played by the test.
type world struct {
	t      *testing.T
	env    *fakeEnv
	home   *fakeHome
	dialer *fakeDialer
	h      *Home
	c      *Connector
	events []Event
	link   *fakeLink
	dial   *fakeDial
}

var peerInfo = message.BrokerInfo{ID: "ID:netB", Name: "netB", URL: "tcp://netB:61616"}

func newWorld(t *testing.T, change func(*Options)) *world {
	w := &world{t: t, env: &fakeEnv{}, home: newHome("netA"), dialer: &fakeDialer{}}
	w.h = NewHome(Config{Local: w.home, Env: w.env, Dialer: w.dialer,
		Observe:   func(e Event) { w.events = append(w.events, e) },
		Selectors: fakeSelectors})
	o := DefaultOptions(5)
	o.Name, o.URIs = "nc1", []string{"tcp://netB:61616"}
	if change != nil {
		change(&o)
	}
	c, err := w.h.Connector(o)
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
	return w
}

// connect plays a peer up to the initiator's commands.
func (w *world) connect(hello Hello) {
	w.t.Helper()
	if w.c.state == New {
		w.c.Start()
	}
	w.dial, w.link = w.dialer.last(), &fakeLink{}
	hello.Remote = "netB:61616"
	w.dial.up(w.link, hello)
	info := peerInfo
	w.dial.receive(&info)
	w.env.settle()
}

func (w *world) state(want State) {
	w.t.Helper()
	if got := w.c.Status().State; got != want {
		w.t.Fatalf("state %v, want %v (error %q)", got, want, w.c.Status().Error)
	}
}

// advise plays an advisory of the peer.
func (w *world) advise(topic string, data message.Command) {
	m := advisoryMessage(topic, data)
	w.dial.receive(&message.MessageDispatch{Consumer: w.c.bridge.advisories.id,
		Destination: m.Destination, Message: m})
	w.env.settle()
}

func advisoryMessage(topic string, data message.Command) *message.Message {
	return &message.Message{Type: "Advisory", Data: data,
		ID: message.MessageID{Producer: message.ProducerID{Connection: "ID:netB-adv"},
			Sequence: 1},
		Destination: message.Destination{Kind: message.Topic,
			Name: message.AdvisoryPrefix + topic}}
}

func consumer(n int64, dest string) *message.ConsumerInfo {
	d, _ := message.ParseDestination(dest, message.Queue)
	return &message.ConsumerInfo{ID: message.ConsumerID{Connection: "ID:client", Session: 1,
		Value: n}, Destination: d, PrefetchSize: 1000}
}

func (w *world) consume(n int64, dest string) {
	c := consumer(n, dest)
	w.advise("Consumer."+c.Destination.Kind.String()+"."+c.Destination.Name, c)
}

func (w *world) unconsume(n int64) {
	w.advise("Consumer.Queue.x", &message.RemoveInfo{
		Object: message.ConsumerID{Connection: "ID:client", Session: 1, Value: n}})
}

func text(dest string, seq int64) *message.Message {
	d, _ := message.ParseDestination(dest, message.Queue)
	return &message.Message{Destination: d, Persistent: true, Body: message.TextBody,
		ID: message.MessageID{Producer: message.ProducerID{Connection: "ID:producer",
			Session: 1, Value: 1}, Sequence: seq}}
}

// deliver plays the home broker giving a copy to a subscription.
func (w *world) deliver(dest string, seq uint64, m *message.Message) {
	w.t.Helper()
	s := w.home.sub(w.t, dest)
	s.Filter.Took(m.Destination, network.Replay{}, w.env.Mono())
	s.Sink.Deliver(network.Delivery{Consumer: s.Info.ID, Message: m,
		Ref:   message.CopyRef{Destination: m.Destination, Seq: seq},
		Topic: m.Destination.IsTopic()})
	w.env.settle()
}

// answerAll plays the peer's answers to all forwards that ask for one, in order.
func (w *world) answerAll(x *message.Throwable) {
	for _, c := range w.link.take() {
		if m, ok := c.(*message.Message); ok && m.ResponseRequired {
			w.dial.receive(&message.Response{Correlation: m.CommandID, Exception: x})
		}
	}
	w.env.settle()
}

// fakeSelector knows "color=red" and the like, over CorrelationID for brevity.
type fakeSelector struct{ text string }

func (s fakeSelector) Matches(m *message.Message) bool {
	_, value, _ := strings.Cut(s.text, "=")
	return m.CorrelationID == value
}

func (s fakeSelector) Identifiers() []string {
	name, _, _ := strings.Cut(s.text, "=")
	return []string{name}
}

func fakeSelectors(text string) (Selector, error) {
	if !strings.Contains(text, "=") {
		return nil, fmt.Errorf("bad selector")
	}
	return fakeSelector{text}, nil
}

// short is a command in one line: its type and what matters of it.
func short(c message.Command) string {
	h := c.Head()
	ask := ""
	if h.ResponseRequired {
		ask = " ask"
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", c), "*message.")
	switch c := c.(type) {
	case *message.BrokerInfo:
		name += fmt.Sprintf(" %s network=%v duplex=%v", c.Name, c.NetworkConnection, c.Duplex)
	case *message.ConnectionInfo:
		name += fmt.Sprintf(" %s master=%v manageable=%v", c.ClientID, c.ClientMaster,
			c.Manageable)
	case *message.SessionInfo:
		name += fmt.Sprintf(" %d", c.ID.Value)
	case *message.ProducerInfo:
		name += fmt.Sprintf(" %d:%d %v", c.ID.Session, c.ID.Value, c.Destination)
	case *message.ConsumerInfo:
		name += fmt.Sprintf(" %d:%d %v prefetch=%d async=%v", c.ID.Session, c.ID.Value,
			c.Destination, c.PrefetchSize, c.DispatchAsync)
	case *message.RemoveInfo:
		name += fmt.Sprintf(" %v", c.Object.(message.ConsumerID).Value)
	case *message.Message:
		name += fmt.Sprintf(" %v %d path=%v producer=%d:%d", c.Destination, c.ID.Sequence,
			c.BrokerPath, c.Producer.Session, c.Producer.Value)
	case *message.MessageAck:
		name += fmt.Sprintf(" %d:%d type=%d count=%d first=%v", c.Consumer.Session,
			c.Consumer.Value, c.Type, c.Count, c.HasFirst)
	case *message.Response:
		name += fmt.Sprintf(" to=%d", c.Correlation)
		if c.Exception != nil {
			name += " " + c.Exception.Class
		}
	case *message.ControlCommand:
		name += " " + c.Command
	}
	return fmt.Sprintf("%d %s%s", h.CommandID, name, ask)
}

func shorts(cs []message.Command) []string {
	var out []string
	for _, c := range cs {
		out = append(out, short(c))
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "),
			strings.Join(want, "\n      "))
	}
}
