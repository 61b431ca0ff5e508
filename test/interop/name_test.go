package interop

import (
	"fmt"
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// reach sends to one destination and says which of some consumers get it.
func (p *program) reach(to string, consumers ...string) {
	p.t.Helper()
	open := make([]*jms.Consumer, len(consumers))
	s := p.session(jms.Auto)
	for i, dest := range consumers {
		c, err := s.TryConsumer(jms.ConsumerOptions{Dest: dest})
		if err != nil {
			p.failed(strings.ReplaceAll(dest, p.name, "NAME"), err)
		}
		open[i] = c
	}
	_, err := p.session(jms.Auto).TrySend(jms.SendOptions{Dest: to, Body: "m"})
	p.failed("send to "+to, err)
	if len(open) == 1 && open[0] != nil && err == nil {
		waitFor(open[0])
	} else {
		p.pause(400 * time.Millisecond)
	}
	for i, c := range open {
		if c != nil {
			for _, m := range c.Received() {
				p.say("  %s gets it as %s", consumers[i], m.Dest)
			}
		}
	}
	must(p.t, s.Close())
}

// waitFor waits for one message, for a while.
func waitFor(c *jms.Consumer) {
	for end := time.Now().Add(soon); c.Count() == 0 && time.Now().Before(end); {
		<-time.After(5 * time.Millisecond)
	}
}

// nameScenarios are about names of destinations.
var nameScenarios = []scenario{
	{"names have odd characters", func(p *program) {
		for _, odd := range []string{"with space", "ünïcödé 名", "a/b", "a:b", "a%20b", "a&b", `a"b`,
			"a'b", "<a>b", "a#b", "a$b", "a=b", "a;b", `a\b`, "a|b", "a@b", "(a)", "[a]", "{a}",
			"\U0001F980", "a!b", "~a", "a+b", "^", "a\tb"} {
			for _, dest := range []string{p.queue("." + odd), p.topic("." + odd)} {
				p.reach(dest, dest)
			}
		}
	}},
	{"a name is long", func(p *program) {
		for _, n := range []int{200, 1000, 4000} {
			long := "." + strings.Repeat("x", n)
			c := p.conn.Consumer(p.queue(long))
			p.send(p.queue(long), 2)
			got := c.Wait(2, patience)
			p.say("%d: %d, as sent %t", n, len(got), got[0].Dest == p.queue(long))
			c = p.conn.Consumer(p.topic(long))
			p.send(p.topic(long), 1)
			p.say("topic %d: %d", n, len(c.Wait(1, patience)))
		}
	}},
	{"names differ by their case", func(p *program) {
		p.reach(p.queue(".case"), p.queue(".case"), p.queue(".CASE"), p.queue(".Case"))
		p.reach(p.topic(".CASE"), p.topic(".case"), p.topic(".CASE"), p.topic(".Case"))
		p.reach("QUEUE://"+p.name+".scheme", p.queue(".scheme"))
	}},
	{"names have empty elements", func(p *program) {
		for _, to := range []string{".", ".a.", "..a", ".a..b", "...", ".a.b"} {
			p.reach(p.topic(to), p.topic(to), p.topic(".a"), p.topic(".>"), p.topic(".*"),
				p.topic(".*.*"), p.topic(".a.*"), p.topic(".a.*.b"), p.topic(".*.>"), p.topic("."))
		}
	}},
	{"what matches a pattern", func(p *program) {
		for _, to := range []string{"", ".a", ".a.b", ".a.b.c", "x.a", ".a>b"} {
			p.reach(p.topic(to), p.topic(".>"), p.topic(">"), p.topic(".*"), p.topic(".*.>"),
				p.topic(".>.b"), p.topic(".a*"), p.topic(".a.>.c"), p.topic(".*.b.*"), p.topic("*"))
		}
	}},
	{"a queue and a topic of one name are two", func(p *program) {
		p.reach(p.queue(""), p.topic(""), p.topic(".>"))
		p.reach(p.topic(""), p.queue(".>"))
		p.got("left", p.conn.Browse(p.queue(""), ""))
		p.reach(p.name+".plain", p.queue(".plain"), p.topic(".plain"))
	}},
	{"names are trimmed", func(p *program) {
		p.reach("queue:// "+p.name+" ", p.queue(""))
		p.reach(p.queue(""), "queue://  "+p.name)
		p.reach(" queue://"+p.name, p.queue(""))
		p.reach("queue:// ", p.queue(""))
		p.reach("queue://", p.queue(""))
	}},
	{"composites have parts that are not there", func(p *program) {
		for i, form := range []string{"queue://*.a,", "queue://,*.a", "queue://*.a,,*.b",
			"queue://*.a, *.b", "queue://*.a,*.a", "queue://*.a,topic://*.a",
			"queue://,"} {
			base := p.name + fmt.Sprint(".", i)
			p.reach(strings.ReplaceAll(form, "*", base), "queue://"+base+".a", "queue://"+base+".b",
				"topic://"+base+".a")
		}
	}},
	{"a pattern is sent to", func(p *program) {
		for _, pattern := range []string{".*", ".>", ".a.*"} {
			p.reach(p.topic(pattern), p.topic(pattern), p.topic(".a"), p.topic(".a.b"), p.topic(".>"))
			p.reach(p.queue(pattern), p.queue(".a"), p.queue(".a.b"))
			p.got("browsed", p.conn.Browse(p.queue(pattern), ""))
			c := p.conn.Consumer(p.queue(pattern))
			p.got("consumed", c.Wait(1, patience))
			must(p.t, c.Close())
		}
	}},
	{"a pattern consumer gets what comes to be later", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue(".>"))
		for _, suffix := range []string{".one", ".two.three", ""} {
			p.send(p.queue(suffix), 1)
			for _, m := range c.Receive(1, patience) {
				p.say("%s %s", m.Dest, m.Body)
			}
		}
		must(p.t, c.Close())
		p.send(p.queue(".one"), 1)
		p.got("left", p.conn.Browse(p.queue(".one"), ""))
	}},
	{"a consumer of several destinations that overlap", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.topic(".a")+","+p.topic(".*")+","+p.topic(".b"))
		p.send(p.topic(".a"), 1)
		p.got("of a", c.Receive(3, soon))
		p.send(p.topic(".c"), 1)
		p.got("of c", c.Receive(3, soon))
	}},
	{"a message to several destinations says which", func(p *program) {
		a, t := p.conn.Consumer(p.queue(".a")), p.conn.Consumer(p.topic(".t"))
		p.conn.Put(jms.SendOptions{Dest: p.queue(".a") + "," + p.queue(".b") + "," + p.topic(".t"),
			Body: "m", Props: map[string]string{"n": "int:1"}, ReplyTo: p.queue(".r")})
		for _, m := range []jms.Msg{a.Wait(1, patience)[0], t.Wait(1, patience)[0],
			p.conn.Browse(p.queue(".b"), "")[0]} {
			p.say("%s n=%s reply to %s", m.Dest, m.Prop("n"), m.ReplyTo)
		}
	}},
}
