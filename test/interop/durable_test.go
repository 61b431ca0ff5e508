package interop

import (
	"strings"
	"time"

	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// as connects with a client id of this run.
func (p *program) as(client string) *jms.Conn {
	p.t.Helper()
	c, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL(), ClientID: p.name + client})
	must(p.t, err)
	return c
}

// durable is a consumer of the subscription "sub".
func (p *program) durable(dest string) jms.ConsumerOptions {
	return jms.ConsumerOptions{Dest: dest, Durable: "sub"}
}

// told says an exception with its text, but for what only one broker adds behind it.
func (p *program) told(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
		text = text[strings.LastIndex(text, ": ")+2:]
		text, _, _ = strings.Cut(text, "; it is connected")
		if i := strings.Index(err.Error(), "Durable"); i >= 0 {
			text, _, _ = strings.Cut(err.Error()[i:], ";")
		}
	}
	p.say("%s: %s %s", what, class(err), strings.ReplaceAll(text, p.name, "NAME"))
}

// calm waits until a consumer got nothing for a while, and gives what it got.
func (p *program) calm(c *jms.Consumer) []jms.Msg {
	last, since := 0, time.Now()
	wait.For(p.t, patience, "a while without messages", func() (string, bool) {
		if n := c.Count(); n != last {
			last, since = n, time.Now()
		}
		return "", time.Since(since) > 400*time.Millisecond
	})
	return c.Received()
}

// durableScenarios are about durable subscriptions.
var durableScenarios = []scenario{
	{"a durable subscription keeps what is sent while it is away", func(p *program) {
		conn := p.as("r")
		conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		must(p.t, conn.Close())
		p.send(p.topic(""), 3)
		p.session(jms.Auto).Send(jms.SendOptions{Dest: p.topic(""), Body: "np", NonPersistent: true})
		conn = p.as("r")
		s := conn.Session(jms.Auto)
		c := s.Consumer(p.durable(p.topic("")))
		p.got("back", c.Wait(4, patience))
		p.send(p.topic(""), 2)
		p.got("there", c.Wait(6, patience)[4:])
		must(p.t, c.Close())
		p.told("unsubscribe", s.Unsubscribe("sub"))
		p.send(p.topic(""), 1)
		c = s.Consumer(p.durable(p.topic("")))
		c.Silent(300 * time.Millisecond)
		p.got("anew", c.Received())
	}},
	{"a durable subscription begins anew with another selector or topic", func(p *program) {
		conn := p.as("r")
		s := conn.Session(jms.Auto)
		try := func(what string, o jms.ConsumerOptions) {
			c := s.Consumer(o)
			p.got(what, p.calm(c))
			must(p.t, c.Close())
			p.session(jms.Auto).Send(jms.SendOptions{Dest: p.topic(""), N: 2, Body: "m{}",
				Props: map[string]string{"n": "int:{}"}})
		}
		o := p.durable(p.topic(""))
		try("at first", o)
		try("the same", o)
		o.Selector = "n = 1"
		try("a selector", o)
		try("the same selector", o)
		o.Selector = "n < 5"
		try("another selector", o)
		o.Dest = p.topic(".other")
		try("another topic", o)
		o.Dest = p.topic("")
		try("back again", o)
	}},
	{"a durable subscription has one consumer", func(p *program) {
		conn := p.as("r")
		s := conn.Session(jms.Auto)
		c := s.Consumer(p.durable(p.topic("")))
		_, err := conn.Session(jms.Auto).TryConsumer(p.durable(p.topic("")))
		p.told("a second consumer", err)
		p.told("unsubscribe in use", s.Unsubscribe("sub"))
		p.told("unsubscribe unknown", s.Unsubscribe("nothing"))
		_, err = p.d.Dial(jms.ConnectOptions{URL: p.b.URL(), ClientID: p.name + "r"})
		p.failed("a second connection", err)
		must(p.t, c.Close())
		p.told("unsubscribe", s.Unsubscribe("sub"))
		p.told("unsubscribe again", s.Unsubscribe("sub"))
	}},
	{"a durable subscription of a pattern keeps all its topics", func(p *program) {
		conn := p.as("r")
		conn.Session(jms.Auto).Consumer(p.durable(p.topic(".>")))
		must(p.t, conn.Close())
		for i, suffix := range []string{".a", ".b", ".a.c", ".a"} {
			p.conn.Send(p.topic(suffix), 1, string(rune('a'+i))+suffix)
		}
		conn = p.as("r")
		c := conn.Session(jms.Auto).Consumer(p.durable(p.topic(".>")))
		c.Wait(4, patience)
		p.conn.Send(p.topic(".new"), 1, "e.new")
		c.Wait(5, patience)
		bodies := map[string]bool{}
		for _, m := range c.Received() {
			bodies[m.Body] = true
		}
		p.say("got %d, different %d", c.Count(), len(bodies))
	}},
	{"durable subscriptions of clients are their own", func(p *program) {
		one, two := p.as("1"), p.as("2")
		a := one.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		b := two.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		p.send(p.topic(""), 2)
		p.got("one", a.Wait(2, patience))
		p.got("two", b.Wait(2, patience))
		must(p.t, two.Close())
		p.send(p.topic(""), 2)
		p.got("one", a.Wait(4, patience)[2:])
		b = p.as("2").Session(jms.Auto).Consumer(p.durable(p.topic("")))
		p.got("two", b.Wait(2, patience))
	}},
	{"a rollback of a durable delivers again in order", func(p *program) {
		conn := p.as("r")
		s := conn.Session(jms.Transacted)
		o := p.durable(p.topic(""))
		o.Pull = true
		c := s.Consumer(o)
		p.send(p.topic(""), 3)
		p.got("first", c.Receive(3, patience))
		p.failed("rollback", s.Rollback())
		p.got("again", c.Receive(2, patience))
		p.failed("commit", s.Commit())
		p.got("last", c.Receive(1, patience))
		must(p.t, conn.Close())
		p.got("back", p.as("r").Session(jms.Auto).Consumer(p.durable(p.topic(""))).Wait(1, patience))
	}},
	{"what a durable did not acknowledge comes back", func(p *program) {
		conn := p.as("r")
		o := p.durable(p.topic(""))
		o.Pull = true
		c := conn.Session(jms.Client).Consumer(o)
		p.send(p.topic(""), 4)
		p.got("first", c.Receive(2, patience))
		must(p.t, c.Ack())
		p.got("then", c.Receive(1, patience))
		must(p.t, conn.Close())
		conn = p.as("r")
		p.got("back", conn.Session(jms.Auto).Consumer(o).Receive(2, patience))
	}},
	{"a transaction is kept for a durable from the commit on", func(p *program) {
		conn := p.as("r")
		conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		must(p.t, conn.Close())
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.topic(""), N: 2, Body: "no{}"})
		p.failed("rollback", s.Rollback())
		s.Send(jms.SendOptions{Dest: p.topic(""), N: 2, Body: "yes{}"})
		p.failed("commit", s.Commit())
		conn = p.as("r")
		p.got("back", conn.Session(jms.Auto).Consumer(p.durable(p.topic(""))).Wait(2, patience))
	}},
	{"poison of a durable goes to the dead letters", func(p *program) {
		conn := p.as("r")
		o := p.durable(p.topic(""))
		o.Fail = 7
		c := conn.Session(jms.Auto).Consumer(o)
		p.session(jms.Auto).Send(jms.SendOptions{Dest: p.topic(""), Body: "bad",
			Props: map[string]string{"by": "string:" + p.name}})
		dead := p.session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: "queue://ActiveMQ.DLQ",
			Selector: "by = '" + p.name + "'"})
		for _, m := range dead.Wait(1, patience) {
			p.say("%s %t", m.Body, strings.Contains(m.Prop("dlqDeliveryFailureCause"), "delivery"))
		}
		before := c.Count()
		p.send(p.topic(""), 1)
		p.got("then", c.Wait(before+1, patience)[before:])
	}},
	{"a durable subscription may ignore its own connection", func(p *program) {
		conn := p.as("r")
		o := p.durable(p.topic(""))
		o.NoLocal = true
		c := conn.Session(jms.Auto).Consumer(o)
		conn.Send(p.topic(""), 2, "own")
		p.send(p.topic(""), 1)
		p.got("heard", c.Wait(1, patience))
	}},
	{"a durable of what cannot be one", func(p *program) {
		conn := p.as("r")
		_, err := conn.Session(jms.Auto).TryConsumer(p.durable("topic://ActiveMQ.Advisory.Queue"))
		p.told("advisories", err)
		_, err = conn.Session(jms.Auto).TryConsumer(jms.ConsumerOptions{Dest: p.topic(""),
			Durable: "sub", Selector: "n >"})
		p.failed("a bad selector", err)
	}},
	{"a durable subscription drops what expires while it is away", func(p *program) {
		conn := p.as("r")
		conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))
		must(p.t, conn.Close())
		p.session(jms.Auto).Send(jms.SendOptions{Dest: p.topic(""), Body: "short",
			TTL: 300 * time.Millisecond})
		p.send(p.topic(""), 1)
		over := time.Now().Add(500 * time.Millisecond)
		wait.For(p.t, patience, "the end of its time", func() (string, bool) {
			return "", time.Now().After(over)
		})
		conn = p.as("r")
		p.got("left", p.calm(conn.Session(jms.Auto).Consumer(p.durable(p.topic("")))))
	}},
}
