package interop

import (
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// declared are destinations that all brokers of these programs begin with.
const declared = `<destinations><queue physicalName="declared.queue"/>` +
	`<topic physicalName="declared.topic"/></destinations>`

// destinationScenarios are about what destinations come from and how they end.
var destinationScenarios = []scenario{
	{"destinations are declared or made by use", func(p *program) {
		p.say("declared: %t %t", p.b.Queue("declared.queue").Exists, p.b.Topic("declared.topic").Exists)
		p.say("the other kinds: %t %t", p.b.Topic("declared.queue").Exists,
			p.b.Queue("declared.topic").Exists)
		p.say("before use: %t", p.b.Queue(p.bare("")).Exists)
		p.conn.Browse(p.queue(""), "")
		p.say("browsed: %t", p.b.Queue(p.bare("")).Exists)
		p.pull(p.session(jms.Auto), p.queue(".consumed"))
		p.say("consumed: %t", p.b.Queue(p.bare(".consumed")).Exists)
		p.send(p.topic(".sent"), 1)
		p.say("sent to: %t", p.b.Topic(p.bare(".sent")).Exists)
		p.pull(p.session(jms.Auto), p.queue(".none.>"))
		p.say("a pattern: %t", p.b.Queue(p.bare(".none")).Exists)
	}},
	{"a queue is destroyed with its messages", func(p *program) {
		p.send(p.queue(""), 3)
		s := p.session(jms.Auto)
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "more"})
		p.failed("destroy", p.conn.Destroy(p.queue("")))
		p.say("is there: %t", p.b.Queue(p.bare("")).Exists)
		p.failed("again", p.conn.Destroy(p.queue("")))
		_, err := s.TrySend(jms.SendOptions{Dest: p.queue(""), Body: "anew"})
		p.failed("send", err)
		p.got("then", p.conn.Consumer(p.queue("")).Wait(1, patience))
	}},
	{"a destination with consumers is not destroyed", func(p *program) {
		for _, dest := range []string{p.queue(""), p.topic("")} {
			c := p.conn.Consumer(dest)
			p.failed("destroy", p.conn.Destroy(dest))
			p.failed("by another", p.d.Connect(p.b.URL()).Destroy(dest))
			p.send(dest, 2)
			p.got("goes on", c.Wait(2, patience))
			must(p.t, c.Close())
			p.failed("after its close", p.conn.Destroy(dest))
		}
	}},
	{"a topic with durable subscriptions is destroyed", func(p *program) {
		conn := p.as("r")
		c := conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		p.failed("while one is active", p.conn.Destroy(p.topic("")))
		must(p.t, c.Close())
		p.send(p.topic(""), 2)
		p.failed("while none is active", p.conn.Destroy(p.topic("")))
		c = conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		p.got("what is left", p.calm(c))
		p.send(p.topic(""), 1)
		p.got("then", c.Wait(3, patience)[2:])
	}},
	{"a destination of a pattern consumer is not destroyed", func(p *program) {
		c := p.conn.Consumer(p.queue(".>"))
		p.send(p.queue(".a"), 1)
		c.Wait(1, patience)
		p.failed("destroy", p.conn.Destroy(p.queue(".a")))
		must(p.t, c.Close())
		p.failed("destroy", p.conn.Destroy(p.queue(".a")))
	}},
	{"a temporary topic is for who listens", func(p *program) {
		s := p.session(jms.Auto)
		temp, err := s.Temporary(true)
		must(p.t, err)
		other := p.d.Connect(p.b.URL())
		other.Send(temp, 1, "before")
		one, two := p.conn.Consumer(temp), p.conn.Consumer(temp)
		other.Send(temp, 2, "m{}")
		p.got("one", one.Wait(2, patience))
		p.got("two", two.Wait(2, patience))
		_, err = other.Session(jms.Auto).TryConsumer(jms.ConsumerOptions{Dest: temp})
		p.failed("a stranger listens", err)
	}},
	{"a temporary destination is deleted", func(p *program) {
		for _, topic := range []bool{false, true} {
			s := p.session(jms.Auto)
			temp, err := s.Temporary(topic)
			must(p.t, err)
			other := p.d.Connect(p.b.URL())
			out := other.Session(jms.Auto)
			out.Send(jms.SendOptions{Dest: temp, Body: "m"})
			c := p.pull(s, temp)
			p.failed("with a consumer", p.conn.Destroy(temp))
			p.failed("by a stranger", other.Destroy(temp))
			must(p.t, c.Close())
			p.failed("without", p.conn.Destroy(temp))
			p.unsent("a stranger sends", out, temp)
			_, err = s.TryConsumer(jms.ConsumerOptions{Dest: temp})
			p.failed("its owner listens", err)
		}
	}},
	{"what a temporary queue held ends with it", func(p *program) {
		other := p.d.Connect(p.b.URL())
		s := other.Session(jms.Auto)
		temp, err := s.Temporary(false)
		must(p.t, err)
		p.send(temp, 3)
		out := p.session(jms.Auto)
		out.Send(jms.SendOptions{Dest: temp, Body: "m3"})
		p.got("browsed by its owner", other.Browse(temp, ""))
		c := p.pull(s, temp)
		p.got("taken", c.Receive(1, patience))
		must(p.t, c.Close())
		p.got("left", other.Browse(temp, ""))
		must(p.t, other.Close())
		p.unsent("after its end", out, temp)
	}},
	{"a temporary queue lives as long as its connection, not its session", func(p *program) {
		s := p.session(jms.Auto)
		temp, err := s.Temporary(false)
		must(p.t, err)
		must(p.t, s.Close())
		p.d.Connect(p.b.URL()).Send(temp, 1, "m")
		p.got("another session", p.pull(p.session(jms.Auto), temp).Receive(1, patience))
	}},
	{"a transaction sends to a temporary queue", func(p *program) {
		s := p.session(jms.Transacted)
		temp, err := s.Temporary(false)
		must(p.t, err)
		s.Send(jms.SendOptions{Dest: temp, N: 2, Body: "gone{}"})
		p.failed("rollback", s.Rollback())
		s.Send(jms.SendOptions{Dest: temp, N: 2, Body: "m{}"})
		p.failed("commit", s.Commit())
		c := p.pull(s, temp)
		p.got("taken", c.Receive(2, patience))
		p.failed("rollback", s.Rollback())
		p.got("again", c.Receive(2, patience))
		p.failed("commit", s.Commit())
		p.none("left", c)
	}},
	{"replies go where they are asked to", func(p *program) {
		p.d.Connect(p.b.URL()).Session(jms.Auto).Consumer(
			jms.ConsumerOptions{Dest: p.queue(""), Reply: true})
		temp, err := p.session(jms.Auto).Temporary(true)
		must(p.t, err)
		for _, dest := range []string{p.queue(".r"), p.topic(".r"), temp} {
			c := p.conn.Consumer(dest)
			p.conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "?", ReplyTo: dest})
			m := c.Wait(1, patience)[0]
			p.say("%s: right %t", unnamed.ReplaceAllString(m.Dest, "ID"),
				strings.HasSuffix(m.Body, m.CorrelationID))
		}
	}},
}

// unsent says what becomes of a send to a temporary destination that is no more. Its producer's
// client may hear of that a little later.
func (p *program) unsent(what string, s *jms.Session, temp string) {
	p.t.Helper()
	p.pause(300 * time.Millisecond)
	_, err := s.TrySend(jms.SendOptions{Dest: temp, Body: "late"})
	p.failed(what, err)
}
