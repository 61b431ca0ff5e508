package interop

import (
	"strconv"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// narrowPolicies are of destinations with little memory. Some are not spooled; those without flow
// control keep nobody waiting.
const narrowPolicies = `
<policyEntry queue="narrow.>" memoryLimit="40 kb">
  <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
<policyEntry queue="stored.>" memoryLimit="40 kb"/>
<policyEntry queue="spooled.>" memoryLimit="40 kb"/>
<policyEntry topic="spooled.>" memoryLimit="40 kb"/>
<policyEntry queue="loose.>" memoryLimit="40 kb" producerFlowControl="false"/>
<policyEntry queue="free.>" memoryLimit="40 kb" producerFlowControl="false">
  <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
`

// big is a message of which a narrow queue has room for a few.
func big(dest string, n int, persistent bool) jms.SendOptions {
	return jms.SendOptions{Dest: dest, N: n, Body: "m{} " + strings.Repeat("x", 9000),
		NonPersistent: !persistent}
}

// fill sends to a queue until it is refused.
func (p *program) fill(s *jms.Session, dest string) error {
	p.t.Helper()
	for range 20 {
		if _, err := s.TrySend(big(dest, 1, false)); err != nil {
			return err
		}
	}
	p.t.Fatal("all is taken")
	return nil
}

// begins sends beside the program, and ends with the exception.
func begins(s *jms.Session, o jms.SendOptions) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.TrySend(o)
		done <- err
	}()
	return done
}

// numbers says the first words of messages, if they are 0, 1, 2 and so on how many.
func (p *program) numbers(label string, messages []jms.Msg) {
	p.say("%s: %d", label, len(messages))
	for i, m := range messages {
		if word, _, _ := strings.Cut(m.Body, " "); word != "m"+strconv.Itoa(i) {
			p.say("  at %d %s", i, word)
		}
	}
}

// flowScenarios are about queues that are full.
var flowScenarios = []scenario{
	{"a full queue holds its producer until there is room", func(p *program) {
		dest := p.under("narrow", "")
		done := begins(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), big(dest, 30, false))
		p.stalls(done)
		c := p.pull(p.session(jms.Auto), dest)
		p.numbers("taken", c.Receive(30, patience))
		p.failed("sent", <-done)
	}},
	{"what is stored takes no memory of its queue", func(p *program) {
		dest := p.under("stored", "")
		p.session(jms.Auto).Send(big(dest, 30, true))
		p.numbers("taken", p.pull(p.session(jms.Auto), dest).Receive(30, patience))
	}},
	{"what is not stored is spooled", func(p *program) {
		for _, name := range []string{"spooled", "loose"} {
			dest := p.under(name, "")
			done := begins(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), big(dest, 60, false))
			p.failed("sent to "+name, <-done)
			p.say("browsed: %d", len(p.conn.Browse(dest, "")))
			s := p.session(jms.Transacted)
			c := p.pull(s, dest)
			p.numbers("taken", c.Receive(10, patience))
			must(p.t, s.Rollback())
			p.numbers("again", c.Receive(60, patience))
			must(p.t, s.Commit())
			p.say("left: %d", len(p.conn.Browse(dest, "")))
		}
	}},
	{"a slow subscriber holds producers at its topic's limit", func(p *program) {
		topic := "topic://spooled." + p.name
		slow := p.pull(p.session(jms.Auto), topic+"?consumer.prefetchSize=1")
		done := begins(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), big(topic, 60, false))
		p.stalls(done)
		p.numbers("heard", slow.Receive(60, patience))
		p.failed("sent", <-done)
	}},
	{"a held producer's connection goes on", func(p *program) {
		conn := p.with("jms.alwaysSyncSend=true")
		dest := p.under("narrow", "")
		c := p.pull(conn.Session(jms.Client), dest+"?consumer.prefetchSize=1")
		done := begins(conn.Session(jms.Auto), big(dest, 30, false))
		p.stalls(done)
		conn.Send(p.queue(".other"), 1, "other")
		p.got("elsewhere", conn.Consumer(p.queue(".other")).Wait(1, patience))
		for range 30 {
			c.Receive(1, patience)
			must(p.t, c.Ack())
		}
		p.numbers("taken", c.Received())
		p.failed("sent", <-done)
	}},
	{"a window holds a producer and not its connection", func(p *program) {
		conn := p.with("jms.useAsyncSend=true", "jms.producerWindowSize=20000")
		dest := p.under("narrow", "")
		done := begins(conn.Session(jms.Auto), big(dest, 30, false))
		p.stalls(done)
		conn.Put(jms.SendOptions{Dest: p.queue(".other"), Body: "other"})
		p.got("elsewhere", conn.Consumer(p.queue(".other")).Wait(1, patience))
		c := p.pull(conn.Session(jms.Auto), dest)
		p.say("taken: %d", len(c.Receive(30, patience))) // a real ActiveMQ swaps two now and then
		p.failed("sent", <-done)
	}},
	{"a producer without window and answers is held with its connection", func(p *program) {
		conn := p.with("jms.useAsyncSend=true")
		dest := p.under("narrow", "")
		done := begins(conn.Session(jms.Auto), big(dest, 30, false))
		c := p.pull(p.session(jms.Auto), dest)
		p.numbers("taken", c.Receive(30, patience))
		p.failed("sent", <-done)
	}},
	{"a queue without flow control takes everything", func(p *program) {
		dest := p.under("free", "")
		p.session(jms.Auto).Send(big(dest, 30, true))
		p.session(jms.Auto).Send(big(dest, 30, false))
		p.say("taken: %d", len(p.pull(p.session(jms.Auto), dest).Receive(60, patience)))
	}},
}

// refusalScenarios are about queues that are full and refuse.
var refusalScenarios = []scenario{
	{"a full queue refuses", func(p *program) {
		s := p.with("jms.alwaysSyncSend=true").Session(jms.Auto)
		dest := p.under("narrow", "")
		p.failed("the one too many", p.fill(s, dest))
		_, err := s.TrySend(big(dest, 1, false))
		p.failed("another", err)
		c := p.pull(p.session(jms.Auto), dest)
		p.say("taken: %t", len(c.Receive(20, soon/4)) > 1)
		_, err = s.TrySend(big(dest, 1, false))
		p.failed("with room", err)
		p.numbers("then", c.Receive(1, patience))
	}},
	{"a full queue tells who asked for no answer", func(p *program) {
		dest := p.under("narrow", "")
		p.failed("full", p.fill(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), dest))
		conn := p.with("jms.useAsyncSend=true")
		_, err := conn.Session(jms.Auto).TrySend(big(dest, 1, false))
		p.failed("sent", err)
		p.faults(conn)
		conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "then"})
		p.got("then", conn.Consumer(p.queue("")).Wait(1, patience))
	}},
	{"a transaction with a refused send", func(p *program) {
		dest := p.under("narrow", "")
		p.failed("full", p.fill(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), dest))
		p.send(p.queue(".in"), 1)
		conn := p.with(atOnce)
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(".in"))
		p.got("in", c.Receive(1, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), Body: "out"})
		_, err := s.TrySend(big(dest, 1, false))
		p.failed("sent", err)
		p.faults(conn)
		p.say("committed: %t", s.Commit() == nil)
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
		p.got("in again", c.Receive(1, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), Body: "then"})
		p.failed("commit", s.Commit())
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
	}},
}

// TestAJMSProgramIsRefusedRoomAsByActiveMQ compares with transcripts, as
// TestAJMSProgramSeesWhatItSeesOfActiveMQ does.
func TestAJMSProgramIsRefusedRoomAsByActiveMQ(t *testing.T) {
	mostKinds(t, func(t *testing.T, k broker.Kind) {
		b := broker.Start(t, k, broker.Options{Persistent: true, Policy: narrowPolicies,
			Usage: `sendFailIfNoSpace="true"`})
		playAll(t, b, play, refusalScenarios)
	})
}

// faults says what the exception listener of a connection heard.
func (p *program) faults(conn *jms.Conn) {
	p.t.Helper()
	p.pause(soon / 2)
	for _, f := range conn.Faults() {
		p.failed("heard", f)
	}
}

// stalls waits until a send has had time enough to end, and says whether it has.
func (p *program) stalls(done <-chan error) {
	p.t.Helper()
	p.pause(soon / 4)
	p.say("held: %t", len(done) == 0)
}
