package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/need"
	"hopwire/test/proxy"
	"hopwire/test/wait"
)

// storm is two persistent brokers with a bridge over a proxy, and messages that cross it while
// something goes wrong.
type storm struct {
	t    *testing.T
	a, b *broker.Broker
	link *proxy.Proxy
	rand *rand.Rand

	data, answers proxy.Direction // which way messages go over the link

	faulted []int64 // how many bytes had passed at each kill or stop among the present messages
}

// unanswered is how many messages the bridge may have sent without an answer, and latency how long
// each way takes: some thousand messages take long enough for faults to find them under way.
const (
	unanswered = 200
	latency    = 20 * time.Millisecond
)

// TestN065FaultsNeitherLoseNorDouble sends 10,000 persistent messages over a bridge and breaks
// first the link, then the sender, then the receiver. Consumers come when it is over, so that
// nothing but the receiving broker itself can have recognised what came twice.
func TestN065FaultsNeitherLoseNorDouble(t *testing.T) {
	for _, p := range pairs {
		if p.a.Real() && p.b.Real() {
			continue // what two real brokers do to each other is not ours to promise
		}
		for _, w := range []way{oneWay, duplexA, duplexB} {
			t.Run(p.String()+", "+w.String(), func(t *testing.T) {
				if always := map[bool]way{true: oneWay, false: duplexB}[p.b.Real()]; p.newer() && w != always {
					need.Soak(t)
				}
				faults(t, p, w)
			})
		}
	}
}

func faults(t *testing.T, p pair, w way) {
	s := startStorm(t, p, w)
	s.cross("Q.CUT", 4000, 0, s.cuts)
	s.cross("Q.SENDER", 3000, 0, func() { s.kill(s.a) })
	most := 0
	if p.b.Real() {
		most = unanswered // it does not remember what it had taken
	}
	s.cross("Q.RECEIVER", 3000, most, func() { s.kill(s.b) })
}

func TestN066ACleanRestartOfEitherSideNeitherLosesNorDoubles(t *testing.T) {
	s := startStorm(t, pair{broker.Hopwire, broker.Hopwire}, oneWay)
	s.cross("Q.SENDER", 2000, 0, func() { s.midst(); s.a.Restart() })
	s.cross("Q.RECEIVER", 2000, 0, func() { s.midst(); s.b.Restart() })
}

func startStorm(t *testing.T, p pair, w way) *storm {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &storm{t: t, rand: rand.New(rand.NewPCG(seed, 0)), data: proxy.Up, answers: proxy.Down}
	if w == duplexB {
		s.data, s.answers = proxy.Down, proxy.Up
		s.a = broker.Start(t, p.a, broker.Options{Name: "a", Persistent: true})
		s.link = proxy.Start(t, s.a.Addr())
		s.b = broker.Start(t, p.b, broker.Options{Name: "b", Persistent: true,
			Connectors: s.connector(w)})
		return s
	}
	s.b = broker.Start(t, p.b, broker.Options{Name: "b", Persistent: true})
	s.link = proxy.Start(t, s.b.Addr())
	s.a = broker.Start(t, p.a, broker.Options{Name: "a", Persistent: true,
		Connectors: s.connector(w)})
	return s
}

func (s *storm) connector(w way) []broker.Connector {
	return []broker.Connector{{
		Name: "ab", URI: "static:(" + s.link.URL() + ")" + quick,
		Attributes: fmt.Sprintf(`prefetchSize="%d" duplex="%t"`, unanswered, w != oneWay),
	}}
}

// demand has a consumer on b that takes nothing, and outlives b's crashes.
func (s *storm) demand(queue string) (done func()) {
	conn := jms.Start(s.t, jms.V5).Connect(failover(s.b))
	conn.Session(jms.Individual).Consumer(jms.ConsumerOptions{
		Dest: "queue://" + queue + "?consumer.prefetchSize=1", Pull: true})
	return func() { must(s.t, conn.Close()) }
}

// cross confirms n messages on a while the link is cut, lets them go while a fault happens, and
// counts them at consumers on b that come afterwards. At most so many may be there twice.
func (s *storm) cross(queue string, n, twiceAtMost int, fault func()) {
	s.t.Helper()
	s.link.Cut()
	d := jms.Start(s.t, jms.V5)
	conn := d.Connect(s.a.URL())
	out := conn.Session(jms.Transacted)
	const part = 500
	for from := 0; from < n; from += part {
		out.Send(jms.SendOptions{Dest: "queue://" + queue, From: from, N: part,
			Body: "{} " + strings.Repeat("x", 200)})
		must(s.t, out.Commit())
	}
	must(s.t, conn.Close())
	done := s.demand(queue)
	before := s.link.Passed(s.data)
	s.faulted = nil
	s.heal()
	fault()
	s.a.WaitQueue(queue, 60*time.Second, "empty", empty)
	done()
	passed := s.link.Passed(s.data)
	for _, at := range s.faulted {
		s.t.Logf("%s: a broker ended after %d of %d bytes", queue, at-before, passed-before)
	}
	c := d.Connect(s.b.URL()).Session(jms.DupsOK).Consumer(
		jms.ConsumerOptions{Dest: "queue://" + queue})
	wait.For(s.t, 60*time.Second, fmt.Sprintf("at the consumer of %s", queue), func() (string, bool) {
		return fmt.Sprintf("%d of %d", c.Count(), n), c.Count() >= n
	})
	s.b.WaitQueue(queue, patience, "empty", empty)
	lost, twice := tally(s.t, n, c)
	s.t.Logf("%s: %d sent, %d lost, %d twice; %d connections so far", queue, n, len(lost), len(twice),
		s.link.Connections())
	if len(lost) > 0 || len(twice) > twiceAtMost {
		s.t.Errorf("%s: %d lost %v, %d twice %v; at most %d may be", queue, len(lost), few(lost),
			len(twice), few(twice), twiceAtMost)
	}
	for _, b := range []*broker.Broker{s.a, s.b} {
		if dead := b.Queue("ActiveMQ.DLQ"); dead.Size > 0 {
			s.t.Errorf("%s: %d dead letters on %s", queue, dead.Size, b.Name())
		}
	}
}

// cuts cuts the link several times, somewhere in the messages or in the answers.
func (s *storm) cuts() {
	for i := range 6 {
		way, bytes := s.data, 50_000+s.rand.Int64N(100_000)
		if i%2 == 1 {
			way, bytes = s.answers, 100+s.rand.Int64N(1_000)
		}
		goal := s.link.Passed(way) + bytes
		s.link.CutAfterBytes(way, bytes)
		wait.For(s.t, patience, "cut", func() (string, bool) {
			passed := s.link.Passed(way)
			return fmt.Sprintf("%d of %d bytes", passed, goal), passed >= goal
		})
		s.heal()
	}
}

func (s *storm) heal() {
	s.link.Heal()
	s.link.Delay(latency)
}

// kill ends a broker in the midst of messages, as a crash does, and starts it again; a quick one
// twice.
func (s *storm) kill(b *broker.Broker) {
	s.killOnce(b)
	if b.Kind() == broker.Hopwire {
		s.killOnce(b)
	}
}

func (s *storm) killOnce(b *broker.Broker) {
	s.midst()
	b.Kill9()
	b.Restart()
}

// midst waits until some more of the messages are over and others are not.
func (s *storm) midst() {
	goal := s.link.Passed(s.data) + 100_000 + s.rand.Int64N(200_000)
	wait.For(s.t, patience, "in the midst", func() (string, bool) {
		passed := s.link.Passed(s.data)
		return fmt.Sprintf("%d of %d bytes", passed, goal), passed >= goal
	})
	s.faulted = append(s.faulted, s.link.Passed(s.data))
}
