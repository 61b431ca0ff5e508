package link

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	front "hopwire/internal/front/openwire"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// house is a broker with a connector and bridges.
type house struct {
	t         testing.TB
	name      string
	loop      *loop.Loop
	broker    *broker.Broker
	home      *bridge.Home
	listener  *front.Listener
	connector *bridge.Connector

	mu     sync.Mutex
	events []string
}

func newHouse(t testing.TB, name string) *house {
	t.Helper()
	return newHouseAt(t, name, "")
}

// newHouseAt makes a house whose connector's URI has options.
func newHouseAt(t testing.TB, name, options string) *house {
	t.Helper()
	h := &house{t: t, name: name, loop: loop.New()}
	group := rungroup.New(context.Background())
	committer := store.NewCommitter(mem.New(), h.loop.Post)
	own, _, twin := strings.Cut(name, "+") // what is behind + tells brokers of one name apart
	o := broker.Options{Name: own, Persistent: true, Advisories: true}
	if twin {
		o.ID = message.BrokerID("ID:" + name)
	}
	h.broker = broker.New(h.loop, committer, nil, o)
	h.loop.OnTurn(h.broker.EndTurn)
	hub := wire.NewHub(h.loop)
	h.home = bridge.NewHome(bridge.Config{
		Local: h.broker, Env: h.loop,
		Dialer: NewDialer(Options{Hub: hub, Group: group}),
		Observe: func(e bridge.Event) {
			h.mu.Lock()
			h.events = append(h.events, fmt.Sprintf("%s %s %v %v %s", e.Connector, e.State, e.Kind,
				e.Destination, e.Text))
			h.mu.Unlock()
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { h.loop.Run(ctx); close(ended) }()
	var err error
	h.listener, err = front.Listen(front.Options{
		Name: name, URI: "tcp://127.0.0.1:0" + options,
		Broker: h.broker, Hub: hub, Group: group, Peers: NewPeers(h.home, nil),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.listener.Start()
	t.Cleanup(func() {
		if h.connector != nil {
			h.ask(func() { h.connector.Stop(nil) })
		}
		group.Stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		_ = committer.Close(context.Background())
		stop()
		<-ended
	})
	return h
}

func (h *house) ask(f func()) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !h.loop.Call(ctx, f) {
		h.t.Fatalf("the loop of %s did not answer", h.name)
	}
}

func (h *house) until(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; {
		ok := false
		h.ask(func() { ok = holds() })
		if ok {
			return
		}
		if time.Now().After(end) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.t.Fatalf("%s: it never came that %s; %q", h.name, what, h.events)
		}
	}
}

// connect starts a connector to uri, which may be a house's address.
func (h *house) connect(uri string, change func(*bridge.Options)) {
	h.t.Helper()
	o := bridge.DefaultOptions(5)
	o.Name = "nc-" + h.name
	o.URIs = []string{uri}
	o.InitialReconnectDelay = 20 * time.Millisecond
	if change != nil {
		change(&o)
	}
	h.ask(func() {
		var err error
		if h.connector, err = h.home.Connector(o); err != nil {
			h.t.Error(err)
			return
		}
		h.connector.Start()
	})
}

func (h *house) uri() string { return "tcp://" + h.listener.Addr() }

func (h *house) until4(state bridge.State) {
	h.t.Helper()
	h.until("the bridge is "+state.String(),
		func() bool { return h.connector.Status().State == state })
}

// user is a client over a session of its own, on a loop of its own.
type user struct {
	t    testing.TB
	id   message.ConnectionID
	hub  *wire.Hub
	s    *wire.Session
	got  chan message.Command
	next int32
}

func (h *house) user(id string) *user {
	h.t.Helper()
	l := loop.New()
	u := &user{
		t: h.t, id: message.ConnectionID(id), hub: wire.NewHub(l),
		got: make(chan message.Command, 10_000),
	}
	group := rungroup.New(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	conn, err := transport.Dial(ctx, h.uri())
	if err != nil {
		h.t.Fatal(err)
	}
	up := make(chan struct{})
	l.Call(ctx, func() {
		u.s = wire.New(wire.Config{
			Hub: u.hub, Group: group, Conn: conn,
			Offer: wire.DefaultOffer(), Name: "user", Up: func(wire.Peer) { close(up) },
			Receive: func(c message.Command) { u.got <- c },
			Down:    func(error) { close(u.got) },
		})
		u.s.Start()
	})
	<-up
	h.t.Cleanup(func() {
		group.Stop()
		_ = group.Wait()
		stop()
		<-ended
	})
	u.ask(&message.ConnectionInfo{ID: u.id, ClientID: id})
	u.tell(&message.SessionInfo{ID: message.SessionID{Connection: u.id, Value: 1}})
	u.ask(&message.ProducerInfo{ID: u.producer()})
	return u
}

func (u *user) producer() message.ProducerID {
	return message.ProducerID{Connection: u.id, Session: 1, Value: 1}
}

func (u *user) tell(c message.Command) {
	u.next++
	c.Head().CommandID = u.next
	u.hub.Loop().Call(context.Background(), func() { u.s.Send(c) })
}

// ask sends and waits for the answer.
func (u *user) ask(c message.Command) {
	u.t.Helper()
	c.Head().ResponseRequired = true
	u.tell(c)
	id := u.next
	u.await(fmt.Sprintf("the answer to %T", c), func(c message.Command) bool {
		r, ok := c.(*message.Response)
		if ok && r.Exception != nil {
			u.t.Fatalf("refused: %v", r.Exception)
		}
		return ok && r.Correlation == id
	})
}

func (u *user) await(what string, is func(message.Command) bool) message.Command {
	u.t.Helper()
	late := time.After(patience)
	for {
		select {
		case c, ok := <-u.got:
			if !ok {
				u.t.Fatalf("the connection ended before %s", what)
			}
			if is(c) {
				return c
			}
		case <-late:
			u.t.Fatalf("never came: %s", what)
		}
	}
}

func (u *user) consume(d message.Destination) message.ConsumerID {
	u.t.Helper()
	id := message.ConsumerID{Connection: u.id, Session: 1, Value: int64(u.next) + 1}
	u.ask(&message.ConsumerInfo{ID: id, Destination: d, PrefetchSize: 1000})
	return id
}

func (u *user) produce(d message.Destination, seq int64, text string) {
	u.t.Helper()
	m := &message.Message{
		ID:       message.MessageID{Producer: u.producer(), Sequence: seq},
		Producer: u.producer(), Destination: d, Persistent: true, Priority: 4,
		Body: message.BytesBody, Content: []byte(text),
	}
	u.ask(m)
}

// receive takes the next delivery and acknowledges it.
func (u *user) receive() *message.Message {
	u.t.Helper()
	d := u.await("a delivery", func(c message.Command) bool {
		x, ok := c.(*message.MessageDispatch)
		return ok && x.Message != nil
	}).(*message.MessageDispatch)
	u.tell(&message.MessageAck{
		Consumer: d.Consumer, Destination: d.Destination,
		Type: message.IndividualAck, Last: d.Message.ID, HasLast: true, Count: 1,
	})
	return d.Message
}

func queue(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}
