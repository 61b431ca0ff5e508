package jms_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

const patience = 15 * time.Second

type versionTest func(*testing.T, *jms.Driver, *broker.Broker)

// eachVersion runs a test with both generations of the client against one broker of each kind.
func eachVersion(t *testing.T, o broker.Options, test versionTest) {
	t.Helper()
	for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire} {
		t.Run(k.String(), func(t *testing.T) { bothVersions(t, k, o, test) })
	}
}

// bothVersions runs a test with both generations of the client against one broker.
func bothVersions(t *testing.T, k broker.Kind, o broker.Options, test versionTest) {
	t.Helper()
	b := broker.Start(t, k, o)
	for _, v := range []jms.Version{jms.V5, jms.V6} {
		t.Run(v.String(), func(t *testing.T) { test(t, jms.Start(t, v), b) })
	}
}

func TestEveryKindOfMessageArrivesAsSent(t *testing.T) {
	sent := []jms.SendOptions{
		{Kind: "text", Body: "a text with ümlauts, spaces & signs = +%"},
		{Kind: "text", Body: strings.Repeat("long ", 20000)},
		{Kind: "bytes", Body: "bytes"},
		{Kind: "object", Body: "a string as an object"},
		{Kind: "none"},
		{Kind: "map", Map: map[string]string{
			"i": "int:5", "s": "string:x", "b": "bool:true", "by": "bytes:AAEC", "d": "double:0.5",
		}},
		{Kind: "stream", Stream: []string{"int:1", "string:two", "long:3", "char:c"}},
		{
			Kind: "text", Body: "headers", NonPersistent: true, Priority: 7, TTL: time.Hour,
			CorrelationID: "c1", Type: "t1", ReplyTo: "topic://answers", Props: map[string]string{
				"bo": "bool:false", "by": "byte:1", "sh": "short:2", "in": "int:3", "lo": "long:4",
				"fl": "float:0.5", "do": "double:0.25", "st": "string:s",
			},
		},
	}
	eachVersion(t, broker.Options{}, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		conn := d.Connect(b.URL())
		dest := "queue://kinds." + strings.ReplaceAll(t.Name(), "/", ".")
		c := conn.Consumer(dest)
		s := conn.Session(jms.Auto)
		for i, o := range sent {
			o.Dest = dest
			ids := s.Send(o)
			got := c.Wait(i+1, patience)
			m := got[i]
			if m.ID != ids[0] || m.Kind != o.Kind || m.Body != o.Body || m.Dest != dest ||
				m.Persistent == o.NonPersistent || m.Redelivered {
				t.Errorf("%s: sent %.200s, got %.200s", ids, fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", m))
			}
			if fmt.Sprint(m.Map, m.Stream) != fmt.Sprint(orEmpty(o.Map), o.Stream) {
				t.Errorf("sent %v %v, got %v %v", o.Map, o.Stream, m.Map, m.Stream)
			}
			for key, value := range o.Props {
				if m.Props[key] != value {
					t.Errorf("property %s: sent %s, got %s", key, value, m.Props[key])
				}
			}
			if o.Priority != 0 && (m.Priority != o.Priority || m.CorrelationID != o.CorrelationID ||
				m.Type != o.Type || m.ReplyTo != o.ReplyTo || m.Expires == 0) {
				t.Errorf("headers: sent %+v, got %+v", o, m)
			}
		}
	})
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func TestAcknowledgementsDecideWhatComesAgain(t *testing.T) {
	eachVersion(t, broker.Options{}, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		conn := d.Connect(b.URL())
		base := "queue://acks." + d.Version().String() + "."

		t.Run("client", func(t *testing.T) {
			conn.Send(base+"client", 4, "m{}")
			s := conn.Session(jms.Client)
			c := s.Consumer(jms.ConsumerOptions{Dest: base + "client", Pull: true})
			c.Receive(2, patience)
			must(t, c.Ack())
			c.Receive(2, patience)
			must(t, s.Recover())
			c.Receive(2, patience)
			must(t, c.Ack())
			checkBodies(t, c.Received(), "m0 m1 m2 m3 m2 m3")
			if m := c.Received()[5]; !m.Redelivered || m.Prop("JMSXDeliveryCount") != "2" {
				t.Errorf("%+v is not marked as delivered again", m)
			}
		})
		t.Run("individual", func(t *testing.T) {
			conn.Send(base+"single", 3, "m{}")
			s := conn.Session(jms.Individual)
			c := s.Consumer(jms.ConsumerOptions{Dest: base + "single", Pull: true})
			got := c.Receive(3, patience)
			must(t, c.AckID(got[1].ID))
			must(t, s.Close())
			checkBodies(t, conn.Browse(base+"single", ""), "m0 m2")
		})
		t.Run("transacted", func(t *testing.T) {
			s := conn.Session(jms.Transacted)
			s.Send(jms.SendOptions{Dest: base + "tx", N: 2, Body: "gone"})
			must(t, s.Rollback())
			s.Send(jms.SendOptions{Dest: base + "tx", N: 2, Body: "m{}"})
			c := conn.Consumer(base + "tx")
			c.Silent(200 * time.Millisecond)
			must(t, s.Commit())
			checkBodies(t, c.Wait(2, patience), "m0 m1")
		})
		t.Run("failing listener", func(t *testing.T) {
			c := conn.Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: base + "fail", Fail: 1})
			conn.Send(base+"fail", 1, "m{}")
			checkBodies(t, c.Wait(2, patience), "m0 m0")
		})
	})
}

func TestSelectorsBrowsersAndReplies(t *testing.T) {
	eachVersion(t, broker.Options{}, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		conn := d.Connect(b.URL())
		dest := "queue://picks." + d.Version().String()
		s := conn.Session(jms.Auto)
		s.Send(jms.SendOptions{
			Dest: dest, N: 4, Body: "m{}", Props: map[string]string{"n": "int:{}"},
		})
		checkBodies(t, conn.Browse(dest, ""), "m0 m1 m2 m3")
		checkBodies(t, conn.Browse(dest, "n >= 2"), "m2 m3")
		c := s.Consumer(jms.ConsumerOptions{Dest: dest, Selector: "n = 1"})
		checkBodies(t, c.Wait(1, patience), "m1")

		conn.Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: dest + ".ask", Reply: true})
		replies := conn.Request(jms.SendOptions{Dest: dest + ".ask", Body: "?"}, 1, patience)
		if len(replies) != 1 || !strings.HasPrefix(replies[0].Body, "reply to ID:") {
			t.Errorf("replies %+v", replies)
		}
		temp, err := s.Temporary(false)
		must(t, err)
		onTemp := s.Consumer(jms.ConsumerOptions{Dest: temp})
		conn.Send(temp, 1, "m{}")
		checkBodies(t, onTemp.Wait(1, patience), "m0")
	})
}

func TestADurableSubscriptionOutlivesItsConnection(t *testing.T) {
	o := broker.Options{Persistent: true}
	eachVersion(t, o, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		topic := "topic://news." + d.Version().String()
		sub := jms.ConsumerOptions{Dest: topic, Durable: "sub"}
		id := jms.ConnectOptions{URL: b.URL(), ClientID: "reader-" + d.Version().String()}
		conn, err := d.Dial(id)
		must(t, err)
		conn.Session(jms.Auto).Consumer(sub)
		if _, err := d.Dial(id); exception(err) != "InvalidClientIDException" {
			t.Errorf("a second connection with the client id: %v", err)
		}
		must(t, conn.Close())
		d.Connect(b.URL()).Send(topic, 2, "m{}")
		conn, err = d.Dial(id)
		must(t, err)
		s := conn.Session(jms.Auto)
		c := s.Consumer(sub)
		checkBodies(t, c.Wait(2, patience), "m0 m1")
		must(t, c.Close())
		must(t, s.Unsubscribe("sub"))
	})
}

func TestWhatTheClientThrowsIsToldByClass(t *testing.T) {
	o := broker.Options{Plugins: users}
	eachVersion(t, o, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		_, err := d.Dial(jms.ConnectOptions{URL: b.URL(), User: "u", Password: "wrong"})
		if exception(err) != "JMSSecurityException" {
			t.Errorf("a wrong password: %v", err)
		}
		conn, err := d.Dial(jms.ConnectOptions{URL: b.URL(), User: "u", Password: "p"})
		must(t, err)
		broken := jms.ConsumerOptions{Dest: "queue://q", Selector: "a ="}
		_, err = conn.Session(jms.Auto).TryConsumer(broken)
		if exception(err) != "InvalidSelectorException" {
			t.Errorf("a broken selector: %v", err)
		}
	})
}

const users = `<simpleAuthenticationPlugin><users>` +
	`<authenticationUser username="u" password="p" groups="g"/></users></simpleAuthenticationPlugin>`

// exception is the short name of a client's exception, whichever generation threw it.
func exception(err error) string {
	var e *jms.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Class[strings.LastIndexByte(e.Class, '.')+1:]
}

func TestAKilledBrokerKeepsWhatItConfirmedAndClientsComeBack(t *testing.T) {
	o := broker.Options{Persistent: true}
	eachVersion(t, o, func(t *testing.T, d *jms.Driver, b *broker.Broker) {
		queue := "kept." + d.Version().String()
		plain := d.Connect(b.URL())
		over := d.Connect("failover:(" + b.URL() + ")" +
			"?initialReconnectDelay=50&useExponentialBackOff=false")
		over.Send("queue://"+queue, 3, "m{}")
		b.Kill9()
		if fault := plain.WaitFault(patience); !strings.HasSuffix(fault.Class, ".JMSException") {
			t.Errorf("the connection without failover: %v", fault)
		}
		b.Restart()
		over.WaitResumed(1, patience)
		if s := b.Queue(queue); s.Size != 3 {
			t.Errorf("after the restart: %+v, want 3 messages", s)
		}
		checkBodies(t, over.Consumer("queue://"+queue).Wait(3, patience), "m0 m1 m2")
	})
}

func TestAKilledClientIsGoneFromTheBroker(t *testing.T) {
	b := broker.Start(t, broker.ActiveMQ, broker.Options{})
	d := jms.StartOwn(t, jms.V5)
	d.Connect(b.URL()).Consumer("queue://q")
	b.WaitConsumers("q", 1, patience)
	d.Kill()
	b.WaitConsumers("q", 0, patience)
	if _, err := d.Dial(jms.ConnectOptions{URL: b.URL()}); err == nil {
		t.Error("a killed driver connected")
	}
}

func TestAQueueNobodyMadeHasNoStatistics(t *testing.T) {
	b := broker.Start(t, broker.ActiveMQ, broker.Options{Name: "lone"})
	if s := b.Queue("none"); s.Exists {
		t.Errorf("got %+v", s)
	}
	b.Pause()
	b.Resume()
	b.Stop()
	if b.PID() != 0 {
		t.Error("a stopped broker has a process")
	}
	b.Restart()
	if !b.LogHas("INFO", "lone", "started") {
		t.Error("the log does not tell of the start")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkBodies(t *testing.T, got []jms.Msg, want string) {
	t.Helper()
	if bodies := jms.Bodies(got); !slices.Equal(bodies, strings.Fields(want)) {
		t.Errorf("got %v, want %s", bodies, want)
	}
}
