package interop

import (
	"fmt"

	"hopwire/test/interop/jms"
)

// grouped sends one message of a group; sequence 0 is none.
func (p *program) grouped(dest, group string, sequence int, body string) {
	props := map[string]string{"JMSXGroupID": "string:" + group}
	if sequence != 0 {
		props["JMSXGroupSeq"] = fmt.Sprint("int:", sequence)
	}
	p.session(jms.Auto).Send(jms.SendOptions{Dest: dest, Body: body, Props: props})
}

// firsts says bodies, with "!" behind what was the first of its group for the consumer.
func (p *program) firsts(label string, messages []jms.Msg) {
	line := label + ":"
	for _, m := range messages {
		line += " " + m.Body
		if m.Prop("JMSXGroupFirstForConsumer") == "true" {
			line += "!"
		}
	}
	p.say("%s", line)
}

// ownerScenarios are about consumers that have a queue, or a part of it, for themselves.
var ownerScenarios = []scenario{
	{"an exclusive consumer has the queue for itself", func(p *program) {
		exclusive := p.queue("") + "?consumer.exclusive=true"
		plain := p.conn.Consumer(p.queue(""))
		one := p.conn.Consumer(exclusive)
		p.send(p.queue(""), 3)
		p.got("one", one.Wait(3, patience))
		two := p.conn.Consumer(exclusive + "&consumer.priority=5")
		p.send(p.queue(""), 2)
		p.got("two", two.Wait(2, patience))
		must(p.t, two.Close())
		p.send(p.queue(""), 2)
		p.got("one again", one.Wait(5, patience)[3:])
		must(p.t, one.Close())
		p.send(p.queue(""), 1)
		p.got("plain", plain.Wait(1, patience))
	}},
	{"a message group has one consumer", func(p *program) {
		one := p.conn.Consumer(p.queue(""))
		for i, g := range []string{"a", "b", "a", "b", "a"} {
			p.grouped(p.queue(""), g, 0, fmt.Sprint(g, i))
		}
		p.firsts("one", one.Wait(5, patience))
		two := p.conn.Consumer(p.queue(""))
		p.grouped(p.queue(""), "a", 0, "a5")
		p.grouped(p.queue(""), "b", 0, "b6")
		p.firsts("one", one.Wait(7, patience)[5:])
		must(p.t, one.Close())
		p.grouped(p.queue(""), "a", 0, "a7")
		p.grouped(p.queue(""), "b", 0, "b8")
		p.firsts("two", two.Wait(2, patience))
	}},
	{"a message group is closed and begun again", func(p *program) {
		one := p.conn.Consumer(p.queue(""))
		p.grouped(p.queue(""), "a", 1, "a0")
		p.grouped(p.queue(""), "a", 2, "a1")
		p.grouped(p.queue(""), "a", -1, "a2")
		p.grouped(p.queue(""), "a", 0, "a3")
		p.grouped(p.queue(""), "a", 1, "a4")
		p.firsts("one", one.Wait(5, patience))
	}},
	{"what a group's gone consumer had comes to another with the group", func(p *program) {
		s := p.session(jms.Client)
		one := p.pull(s, p.queue("")+"?consumer.prefetchSize=10")
		for i := range 4 {
			p.grouped(p.queue(""), "a", 0, fmt.Sprint("a", i))
		}
		p.firsts("one", one.Receive(2, patience))
		must(p.t, one.Ack())
		must(p.t, s.Close())
		two := p.conn.Consumer(p.queue(""))
		p.firsts("two", two.Wait(2, patience))
	}},
}
