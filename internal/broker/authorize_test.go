package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// law lets users do what it lists, "user right destination", and counts how often it is asked. The
// right "pattern" is to consume by exactly that pattern.
type law struct {
	lists []string
	asked int
}

func (l *law) May(p *message.Principal, r Right, d message.Destination) bool {
	l.asked++
	right := [...]string{Read: "read", Write: "write", Admin: "admin"}[r]
	return slices.ContainsFunc(l.lists, func(s string) bool {
		f := strings.Fields(s)
		to, _ := message.ParseDestination(f[2], message.Queue)
		if d.IsPattern() && f[1] == "pattern" {
			return f[0] == p.User && d == to
		}
		return f[0] == p.User && (f[1] == right || f[1] == "all") && policy.Matches(to, d)
	})
}

// Groups are those of the users that have a right, which are called as they are.
func (l *law) Groups(r Right, d message.Destination) (out []string) {
	for _, s := range l.lists {
		user := strings.Fields(s)[0]
		if l.May(&message.Principal{User: user}, r, d) && !slices.Contains(out, user) {
			out = append(out, user)
		}
	}
	return out
}

// Beginnings of refusals.
const (
	amyNot = "User amy is not authorized to "
	netNot = "User net is not authorized to "
)

// anyone lets everybody in under the name given.
type anyone struct{}

func (anyone) Authenticate(name, _ string) (message.Principal, error) {
	return message.Principal{User: name}, nil
}

func lawful(lists ...string) (*law, func(*Options)) {
	l := &law{lists: lists}
	return l, func(o *Options) { o.Authorizer, o.Authenticator = l, anyone{} }
}

// denied fails unless the exception is a refusal with that text.
func denied(t *testing.T, e *message.Throwable, text string) {
	t.Helper()
	if e == nil || e.Class != "java.lang.SecurityException" || e.Message != text {
		t.Errorf("the answer is %v, not %q", e, text)
	}
}

func (h *house) explained(d message.Destination) (x Explanation) {
	h.b.Explain(d, nil, func(found *Explanation) {
		if found != nil {
			x = *found
		}
	})
	h.turn()
	return x
}

func TestARefusedSendIsCountedToldAndExplained(t *testing.T) {
	l, change := lawful("boss all >", "amy write OPEN", "amy write OLD")
	h := open(t, nil, change)
	boss := h.connect("b", "b", "boss", nil)
	amy := h.connect("a", "amys", "amy", nil)
	secret := queueNamed("SECRET")
	denied(t, amy.do(&message.ProducerInfo{Destination: secret, ID: message.ProducerID{
		Connection: "a", Session: 1, Value: 9}}), amyNot+"write to: queue://SECRET")
	denied(t, amy.produce("a", secret, 1), amyNot+"write to: queue://SECRET")
	denied(t, amy.produce("a", queueNamed("OPEN"), 2), amyNot+"create: queue://OPEN")
	denied(t, amy.produce("a", queueNamed("OPEN,SECRET"), 3),
		amyNot+"write to: OPEN,SECRET")
	if h.b.find(secret) != nil || h.b.find(queueNamed("OPEN")) != nil {
		t.Error("a refused send made its destination")
	}
	if n := h.b.Status().Counts.Reasons[message.AccessDenied]; n != 4 {
		t.Errorf("%d refusals are counted", n)
	}
	told := h.events[len(h.events)-1]
	if told.Kind != AccessDenied || told.Reason != message.AccessDenied || told.Dest != secret ||
		!strings.Contains(told.Text, "User amy") || !strings.Contains(told.Text, "client amys") {
		t.Errorf("told as %+v", told)
	}
	x := h.explained(secret)
	if len(x.Rows) != 0 || len(x.Refused) != 1 || x.Refused[0].Count != 3 ||
		x.Refused[0].User != "amy" || x.Refused[0].What != "write to queue://SECRET" {
		t.Errorf("explained as %+v", x)
	}
	boss.do(&message.DestinationInfo{Destination: queueNamed("OPEN")})
	l.asked = 0
	for n := range int64(20) {
		if e := amy.produce("a", queueNamed("OPEN"), 10+n); e != nil {
			t.Fatal(e)
		}
	}
	if l.asked > 1 {
		t.Errorf("20 sends asked %d times", l.asked)
	}
	boss.do(&message.DestinationInfo{Destination: queueNamed("OPEN"), Op: message.RemoveDestination})
	denied(t, amy.produce("a", queueNamed("OPEN"), 40), amyNot+"create: queue://OPEN")
}

func TestWhatIsRememberedOfRightsIsBounded(t *testing.T) {
	_, change := lawful()
	h := open(t, nil, change)
	amy := h.connect("a", "a", "amy", nil)
	for n := range 3 * rightsMost {
		_ = amy.rights.allow(reading, queueNamed(strconv.Itoa(n)))
		_ = amy.rights.allow(reading, queueNamed(strings.Repeat("x", rightsName)+strconv.Itoa(n)))
	}
	long := 0
	for d := range amy.rights.known {
		if len(d.Name) > rightsName {
			long++
		}
	}
	if n := len(amy.rights.known); n > rightsMost || long > 0 {
		t.Errorf("%d decisions are kept, %d of long names", n, long)
	}
	if n := len(h.b.denials.by); n != denialsMost || h.b.denials.order.Len() != n {
		t.Errorf("%d refusals are kept, %d in order", n, h.b.denials.order.Len())
	}
}

func TestTheStepIsPrintedAndNotThereWithoutAnAuthorizer(t *testing.T) {
	names := func(steps []step) (out []string) {
		for _, s := range steps {
			out = append(out, s.name)
		}
		return out
	}
	_, change := lawful()
	with, without := open(t, nil, change).b, open(t, nil, nil).b
	if !slices.Contains(SendSteps(), authorizeStep) || !slices.Equal(names(with.steps), SendSteps()) ||
		!slices.Contains(names(with.transactedSteps), authorizeStep) {
		t.Errorf("the steps are %v, in a transaction %v", names(with.steps), names(with.transactedSteps))
	}
	if slices.Contains(names(without.steps), authorizeStep) ||
		slices.Contains(names(without.transactedSteps), authorizeStep) {
		t.Errorf("without an authorizer %v", names(without.steps))
	}
}

func TestNobodyIsAuthorizedWhomNobodyAuthenticated(t *testing.T) {
	l, change := lawful("amy all >")
	h := open(t, nil, func(o *Options) { change(o); o.Authenticator = nil })
	denied(t, h.connect("a", "a", "amy", nil).produce("a", queueNamed("Q"), 1),
		"User is not authenticated.")
	if l.asked > 0 {
		t.Error("the authorizer was asked")
	}
}

func TestARefusedSendBreaksItsTransaction(t *testing.T) {
	_, change := lawful("amy all OPEN")
	h := open(t, nil, change)
	amy := h.connect("a", "a", "amy", nil)
	tx := amy.begin("a", 1)
	m := amy.mail("a", queueNamed("SECRET"), 1)
	m.Transaction = tx
	amy.Handle(m) // asks no answer
	if e := amy.finish(tx, message.CommitOnePhase); e == nil ||
		!strings.Contains(e.Message, "not authorized") {
		t.Errorf("committed with %v", e)
	}
	if h.b.find(queueNamed("SECRET")) != nil {
		t.Error("it made its destination")
	}
}

func TestWhoMayReadMakeAndRemove(t *testing.T) {
	_, change := lawful("boss all >", "amy read READ", "amy read NEW", "amy all MINE",
		"amy read topic://READ", "amy all temp-queue://>")
	h := open(t, nil, change)
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	for _, name := range []string{"READ", "SECRET"} {
		boss.produce("b", queueNamed(name), 1)
	}
	n := int64(0)
	try := func(d message.Destination, browser bool) *message.Throwable {
		n++
		return amy.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "a", Session: 1,
			Value: 100 + n}, Destination: d, PrefetchSize: 10, Browser: browser})
	}
	for _, browser := range []bool{false, true} {
		denied(t, try(queueNamed("SECRET"), browser), amyNot+"read from: queue://SECRET")
		denied(t, try(queueNamed("NEW"), browser), amyNot+"create: queue://NEW")
		if e := try(queueNamed("READ"), browser); e != nil {
			t.Error(e)
		}
	}
	denied(t, try(topicNamed("ActiveMQ.Advisory.Queue"), false),
		amyNot+"read from: topic://ActiveMQ.Advisory.Queue")
	del := func(name string) *message.Throwable {
		return amy.do(&message.DestinationInfo{Destination: queueNamed(name),
			Op: message.RemoveDestination})
	}
	denied(t, amy.do(&message.DestinationInfo{Destination: queueNamed("X")}),
		amyNot+"create: queue://X")
	denied(t, del("SECRET"), amyNot+"remove: queue://SECRET")
	denied(t, amy.do(&message.DestinationInfo{Destination: message.Destination{
		Kind: message.TempTopic, Name: "a:1"}}), amyNot+"create: temp-topic://a:1")
	denied(t, try(message.Destination{Kind: message.TempTopic, Name: "a:2"}, false),
		amyNot+"read from: temp-topic://a:2")
	if e := amy.do(&message.DestinationInfo{Destination: message.Destination{
		Kind: message.TempQueue, Name: "a:1"}}); e != nil {
		t.Error(e)
	}
	if e := amy.produce("a", queueNamed("MINE"), 1); e != nil {
		t.Error(e)
	}
	if e := del("MINE"); e != nil {
		t.Error(e)
	}
}

func TestAPatternGetsWhatItsUserMayRead(t *testing.T) {
	_, change := lawful("boss all >", "amy pattern *.X", "amy read A.X", "amy read C.X")
	h := open(t, nil, change)
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	boss.produce("b", queueNamed("A.X"), 1)
	boss.produce("b", queueNamed("B.X"), 2)
	amy.consume("a", queueNamed("*.X"))
	for i, name := range []string{"C.X", "D.X", "B.X"} {
		boss.produce("b", queueNamed(name), int64(3+i))
	}
	amy.expect(t, "A.X", "C.X")
	for _, name := range []string{"B.X", "D.X"} {
		x := h.explained(queueNamed(name))
		if !slices.ContainsFunc(x.Refused, func(r Refusal) bool { return r.User == "amy" }) {
			t.Errorf("%s is explained as %+v", name, x)
		}
	}
	if slices.ContainsFunc(h.events, func(e Event) bool { return e.Kind == AccessDenied }) {
		t.Error("what a pattern does not get is told as a mistake")
	}
}

func TestABrowserOfAPatternSeesWhatItsUserMayRead(t *testing.T) {
	_, change := lawful("boss all >", "amy pattern *.X", "amy read A.X")
	h := open(t, nil, change)
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	boss.produce("b", queueNamed("A.X"), 1)
	boss.produce("b", queueNamed("B.X"), 2)
	amy.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "a", Session: 1, Value: 5},
		Destination: queueNamed("*.X"), PrefetchSize: 10, Browser: true})
	amy.expect(t, "A.X")
}

// expect fails unless the guest got one message of each of these.
func (g *guest) expect(t *testing.T, names ...string) {
	t.Helper()
	var from []string
	for _, id := range g.got {
		from = append(from, g.from[id].Name)
	}
	slices.Sort(from)
	if !slices.Equal(from, names) {
		t.Errorf("got from %v, not %v", from, names)
	}
}

// TestOneOfSeveralIsJoinedWhenItIsMade: to name several destinations makes none that the user may
// not make.
func TestOneOfSeveralIsJoinedWhenItIsMade(t *testing.T) {
	_, change := lawful("boss all >", "amy read >")
	h := open(t, nil, change)
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	boss.produce("b", queueNamed("OLD"), 1)
	amy.consume("a", queueNamed("OLD,NEW"))
	if h.b.find(queueNamed("NEW")) != nil {
		t.Error("it was made")
	}
	boss.produce("b", queueNamed("NEW"), 2)
	amy.expect(t, "NEW", "OLD")
}

func TestADurableSubscriptionKeepsWhatItsUserMayRead(t *testing.T) {
	_, change := lawful("boss all topic://>", "amy pattern topic://*", "amy read topic://A")
	h := open(t, nil, change)
	sub := &message.ConsumerInfo{ID: message.ConsumerID{Connection: "a", Session: 1, Value: 5},
		Destination: topicNamed("*"), PrefetchSize: 10, SubscriptionName: "s"}
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	if e := amy.do(sub); e != nil {
		t.Fatal(e)
	}
	boss.produce("b", topicNamed("A"), 1)
	boss.produce("b", topicNamed("B"), 2)
	amy.expect(t, "A")
	amy.do(&message.RemoveInfo{Object: sub.ID})
	boss.produce("b", topicNamed("B"), 3)
	if n := h.b.durables.list[0].dest.queue.Len(); n != 1 {
		t.Errorf("%d messages are kept", n)
	}

	// After a restart its user is not known before it comes.
	h.turn()
	h = open(t, h.disk, change)
	boss = h.connect("b", "b", "boss", nil)
	boss.produce("b", topicNamed("A"), 4)
	boss.produce("b", topicNamed("B"), 5)
	amy = h.connect("a", "a", "amy", nil)
	sub.ID.Value++
	if e := amy.do(sub); e != nil {
		t.Fatal(e)
	}
	boss.produce("b", topicNamed("A"), 6)
	boss.produce("b", topicNamed("B"), 7)
	amy.expect(t, "A", "A", "A")
	amy.do(&message.MessageAck{Consumer: sub.ID, Destination: topicNamed("A"), Count: 3,
		Type: message.StandardAck, Last: amy.got[2], HasLast: true})
	if rows := h.explained(topicNamed("B")).Rows; len(rows) == 0 ||
		rows[0].Reason != message.AccessDenied || rows[0].Count != 1 {
		t.Errorf("what is kept of another topic is explained as %+v", rows)
	}
}

func TestAnAdvisoryGoesToWhoMayReadItsTopic(t *testing.T) {
	_, change := lawful("boss all >", "amy pattern topic://ActiveMQ.Advisory.*",
		"amy read topic://ActiveMQ.Advisory.Topic")
	h := open(t, nil, change)
	boss, amy := h.connect("b", "b", "boss", nil), h.connect("a", "a", "amy", nil)
	boss.do(&message.DestinationInfo{Destination: queueNamed("BEFORE")})
	amy.consume("a", topicNamed("ActiveMQ.Advisory.*"))
	boss.do(&message.DestinationInfo{Destination: queueNamed("Q")})
	if len(amy.got) > 0 {
		t.Errorf("%d advisories came", len(amy.got))
	}
	h.b.opt.Authorizer.(*law).lists = append(h.b.opt.Authorizer.(*law).lists, "boss all topic://>")
	boss.do(&message.DestinationInfo{Destination: topicNamed("T")})
	amy.expect(t, "ActiveMQ.Advisory.Topic")
}

func TestUsersOfOneNameThatActForBridgesShareNoRights(t *testing.T) {
	_, change := lawful()
	h := open(t, nil, change)
	n := &h.b.networks
	in := &message.Principal{User: "net", Groups: []string{"bridges"}}
	out := &message.Principal{User: "net"} // its password was wrong
	first := n.rightsOf(h.b, in, "ID:p")
	if n.rightsOf(h.b, out, "ID:p") == first {
		t.Error("who was let in and who was not have the same rights")
	}
	if n.rightsOf(h.b, in, "ID:p") != first {
		t.Error("what is decided is not remembered")
	}
	for i := range 3 * actorsMost {
		n.rightsOf(h.b, in, message.BrokerID(fmt.Sprint("ID:", i)))
	}
	if len(n.actors) > actorsMost {
		t.Errorf("%d are remembered", len(n.actors))
	}
}

// names notes the destinations of what a bridge gets.
type names []string

func (n *names) Deliver(d network.Delivery) bool {
	*n = append(*n, d.Ref.Destination.Name)
	return true
}

func TestABridgeGetsTheAdvisoriesItsUserMayRead(t *testing.T) {
	_, change := lawful("boss all >", "boss all topic://>", "net pattern topic://ActiveMQ.Advisory.*",
		"net read topic://ActiveMQ.Advisory.Topic")
	h := open(t, nil, change)
	boss := h.connect("b", "b", "boss", nil)
	var got names
	err := h.b.Subscribe(&network.Subscription{As: &message.Principal{User: "net"}, Peer: "ID:p",
		Filter: takeAll{}, Sink: &got, Info: &message.ConsumerInfo{PrefetchSize: 100,
			Destination: topicNamed("ActiveMQ.Advisory.*"), NetworkSubscription: true,
			ID: message.ConsumerID{Connection: "n", Value: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	boss.do(&message.DestinationInfo{Destination: queueNamed("SECRET")})
	boss.do(&message.DestinationInfo{Destination: topicNamed("T")})
	if !slices.Equal(got, names{"ActiveMQ.Advisory.Topic"}) {
		t.Errorf("it gets %v", got)
	}
}

func TestABridgeIsBoundByItsUsersRights(t *testing.T) {
	_, change := lawful("boss all >", "net read READ", "net write WRITE", "net pattern *.X",
		"net read A.X")
	h := open(t, nil, change)
	boss := h.connect("b", "b", "boss", nil)
	for i, name := range []string{"READ", "WRITE", "A.X", "B.X"} {
		boss.produce("b", queueNamed(name), int64(i))
	}
	net := &message.Principal{User: "net"}
	subscribe := func(d message.Destination) error {
		return h.b.Subscribe(&network.Subscription{As: net, Peer: "ID:p",
			Filter: takeAll{}, Sink: takeAll{}, Info: &message.ConsumerInfo{
				Destination: d, PrefetchSize: 10, NetworkSubscription: true,
				ID: message.ConsumerID{Connection: "n", Value: int64(len(h.b.networks.order))}}})
	}
	refused := func(err error, text string) {
		t.Helper()
		if message.KindOf(err) != message.Denied || err.Error() != text {
			t.Errorf("%v, not %s", err, text)
		}
	}
	refused(subscribe(queueNamed("WRITE")), netNot+"read from: queue://WRITE")
	refused(subscribe(queueNamed("NONE")), netNot+"read from: queue://NONE")
	for _, name := range []string{"READ", "*.X"} {
		if err := subscribe(queueNamed(name)); err != nil {
			t.Error(err)
		}
	}
	boss.produce("b", queueNamed("C.X"), 9)
	for name, n := range map[string]int{"READ": 1, "WRITE": 0, "A.X": 1, "B.X": 0, "C.X": 0} {
		if got := len(h.b.find(queueNamed(name)).nets); got != n {
			t.Errorf("%d bridges on %s", got, name)
		}
	}
	send := func(name string, n int64) (err error) {
		m := &message.Message{Destination: queueNamed(name), ID: message.MessageID{Sequence: n},
			BrokerPath: []message.BrokerID{"ID:p"}}
		h.b.Receive(m, network.Peer{ID: "ID:p", As: net}, func(e error) { err = e })
		h.turn()
		return err
	}
	refused(send("READ", 1), netNot+"write to: queue://READ")
	if err := send("WRITE", 2); err != nil {
		t.Error(err)
	}
	refused(h.b.Temp(network.Peer{ID: "ID:p", As: net}, &message.DestinationInfo{
		Destination: message.Destination{Kind: message.TempQueue, Name: "x:1"}}),
		netNot+"create: temp-queue://x:1")
}

// takeAll is a bridge's filter and sink that takes all.
type takeAll struct{}

func (takeAll) Gate(time.Duration) message.Verdict                      { return message.Verdict{} }
func (takeAll) Verdict(network.Candidate) message.Verdict               { return message.Verdict{} }
func (takeAll) Took(message.Destination, network.Replay, time.Duration) {}
func (takeAll) Deliver(network.Delivery) bool                           { return true }

// BenchmarkSend sends to a topic that nobody listens to: what the steps of a send cost.
func BenchmarkSend(b *testing.B) {
	for name, change := range map[string]func(*Options){
		"without an authorizer": func(*Options) {},
		"with one": func(o *Options) {
			o.Authorizer, o.Authenticator = &law{lists: []string{"amy all topic://>"}}, anyone{}
		},
	} {
		b.Run(name, func(b *testing.B) {
			h := open(&testing.T{}, nil, change)
			amy := h.connect("a", "a", "amy", nil)
			m := amy.mail("a", topicNamed("T"), 0)
			m.Persistent = false
			b.ReportAllocs()
			for b.Loop() {
				m.ID.Sequence++
				amy.Handle(m)
			}
		})
	}
}
