package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
)

func topicNamed(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func (g *guest) begin(id string, n int64) message.TransactionID {
	tx := message.TransactionID{Connection: g.cid(id), Value: n}
	if e := g.do(&message.TransactionInfo{Connection: g.cid(id), ID: tx,
		Type: message.Begin}); e != nil {
		g.h.t.Fatal(e)
	}
	return tx
}

func (g *guest) finish(tx message.TransactionID, how message.TransactionType) *message.Throwable {
	return g.do(&message.TransactionInfo{Connection: tx.Connection, ID: tx, Type: how})
}

// mail is message number n of the guest's producer, for do.
func (g *guest) mail(id string, d message.Destination, n int64) *message.Message {
	p := message.ProducerID{Connection: g.cid(id), Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	return &message.Message{Producer: p, Destination: d, Persistent: true,
		ID: message.MessageID{Producer: p, Sequence: n}}
}

func TestATransactedSendOfAPeerIsRefused(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("x", "x", "", peerNamed("x", "10"))
	tx := g.begin("x", 1)
	m := g.mail("x", queueNamed("q"), 1)
	m.Transaction = tx
	if e := g.do(m); e == nil || !strings.Contains(e.Message, "in a transaction") {
		t.Errorf("answered with %v", e)
	}
	if e := g.finish(tx, message.CommitOnePhase); e != nil {
		t.Error(e)
	}
}

func TestANegativeSequenceIsNoNumberOfAProducer(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	h.connect("c", "c", "", nil).produce("c", q, 1)
	x := h.connect("x", "x", "", peerNamed("x", "10"))
	m := x.mail("x", q, 1)
	m.ID = message.MessageID{Sequence: -5, Producer: message.ProducerID{Connection: "c",
		Session: 1, Value: 1}}
	if e := x.do(m); e != nil {
		t.Error(e)
	}
	if n := h.b.find(q).queue.Len(); n != 2 {
		t.Errorf("the queue has %d messages, want 2", n)
	}
}

func TestNamesThatNoDestinationMayHaveAreRefused(t *testing.T) {
	for _, name := range []string{"", ",", " , ", strings.Repeat("n", maxNameBytes+1),
		"a," + strings.Repeat("n", maxNameBytes+1)} {
		h := open(t, nil, nil)
		g := h.connect("g", "g", "", nil)
		d := queueNamed(name)
		commands := map[string]message.Command{
			"message": g.mail("g", d, 1),
			"consumer": &message.ConsumerInfo{Destination: d,
				ID: message.ConsumerID{Connection: "g", Session: 1}},
			"producer": &message.ProducerInfo{Destination: d,
				ID: message.ProducerID{Connection: "g", Session: 1, Value: 9}},
			"destination": &message.DestinationInfo{Destination: d},
		}
		for what, c := range commands {
			e := g.do(c)
			if e == nil || e.Class != "javax.jms.InvalidDestinationException" || len(e.Message) > 300 {
				t.Errorf("%s with %.10q: %v", what, name, e)
			}
		}
		if n := len(h.b.order); n != 0 {
			t.Errorf("%.10q: %d destinations were made", name, n)
		}
	}
}

func TestAnAdvisoryThatNobodyHearsIsNotNamed(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	d := queueNamed(strings.Repeat("x,", 500))
	info := &message.ConsumerInfo{Destination: d}
	if n := testing.AllocsPerRun(100, func() { h.b.adviseSubscription(info, false) }); n != 0 {
		t.Errorf("an advisory for nobody costs %v allocations", n)
	}
	g.consume("g", topicNamed("ActiveMQ.Advisory.Consumer.>"))
	h.b.adviseSubscription(info, false)
	if len(g.got) != 1 {
		t.Errorf("the listener got %v", g.got)
	}
}

type shut struct{}

func (shut) Authenticate(user, _ string) (message.Principal, error) {
	return message.Principal{}, message.Errorf(message.Denied, "%s may not", user)
}

func TestRefusedLoginsAreToldApartByUserAndHost(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.Authenticator = shut{} })
	try := func(address, user, client string) string {
		g := &guest{h: h}
		g.Connection = h.b.Connect(g, Remote{Address: address}, nil)
		g.do(&message.ConnectionInfo{ID: message.ConnectionID(client), ClientID: client, UserName: user})
		return h.events[len(h.events)-1].Of
	}
	first := try("tcp://10.0.0.7:1", "shop", "c1")
	if first != "user shop at tcp://10.0.0.7" || first != try("tcp://10.0.0.7:2", "shop", "c2") {
		t.Errorf("a user's tries at one host are %q", first)
	}
	if first == try("tcp://10.0.0.7:3", "till", "c3") ||
		first == try("tcp://10.0.0.8:3", "shop", "c4") {
		t.Error("another user, or host, is not told apart")
	}
}
