package interop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// soon is how long what may not come is waited for.
const soon = 2 * time.Second

// span is what a consumer of several destinations consumes. A body's first letter names where it is
// sent to: a0 and a1 to one queue, b0 to another, capitals to topics.
type span struct {
	p     *program
	title string
	dest  string // of the consumer
	under string // before the letter
	n     int    // prefetch
}

// pattern and members span the same kind of destinations by a wildcard, and by names.
func (p *program) pattern(title, letters string) span {
	s := span{p: p, title: title, under: "." + strings.ReplaceAll(title, " ", "-") + "."}
	s.dest = p.queue(s.under + ">")
	if isTopic(letters[:1]) {
		s.dest = p.topic(s.under + ">")
	}
	return s
}

func (p *program) members(title, letters string) span {
	s := span{p: p, title: title, under: "." + strings.ReplaceAll(title, " ", "-") + "."}
	var names []string
	for _, l := range letters {
		names = append(names, s.of(string(l)))
	}
	s.dest = strings.Join(names, ",")
	return s
}

func isTopic(body string) bool { return body[0] < 'a' }

// of is where a body is sent to.
func (s span) of(body string) string {
	if isTopic(body) {
		return s.p.topic(s.under + body[:1])
	}
	return s.p.queue(s.under + body[:1])
}

// spans plays with consumers of queues a and b: with a wildcard and with a composite, in turn, of
// each prefetch.
func (p *program) spans(play func(s span, conn *jms.Conn), prefetches ...int) {
	for i, n := range prefetches {
		s := p.pattern(fmt.Sprint("pattern ", n), "ab")
		if i%2 == 1 {
			s = p.members(fmt.Sprint("composite ", n), "ab")
		}
		s.n = n
		play(s, p.with(prefetch(n), atOnce))
	}
}

// with connects with options of the client's.
func (p *program) with(options ...string) *jms.Conn {
	p.t.Helper()
	return p.d.Connect(p.b.URL() + "?" + strings.Join(options, "&"))
}

// atOnce has clients deliver again without a delay.
const atOnce = "jms.redeliveryPolicy.initialRedeliveryDelay=0" +
	"&jms.redeliveryPolicy.redeliveryDelay=0"

// prefetch is the option for all consumers of a connection.
func prefetch(n int) string { return fmt.Sprint("jms.prefetchPolicy.all=", n) }

func (s span) put(bodies ...string) {
	s.p.t.Helper()
	s.until(0, bodies...)
}

// until is put of what expires.
func (s span) until(ttl time.Duration, bodies ...string) {
	s.p.t.Helper()
	for _, body := range bodies {
		s.p.conn.Put(jms.SendOptions{Dest: s.of(body), Body: body, TTL: ttl,
			Props: map[string]string{"by": "string:" + s.p.name}})
	}
}

// pause lets time go by.
func (p *program) pause(d time.Duration) {
	over := time.Now().Add(d)
	wait.For(p.t, patience, "time to go by", func() (string, bool) {
		return "", time.Now().After(over)
	})
}

// feed sends and has the consumer get one message after the other, so that their order is known.
func (s span) feed(c *jms.Consumer, bodies ...string) []jms.Msg {
	s.p.t.Helper()
	var got []jms.Msg
	wait := soon
	for i, body := range bodies {
		s.put(body)
		got = append(got, c.Receive(1, wait)...)
		if len(got) <= i {
			wait = soon / 20 // nor will the others come
		}
	}
	s.got("fed", got)
	return got
}

// got says messages in one line: "!" for redelivered, with the count of a delivery that is not the
// first.
func (s span) got(label string, messages []jms.Msg) {
	s.p.say("%s, %s:%s", s.title, label, brief(messages))
}

// set is got for messages whose order is nobody's.
func (s span) set(label string, messages []jms.Msg) {
	messages = slices.Clone(messages)
	slices.SortStableFunc(messages, func(x, y jms.Msg) int {
		return strings.Compare(brief([]jms.Msg{x}), brief([]jms.Msg{y}))
	})
	s.got(label, messages)
}

func brief(messages []jms.Msg) string {
	line := ""
	for _, m := range messages {
		line += " " + m.Body
		if m.Redelivered {
			line += "!"
		}
		if n := m.Prop("JMSXDeliveryCount"); n != "" && n != "1" {
			line += n
		}
	}
	return line
}

func (s span) failed(what string, err error) { s.p.failed(s.title+", "+what, err) }

// pull opens a consumer that is asked for each message.
func (s span) pull(session *jms.Session) *jms.Consumer {
	return session.Consumer(jms.ConsumerOptions{Dest: s.dest, Pull: true})
}

// rest says what another consumer gets, of all that is left.
func (s span) rest() {
	s.p.t.Helper()
	s.set("left", s.left())
}

func (s span) left() []jms.Msg {
	s.p.t.Helper()
	conn := s.p.d.Connect(s.p.b.URL())
	got := s.pull(conn.Session(jms.Auto)).Receive(100, 300*time.Millisecond)
	must(s.p.t, conn.Close())
	return got
}

// dead says the dead letters of this run.
func (s span) dead() {
	s.p.t.Helper()
	c := s.p.session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: "queue://ActiveMQ.DLQ",
		Selector: "by = '" + s.p.name + "'", Pull: true})
	s.set("dead", c.Receive(100, 300*time.Millisecond))
	must(s.p.t, c.Close())
}

// spanScenarios are about acknowledgements of consumers of several queues.
var spanScenarios = []scenario{
	{"messages of several queues are acknowledged one by one", func(p *program) {
		p.spans(func(s span, conn *jms.Conn) {
			for _, mode := range []jms.Mode{jms.Auto, jms.DupsOK} {
				c := s.pull(conn.Session(mode))
				s.feed(c, "a0", "b0", "b1", "a1")
				s.put("a2", "b2")
				s.set(string(mode), c.Receive(2, soon))
				must(p.t, c.Close())
			}
			must(p.t, conn.Close())
			s.rest()
		}, 1000, 1, 0)
	}},
	{"a client acknowledges all queues of its session", func(p *program) {
		p.spans(func(s span, conn *jms.Conn) {
			session := conn.Session(jms.Client)
			c := s.pull(session)
			got := s.feed(c, "a0", "b0", "a1")
			s.failed("ack of the one in the middle", c.AckID(got[1].ID))
			s.feed(c, "b1", "a2", "b2")
			s.failed("recover", session.Recover())
			s.got("again", c.Receive(3, soon))
			s.failed("ack", c.Ack())
			s.feed(c, "b3", "a3")
			s.put("a4", "b4")
			s.failed("close", c.Close())
			s.rest()
		}, 1000, 3, 0)
	}},
	{"a client acknowledges all consumers of its session", func(p *program) {
		session := p.session(jms.Client)
		s := p.pattern("pattern", "ab")
		c := s.pull(session)
		other := p.pull(session, p.queue("-other"))
		s.feed(c, "a0", "b0")
		p.send(p.queue("-other"), 1)
		s.got("other", other.Receive(1, patience))
		s.failed("ack", other.Ack())
		s.feed(c, "b1")
		s.failed("close", session.Close())
		s.rest()
	}},
	{"messages of several queues are acknowledged singly", func(p *program) {
		p.spans(func(s span, conn *jms.Conn) {
			c := s.pull(conn.Session(jms.Individual))
			for i := range 8 {
				got := s.feed(c, fmt.Sprint("a", i), fmt.Sprint("b", i))
				for j, m := range got {
					if i%4 != 3 || j == 1 {
						must(p.t, c.AckID(m.ID))
					}
				}
			}
			p.say("exceptions: %d", len(conn.Faults()))
			must(p.t, conn.Close())
			s.rest()
		}, 1000, 5, 1)
	}},
	{"a transaction of several queues", func(p *program) {
		p.spans(func(s span, conn *jms.Conn) {
			session := conn.Session(jms.Transacted)
			c := s.pull(session)
			s.feed(c, "a0", "b0", "a1", "b1")
			s.failed("rollback", session.Rollback())
			s.got("again", c.Receive(2, soon))
			s.failed("rollback", session.Rollback())
			s.got("again", c.Receive(3, soon))
			s.failed("commit", session.Commit())
			s.got("last", c.Receive(1, soon))
			s.feed(c, "b2", "a2")
			s.failed("commit", session.Commit())
			s.feed(c, "b3", "a3")
			s.put("a4")
			must(p.t, conn.Close())
			s.rest()
		}, 1000, 2, 0)
	}},
	{"what several queues gave is acknowledged late", func(p *program) {
		p.spans(func(s span, _ *jms.Conn) {
			conn := p.with(prefetch(s.n), "jms.optimizeAcknowledge=true")
			session := conn.Session(jms.Auto)
			c := s.pull(session)
			s.feed(c, "a0", "b0", "b1", "a1", "b2", "a2", "b3")
			s.failed("close", c.Close())
			s.rest()
			c = s.pull(session)
			s.feed(c, "b4", "a4", "a5")
			p.say("exceptions: %d", len(conn.Faults()))
			must(p.t, conn.Close())
			s.rest()
		}, 1000, 5, 0)
	}},
	{"a pull from several queues", func(p *program) {
		p.spans(func(s span, conn *jms.Conn) {
			session := conn.Session(jms.Client)
			c := s.pull(session)
			s.got("empty", c.Receive(1, 200*time.Millisecond))
			s.got("empty at once", c.Receive(1, 0))
			s.put("a0", "b0", "a1")
			s.set("pulled", append(c.Receive(1, 0), c.Receive(2, soon)...))
			s.got("empty", c.Receive(1, 0))
			other := s.pull(p.with(prefetch(0)).Session(jms.Auto))
			s.got("other", other.Receive(1, 0))
			s.failed("ack", c.Ack())
			s.put("b1")
			s.got("other", other.Receive(1, soon))
			s.feed(c, "a2")
			s.failed("close", session.Close())
			s.rest()
		}, 0, 0)
	}},
	{"expired messages amid those of several queues", func(p *program) {
		for i, mode := range modes {
			s := p.pattern(fmt.Sprint("pattern ", mode), "ab")
			if i%2 == 0 {
				s = p.members(fmt.Sprint("composite ", mode), "ab")
			}
			conn := p.with(prefetch(5))
			session := conn.Session(mode)
			c := s.pull(session)
			for n := range 2 {
				s.until(150*time.Millisecond, fmt.Sprint("a", n), fmt.Sprint("b", n))
				s.put(fmt.Sprint("a", n+2), fmt.Sprint("b", n+2))
			}
			p.pause(300 * time.Millisecond)
			s.set("timely", c.Receive(4, soon))
			s.feed(c, "a4", "b4", "a5", "b5")
			s.settle(session, c, c.Received())
			p.say("exceptions: %d", len(conn.Faults()))
			must(p.t, conn.Close())
			s.rest()
		}
		p.pattern("all", "ab").dead()
	}},
	{"poison of several queues goes to the dead letters", func(p *program) {
		for _, s := range []span{p.pattern("pattern", "ab"), p.members("composite", "ab")} {
			conn := p.with("jms.redeliveryPolicy.maximumRedeliveries=1",
				"jms.redeliveryPolicy.initialRedeliveryDelay=10")
			session := conn.Session(jms.Transacted)
			c := s.pull(session)
			s.feed(c, "a0", "b0", "a1")
			s.failed("rollback", session.Rollback())
			s.got("again", c.Receive(2, soon))
			s.failed("rollback", session.Rollback())
			s.got("then", c.Receive(1, soon))
			s.feed(c, "b1")
			s.failed("commit", session.Commit())
			p.say("exceptions: %d", len(conn.Faults()))
			must(p.t, conn.Close())
			s.rest()
			s.dead()
			conn = p.with("jms.redeliveryPolicy.maximumRedeliveries=1",
				"jms.redeliveryPolicy.initialRedeliveryDelay=10")
			c = conn.Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: s.dest, Fail: 4})
			s.put("a5")
			c.Wait(2, patience)
			s.put("b5")
			c.Wait(4, patience)
			s.put("a6")
			s.got("heard", c.Wait(5, patience))
			must(p.t, conn.Close())
			s.rest()
			s.dead()
		}
	}},
	{"a composite is sent to several queues of one consumer", func(p *program) {
		for _, mode := range modes {
			for _, n := range []int{1000, 1} {
				if n == 1 && mode != jms.Client {
					continue
				}
				s := p.members(fmt.Sprint("three ", mode, " ", n), "abc")
				conn := p.with(prefetch(n), "jms.optimizeAcknowledge=true")
				session := conn.Session(mode)
				c := s.pull(session)
				p.conn.Send(s.dest, 3, "m{}")
				got := c.Receive(9, soon/2)
				s.set("got", got)
				s.settle(session, c, got)
				p.say("exceptions: %d", len(conn.Faults()))
				must(p.t, conn.Close())
				p.say("%s, some come again: %t", s.title, len(s.left()) > 0)
			}
		}
	}},
}

// settle acknowledges what a consumer got last, as its session does.
func (s span) settle(session *jms.Session, c *jms.Consumer, got []jms.Msg) {
	s.p.t.Helper()
	switch session.Mode() {
	case jms.Client:
		s.failed("ack", c.Ack())
	case jms.Transacted:
		s.failed("commit", session.Commit())
	case jms.Individual:
		for _, m := range got {
			must(s.p.t, c.AckCopy(m))
		}
	}
}
