package interop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// whole says everything of a message that does not differ by run.
func (p *program) whole(label string, m jms.Msg) {
	id := func(s string) string { return unnamed.ReplaceAllString(s, "ID") }
	p.say("%s: %s of %s %q persistent=%t priority=%d", label, m.Kind, id(m.Dest), m.Body, m.Persistent,
		m.Priority)
	ttl := "none"
	if m.Expires != 0 {
		rest := time.Duration(m.Expires-m.Timestamp) * time.Millisecond
		ttl = rest.Round(time.Minute).String()
	}
	p.say("  ttl=%s correlation=%q type=%q reply to %q", ttl, m.CorrelationID, m.Type, id(m.ReplyTo))
	for _, values := range []map[string]string{m.Props, m.Map} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			v, _, _ := strings.Cut(id(values[name]), "Expiration:")
			v, _, _ = strings.Cut(v, "RedeliveryPolicy {") // generations write it differently
			if name == "originalExpiration" && v != "long:0" {
				v = "some"
			}
			if name != "JMSXDeliveryCount" || v != "int:1" { // 5.17 leaves out the first
				p.say("  %s=%s", name, v)
			}
		}
	}
	for _, v := range m.Stream {
		p.say("  - %s", v)
	}
}

// typed are values of all types.
var typed = map[string]string{
	"bool": "bool:true", "byte": "byte:-128", "short": "short:32767", "int": "int:-2147483648",
	"long": "long:9223372036854775807", "float": "float:1.5E-10", "double": "double:-1.0E300",
	"string": "string:ünïcödé \U0001F980", "empty": "string:", "nan": "double:NaN",
	"infinite": "float:-Infinity",
}

// bodies are messages of all kinds.
func bodies(dest string) []jms.SendOptions {
	entries := maps.Clone(typed)
	entries["bytes"], entries["char"] = "bytes:AP+A", "char:x"
	list := slices.Sorted(maps.Values(entries))
	return []jms.SendOptions{
		{Dest: dest, Body: "text ünïcödé \U0001F980 \x00 end"},
		{Dest: dest, Kind: "text"},
		{Dest: dest, Kind: "bytes", Body: "bytes"},
		{Dest: dest, Kind: "bytes"},
		{Dest: dest, Kind: "object", Body: "an object"},
		{Dest: dest, Kind: "none"},
		{Dest: dest, Kind: "map", Map: entries},
		{Dest: dest, Kind: "map"},
		{Dest: dest, Kind: "stream", Stream: list},
		{Dest: dest, Kind: "stream"},
	}
}

// messageScenarios are about what messages carry.
var messageScenarios = []scenario{
	{"all kinds of bodies arrive", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue(""))
		for _, o := range bodies(p.queue("")) {
			p.conn.Put(o)
			p.whole("got", p.one(c))
		}
	}},
	{"all kinds of bodies arrive compressed", func(p *program) {
		conn := p.with("jms.useCompression=true")
		c, t := p.pull(p.session(jms.Auto), p.queue("")), p.conn.Consumer(p.topic(""))
		for _, o := range bodies(p.queue("") + "," + p.topic("")) {
			conn.Put(o)
			p.whole("got", p.one(c))
		}
		t.Wait(10, patience)
		conn.Put(jms.SendOptions{Dest: p.queue(""), Body: strings.Repeat("long ", 50000)})
		m := p.one(c)
		p.say("long: %d %t", len(m.Body), m.Body == strings.Repeat("long ", 50000))
	}},
	{"all types of properties arrive and are selected", func(p *program) {
		p.conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "m", Props: typed})
		for _, m := range p.conn.Browse(p.queue(""), "") {
			p.whole("browsed", m)
		}
		for _, selector := range []string{"bool", "bool = TRUE", "byte = -128", "short > 32766",
			"int < -2147483647", "long = 9223372036854775807", "float < 1", "double < -1", "empty = ''",
			"string LIKE 'ü%'", "nan = nan", "infinite < 0", "byte < short AND short < long",
			"missing IS NULL", "string IS NOT NULL", "byte", "int + 1 < 0"} {
			got, err := p.conn.TryBrowse(p.queue(""), selector)
			p.say("%s: %d %s", selector, len(got), class(err))
		}
	}},
	{"names of properties", func(p *program) {
		s := p.session(jms.Auto)
		c := p.pull(s, p.queue(""))
		for _, name := range []string{"a.b", "a-b", "a b", "1a", "", "$a", "_a", "ä", "JMSType",
			"JMSXUserID", "JMSXGroupID", "JMSXGroupSeq", "JMSReplyTo", "JMSPriority", "JMSCorrelationID",
			"JMSXMine", "JMS_ActiveMQ", "NULL", "TRUE", "NOT", "between", "JMSDeliveryMode", "JMSExpiration",
			"JMSRedelivered", "JMSXDeliveryCount", "JMSMessageID", "JMSTimestamp"} {
			_, err := s.TrySend(jms.SendOptions{Dest: p.queue(""), Body: name,
				Props: map[string]string{name: "string:5"}})
			p.failed(name, err)
			if err == nil {
				p.whole("got", p.one(c))
			}
		}
	}},
	{"replies are asked for at each kind of destination", func(p *program) {
		s := p.session(jms.Auto)
		queue, err := s.Temporary(false)
		must(p.t, err)
		topic, err := s.Temporary(true)
		must(p.t, err)
		c := p.pull(s, p.queue(""))
		for _, dest := range []string{p.queue(".r"), p.topic(".r"), queue, topic,
			p.queue(".a") + "," + p.topic(".b"), p.queue(".r") + "?consumer.prefetchSize=1",
			p.queue(".>")} {
			s.Send(jms.SendOptions{Dest: p.queue(""), Body: "m", ReplyTo: dest})
			m := p.one(c)
			p.say("%s as asked %t", unnamed.ReplaceAllString(m.ReplyTo, "ID"), m.ReplyTo == dest)
		}
	}},
	{"correlation ids are texts or bytes", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue(""))
		for _, o := range []jms.SendOptions{{CorrelationID: "text ünïcödé"}, {CorrelationID: " "},
			{Correlation: []byte("bytes")}, {Correlation: []byte("ü")}, {CorrelationID: "ID:1-2-3"},
			{CorrelationID: strings.Repeat("long", 1000)}} {
			o.Dest, o.Body = p.queue(""), "m"
			p.conn.Put(o)
			m := p.one(c)
			p.say("%.20q %d", m.CorrelationID, len(m.CorrelationID))
		}
	}},
	{"priorities and times to live are told", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue(""))
		for _, priority := range []int{1, 4, 9} {
			for _, ttl := range []time.Duration{0, time.Hour} {
				for _, np := range []bool{false, true} {
					p.conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "m", Priority: priority, TTL: ttl,
						NonPersistent: np})
					p.whole("got", p.one(c))
				}
			}
		}
		for _, priority := range []int{-1, 10} {
			_, err := p.session(jms.Auto).TrySend(
				jms.SendOptions{Dest: p.queue(""), Body: "m", Priority: priority})
			p.failed(fmt.Sprint("priority ", priority), err)
		}
	}},
	{"messages without a time", func(p *program) {
		conn := p.with("jms.disableTimeStampsByDefault=true")
		c := p.pull(p.session(jms.Auto), p.queue(""))
		conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "m", Type: "t"})
		m := p.one(c)
		p.say("time %d, expires %d, %s", m.Timestamp, m.Expires, m.Type)
	}},
	{"a browser selects and sees what is being consumed", func(p *program) {
		p.conn.Put(jms.SendOptions{Dest: p.queue(""), N: 6, Body: "m{}",
			Props: map[string]string{"n": "int:{}"}})
		p.got("selected", p.conn.Browse(p.queue(""), "n > 3"))
		s := p.session(jms.Client)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=2")
		p.got("taken", c.Receive(1, patience))
		p.holds(3)
		p.got("all", p.conn.Browse(p.queue(""), ""))
		p.got("selected", p.conn.Browse(p.queue(""), "n < 3"))
		_, err := p.conn.TryBrowse(p.queue(""), "n <")
		p.failed("a bad selector", err)
		p.failed("ack", c.Ack())
		p.holds(2)
		p.got("all", p.conn.Browse(p.queue(""), ""))
		p.got("of a queue that is empty", p.conn.Browse(p.queue(".none"), ""))
	}},
	{"a browser sees many and only what is committed", func(p *program) {
		p.send(p.queue(""), 300)
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "open"})
		got := p.conn.Browse(p.queue(""), "")
		p.say("%d, last %s", len(got), got[len(got)-1].Body)
		p.failed("commit", s.Commit())
		got = p.conn.Browse(p.queue("")+"?consumer.prefetchSize=10", "")
		p.say("%d, last %s", len(got), got[len(got)-1].Body)
	}},
	{"a group and its sequence are told", func(p *program) {
		p.conn.Put(jms.SendOptions{Dest: p.queue(""), Body: "m", CorrelationID: "c", TTL: time.Hour,
			Props: map[string]string{"JMSXGroupID": "string:g", "JMSXGroupSeq": "int:7"}})
		p.whole("got", p.one(p.pull(p.session(jms.Auto), p.queue(""))))
	}},
}
