package bridge

import (
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// The initiator's side of a duplex bridge, as captured between two ActiveMQ 5.17.2.
func TestDuplexConversationIsThatOfActiveMQ(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Duplex, o.Name = true, "ncdup" })
	w.connect(Hello{})
	if got := w.link.sent[1].(*message.ConnectionInfo).ID; !strings.HasPrefix(string(got),
		"netA->netB-") || !strings.HasSuffix(string(got), ":3") {
		t.Errorf("connection id %s", got)
	}
	same(t, "set-up", shorts(w.link.take()), []string{
		"1 BrokerInfo netA network=true duplex=true",
		"2 ConnectionInfo ncdup_netA_outbound master=true manageable=false",
		"3 SessionInfo 1",
		"4 ProducerInfo 1:1 ",
		"5 ConsumerInfo 1:1 topic://ActiveMQ.Advisory.Consumer.>," +
			"ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic prefetch=1000 async=true",
	})
	there := message.ConnectionID("netD->netC-1-2-4:3")
	for _, c := range []message.Command{
		&message.ConnectionInfo{ID: there},
		&message.SessionInfo{ID: message.SessionID{Connection: there, Value: 1}},
		&message.ProducerInfo{ID: message.ProducerID{Connection: there, Session: 1, Value: 1}},
		&message.ConsumerInfo{ID: message.ConsumerID{Connection: there, Session: 1, Value: 1},
			Destination: topic("ActiveMQ.Advisory.Consumer.>")},
	} {
		w.dial.receive(c)
	}
	w.demands("topic://ActiveMQ.Advisory.Consumer.>")

	// The peer's consumer comes as a plain message; ours goes as one, asking no answer.
	c := consumer(1, "NET.Q")
	m := advisoryMessage("Consumer.Queue.NET.Q", c)
	m.Producer = message.ProducerID{Connection: there, Session: 1, Value: 1}
	w.dial.receive(m)
	w.env.settle()
	w.demands("queue://NET.Q", "topic://ActiveMQ.Advisory.Consumer.>")
	w.deliver("queue://NET.Q", 1, text("NET.Q", 1))
	w.home.take()
	w.deliver("topic://ActiveMQ.Advisory.Consumer.>", 1,
		advisoryMessage("Consumer.Queue.NET.R", consumer(9, "NET.R")))
	same(t, "sent", shorts(w.link.take()), []string{
		"6 Message queue://NET.Q 1 path=[ID:netA] producer=1:1 ask",
		"7 Message topic://ActiveMQ.Advisory.Consumer.Queue.NET.R 1 path=[ID:netA] producer=1:1",
	})
	if got := w.home.take()[0]; got != "acked topic://ActiveMQ.Advisory.Consumer.> 1" {
		t.Error(got)
	}

	// The reverse direction: taken, then answered.
	w.home.hold = true
	in := text("NET.R", 5)
	in.CommandID, in.ResponseRequired = 10, true
	w.dial.receive(in)
	same(t, "before it is safe", shorts(w.link.take()), nil)
	w.home.dones[0](nil)
	same(t, "answer", shorts(w.link.take()), []string{"8 Response to=10"})
	got := w.home.got[0]
	if got.Producer.Connection != w.c.bridge.inbound || got.ID != text("NET.R", 5).ID {
		t.Errorf("received %+v", got)
	}
	w.dial.receive(&message.MessageAck{Consumer: message.ConsumerID{Connection: there}})
	w.state(Running)
}

func TestRefusedArrivalIsAnsweredWithItsKind(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{message.Errorf(message.Denied, "no"), "java.lang.SecurityException"},
		{message.Errorf(message.Limit, "no"), "javax.jms.ResourceAllocationException"},
		{message.Errorf(message.InvalidDestination, "no"), "javax.jms.InvalidDestinationException"},
		{message.Errorf(message.NoTempDestination, "no"),
			"org.apache.activemq.DestinationDoesNotExistException"},
		{message.Errorf(message.Internal, "no"), "javax.jms.JMSException"},
	} {
		if got := answer(1, c.err).Exception; got.Class != c.want || got.Message != "no" {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

// accept plays an initiator's BrokerInfo towards a home of our own.
func accept(t *testing.T, w *world, hello Hello, edit func(*Options)) (*Acceptor, *fakeLink) {
	t.Helper()
	o := DefaultOptions(5)
	o.Name, o.Duplex = "ncdup", true
	if edit != nil {
		edit(&o)
	}
	info := peerInfo
	info.NetworkConnection, info.Duplex = true, true
	info.NetworkProperties = o.properties(info)
	l := &fakeLink{}
	a, err := w.h.Accept(l, hello, &info)
	if err != nil {
		t.Fatal(err)
	}
	w.env.settle()
	return a, l
}

func TestAcceptorStartsItsHalfWithTheInitiatorsSettings(t *testing.T) {
	w := newWorld(t, nil)
	a, l := accept(t, w, Hello{}, func(o *Options) {
		o.ConsumerTTL, o.MessageTTL, o.PrefetchSize = 3, 4, 77
		o.StaticallyIncluded = []message.Destination{queue("S")}
	})
	same(t, "set-up", shorts(l.take()), []string{
		"1 ConnectionInfo ncdup_netA_outbound master=true manageable=false",
		"2 SessionInfo 1",
		"3 ProducerInfo 1:1 ",
		"4 ConsumerInfo 1:1 topic://ActiveMQ.Advisory.Consumer.>," +
			"ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic prefetch=77 async=true",
	})
	if a.opts.ConsumerTTL != 3 || a.opts.MessageTTL != 4 || a.Status().State != Running {
		t.Errorf("options %+v, state %v", a.opts, a.Status().State)
	}
	s := w.home.sub(t, "queue://S")
	if s.Info.ClientID != "ncdup_netB_inbound_duplex_netA" {
		t.Errorf("client id %s", s.Info.ClientID)
	}
	a.Receive(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "x", Session: 1, Value: 1},
		Destination: topic("ActiveMQ.Advisory.Connection")})
	w.demands("queue://S", "topic://ActiveMQ.Advisory.Connection")
	a.Receive(&message.RemoveInfo{Object: message.ConsumerID{Connection: "x", Session: 1, Value: 1}})
	w.demands("queue://S")
	a.Down(nil)
	w.demands()
	if len(w.h.Accepted()) != 0 || a.Status().State != Gone {
		t.Error("the half outlives its connection")
	}
}

func TestNewDuplexConnectionReplacesTheOld(t *testing.T) {
	w := newWorld(t, nil)
	old, link := accept(t, w, Hello{}, nil)
	accept(t, w, Hello{}, func(o *Options) { o.Name = "other" })
	accept(t, w, Hello{}, nil)
	if link.closed == "" || old.Status().State != Stopped || len(w.h.Accepted()) != 2 {
		t.Errorf("the old link: %q; %d halves", link.closed, len(w.h.Accepted()))
	}
}

func TestADuplexLinkThatThePeerHasNoMoreIsEnded(t *testing.T) {
	gone := []message.ConnectionID{"other"}
	for _, c := range []struct {
		name  string
		from  network.Asker
		links []message.ConnectionID
		ends  bool
		left  int
	}{
		{"another peer", network.Asker{Peer: "ID:z", Ours: true}, gone, false, 0},
		{"it has the link", network.Asker{Peer: "ID:a", Ours: true}, append(gone, "theirs"), false, 0},
		{"over a link of ours", network.Asker{Peer: "ID:a", Ours: true}, gone, true, 0},
		{"as our user", network.Asker{Peer: "ID:a", User: "bridges"}, gone, true, 0},
		{"as another user", network.Asker{Peer: "ID:a", User: "guest"}, gone, false, 1},
		{"as nobody", network.Asker{Peer: "ID:a"}, gone, false, 1},
	} {
		w := newWorld(t, func(o *Options) { o.Duplex, o.RemoteUserName = true, "bridges" })
		w.connect(Hello{HopwireLevel: 1})
		w.c.bridge.prove()
		w.dial.receive(&message.ConnectionInfo{ID: "theirs"})
		c.from.Peer = message.BrokerID(strings.Replace(string(c.from.Peer), "ID:a",
			string(w.c.bridge.peer.ID), 1))
		left := w.h.EndOthers(c.from, c.links)
		if up := w.c.Status().State == Running; up == c.ends || left != c.left {
			t.Errorf("%s: the link is up: %v; %d stay", c.name, up, left)
		}
	}
}

func TestADoubtfulPeerIsToldOfAllLinks(t *testing.T) {
	w := newWorld(t, nil)
	w.home.doubts = doubtsOf(1)
	_, l := accept(t, w, Hello{HopwireLevel: 1}, nil)
	sent := l.take()
	ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
	if err != nil || len(ask.Links) != 1 || ask.Links[0] != sent[0].(*message.ConnectionInfo).ID {
		t.Errorf("%+v %v", ask, err)
	}
}

func TestAcceptorAnswersAboutDoubtsAndAsksItsOwn(t *testing.T) {
	w := newWorld(t, nil)
	mine := doubtsOf(2)
	w.home.doubts = mine[:1]
	w.home.known[mine[1].Key.Key] = true
	a, l := accept(t, w, Hello{HopwireLevel: 1, As: message.Principal{User: "u"}}, nil)
	sent := l.take()
	ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
	if err != nil || len(ask.Keys) != 1 || a.Status().State != Resolving {
		t.Fatalf("%+v %v", ask, err)
	}
	their := network.Talk{Kind: network.Ask, ID: 5, Keys: []network.DoubtKey{mine[0].Key,
		mine[1].Key}}
	a.Receive(&message.ControlCommand{Command: their.Encode()})
	same(t, "answer", shorts(l.take()), []string{"6 ControlCommand hopwire/1 known 5 01"})
	if from := w.home.asker; from.User != "u" || from.Ours || from.Peer != a.bridge.peer.ID {
		t.Errorf("asked by %+v", from)
	}
	a.Receive(&message.ControlCommand{Command: network.Talk{Kind: network.Known, ID: ask.ID,
		Known: []bool{true}}.Encode()})
	if a.Status().State != Running {
		t.Errorf("state %v", a.Status().State)
	}
	a.Receive(&message.ControlCommand{Command: "hopwire/1 nonsense 1"})
	if a.Status().State != Gone {
		t.Error("talk that makes no sense ends the link")
	}
}

func TestWhatTheListsExcludeIsNotTakenEither(t *testing.T) {
	w := newWorld(t, nil)
	a, l := accept(t, w, Hello{HopwireLevel: 1}, func(o *Options) {
		o.Excluded = []message.Destination{queue("no")}
	})
	l.take()
	in := text("no", 1)
	in.CommandID, in.ResponseRequired = 9, true
	a.Receive(in)
	same(t, "answer", shorts(l.take()), []string{
		"5 Response to=9 java.lang.SecurityException"})
	if len(w.home.got) != 0 {
		t.Error("it was taken")
	}
}

func TestBridgesThatMirrorEachOtherAreTold(t *testing.T) {
	mirrored := func(w *world) (n int) {
		for _, e := range w.events {
			if e.Kind == Mirrored && e.Reason == message.DuplexMirror {
				n++
			}
		}
		return n
	}
	w := newWorld(t, func(o *Options) { o.Duplex = true })
	w.connect(Hello{})
	if mirrored(w) != 0 {
		t.Error("one bridge mirrors nothing")
	}
	a, _ := accept(t, w, Hello{}, nil)
	if got := a.Status().Counts; mirrored(w) != 1 || len(got) != 1 ||
		got[0] != (Count{message.DuplexMirror, 1}) {
		t.Errorf("the peer's came second: %d told, %v", mirrored(w), got)
	}
	w.dial.down(nil)
	w.env.advance(w.waitOf())
	w.connect(Hello{})
	if got := w.events[len(w.events)-1]; mirrored(w) != 2 ||
		!strings.Contains(got.Text, "connector nc1 leads to netB, whose duplex connector ncdup") {
		t.Errorf("ours came second: %+v", got)
	}

	w = newWorld(t, nil)
	w.connect(Hello{})
	o := w.c.opts
	o.Name = "nc2"
	w.c, _ = w.h.Connector(o)
	w.connect(Hello{})
	if mirrored(w) != 0 {
		t.Error("two connectors of our own to one peer are meant")
	}
}

func TestADuplexLinkOfAnotherUserStays(t *testing.T) {
	for _, c := range []struct {
		user string
		ends bool
	}{{"bridge", true}, {"mallory", false}} {
		w := newWorld(t, nil)
		info := message.BrokerInfo{ID: "ID:shop", Name: "shop", NetworkProperties: "name=NC\n"}
		old := &fakeLink{}
		by := func(user string) Hello {
			return Hello{Remote: "at " + user, HopwireLevel: 1, As: message.Principal{User: user}}
		}
		a, err := w.h.Accept(old, by("bridge"), &info)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.h.Accept(&fakeLink{}, by(c.user), &info)
		if ended := old.closed != ""; ended != c.ends || (err == nil) != c.ends {
			t.Errorf("a link of %s: the old one ended %v, %v", c.user, ended, err)
		}
		if !c.ends && (message.KindOf(err) != message.Denied ||
			!slices.Contains(a.Status().Counts, Count{message.LoginRefused, 1})) {
			t.Errorf("%v, counts %v", err, a.Status().Counts)
		}
	}
}
