package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/openwire"
	"hopwire/openwire/primitive"
)

func TestCloseTakesLeaveInOrder(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s, _ := p.produce(c, AutoAck)
	p.consume(s)
	var removed []openwire.DataStructure
	ok(t, during(t, func() error { return c.Close(bound(t)) }, func() { removed = p.goodbye() }))
	var kinds []string
	for _, x := range removed {
		kinds = append(kinds, openwire.TypeName(x.TypeID()))
	}
	if want := []string{"ConsumerId", "ProducerId", "SessionId", "ConnectionId"}; !slices.Equal(
		kinds, want) {
		t.Errorf("removed %q, want %q", kinds, want)
	}
	if err := c.Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close Err is %v", err)
	}
	if _, err := c.Session(bound(t), AutoAck); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close Session gives %v", err)
	}
	ok(t, c.Close(bound(t)))
}

func TestWithoutFailoverALostConnectionIsFinal(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s, q := p.produce(c, AutoAck)
	k, _ := p.consume(s)
	err := during(t, func() error { return q.Send(bound(t), NewText("x")) }, func() {
		expect[*openwire.Message](p)
		p.conn.Close()
	})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("send gives %v", err)
	}
	if _, err := k.Receive(bound(t)); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("receive gives %v", err)
	}
	<-c.Done()
}

func TestASilentBrokerIsGivenUp(t *testing.T) {
	b := newScript(t)
	const quick = "?wireFormat.maxInactivityDuration=90&wireFormat.maxInactivityDurationInitalDelay=1"
	c, p := b.dialed(b.uri() + quick)
	x, err := p.next() // the client itself is not silent
	if _, alive := x.(*openwire.KeepAliveInfo); !alive {
		t.Fatalf("the client sent %T, %v", x, err)
	}
	select {
	case <-c.Done():
	case <-bound(t).Done():
		t.Fatal("the connection goes on")
	}
	if err := c.Err(); !errors.Is(err, errQuiet) {
		t.Fatalf("failed by %v", err)
	}
}

func TestAKeepAliveThatAsksIsAnswered(t *testing.T) {
	b := newScript(t)
	_, p := b.dialed(b.uri() + "?wireFormat.maxInactivityDuration=0")
	p.write(&openwire.KeepAliveInfo{BaseCommand: openwire.BaseCommand{ResponseRequired: true}})
	x, err := p.next()
	if alive, is := x.(*openwire.KeepAliveInfo); !is || alive.ResponseRequired {
		t.Fatalf("the answer is %+v, %v", x, err)
	}
}

func TestAConnectionErrorIsReportedAndTheConnectionGoesOn(t *testing.T) {
	b := newScript(t)
	reported := make(chan error, 1)
	c, p := b.dialed(b.uri(), WithErrorHandler(func(err error) { reported <- err }))
	p.write(&openwire.ConnectionError{Exception: &openwire.Throwable{
		Class: "javax.jms.JMSException", Message: "Unmatched acknowledge",
	}})
	var refused *BrokerError
	if err := <-reported; !errors.As(err, &refused) || refused.Message != "Unmatched acknowledge" {
		t.Fatalf("reported %v", err)
	}
	p.produce(c, AutoAck)
}

func TestABrokerMayCloseOrResizeAConsumer(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, ClientAck)
	expect[*openwire.SessionInfo](p)
	k, info := p.consume(s)
	p.write(&openwire.ConsumerControl{ConsumerID: info.ConsumerID, Prefetch: 2})
	p.deliver(info, 1)
	texts(t, k, 1)
	if got := p.ack(); got != "0 1-1 1" {
		t.Fatalf("half of a prefetch of 2 gives %s", got)
	}
	p.write(&openwire.ConsumerControl{ConsumerID: info.ConsumerID, Close: true})
	if _, err := k.Receive(bound(t)); !errors.Is(err, ErrClosed) {
		t.Fatalf("receive gives %v", err)
	}
}

func TestWhatCannotBeEncodedFailsAloneAndTheConnectionGoesOn(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	_, q := p.produce(c, AutoAck)
	m := NewText("x")
	m.Type = strings.Repeat("x", 70000)
	var bad *openwire.EncodeError
	if err := q.Send(bound(t), m); !errors.As(err, &bad) {
		t.Fatalf("send gives %v", err)
	}
	ok(t, during(t, func() error { return q.Send(bound(t), NewText("y")) }, func() {
		p.answer(expect[*openwire.Message](p))
	}))
}

func TestASendWhoseContextEndsReturns(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	_, q := p.produce(c, AutoAck)
	ctx, cancel := context.WithCancel(context.Background())
	err := during(t, func() error { return q.Send(ctx, NewText("x")) }, func() {
		expect[*openwire.Message](p)
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("send gives %v", err)
	}
	waitPending(t, c, 0)
}

func TestTheWindowBoundsWhatIsUnconfirmed(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	var q *Producer
	ok(t, during(t, func() (err error) {
		q, err = s.Producer(bound(t), Queue("Q"), Window(2))
		return err
	}, func() { p.answer(expect[*openwire.ProducerInfo](p)) }))
	ok(t, q.SendAsync(bound(t), NewText("1"), nil))
	ok(t, q.SendAsync(bound(t), NewText("2"), nil))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := q.SendAsync(ctx, NewText("3"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a third message: %v", err)
	}
	p.answer(expect[*openwire.Message](p))
	ok(t, q.SendAsync(bound(t), NewText("3"), nil))
}

func TestAckRangesAreWholeInTheOrderOfDispatch(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri(), WithRedelivery(Redelivery{Maximum: 0}))
	s := session(t, c, ClientAck)
	expect[*openwire.SessionInfo](p)
	k, info := p.consume(s)
	p.deliver(info, 1, 2, 3)
	texts(t, k, 3)
	d := k.delivered[1]
	c.mu.Lock()
	err := k.redeliverLocked([]*delivery{d}, time.Now()) // given up at once
	c.mu.Unlock()
	ok(t, err)
	if got := p.ack(); got != "1 2-2 1" {
		t.Fatalf("ack %s", got)
	}
	ok(t, must[*Message](t)(k.delivered[0].received(), nil).Ack())
	if got := []string{p.ack(), p.ack()}; !slices.Equal(got, []string{"2 1-1 1", "2 3-3 1"}) {
		t.Fatalf("acks %q", got)
	}
}

func TestRedeliveryDelays(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		r    Redelivery
		want []time.Duration
	}{
		{"default", DefaultRedelivery(), []time.Duration{s, s, s}},
		{"steady", Redelivery{Initial: s, Delay: 3 * s}, []time.Duration{s, 3 * s, 3 * s}},
		{
			"exponential",
			Redelivery{Initial: s, Exponential: true, Multiplier: 2},
			[]time.Duration{s, 2 * s, 4 * s},
		},
		{
			"bounded",
			Redelivery{Initial: s, Exponential: true, Multiplier: 5, MaxDelay: 7 * s},
			[]time.Duration{s, 5 * s, 7 * s, 7 * s},
		},
		{
			"never below the delay",
			Redelivery{Initial: s, Delay: 4 * s, Exponential: true, Multiplier: 2},
			[]time.Duration{s, 4 * s, 8 * s},
		},
		{"at once", Redelivery{}, []time.Duration{0, 0}},
	} {
		for i, want := range c.want {
			if got := c.r.delay(int32(i + 1)); got != want {
				t.Errorf("%s: delay %d is %v, want %v", c.name, i+1, got, want)
			}
		}
	}
	endless := Redelivery{Maximum: -1}
	if d := DefaultRedelivery(); d.exceeds(6) || !d.exceeds(7) || endless.exceeds(99) {
		t.Error("a message is given up when it was redelivered more often than Maximum")
	}
}

func TestTheAuditForgetsTheOldest(t *testing.T) {
	var a audit
	key := func(n int) auditKey { return auditKey{message: messageKey{sequence: int64(n)}} }
	for n := range auditDepth + 1 {
		a.add(key(n), 1)
	}
	if a.duplicate(key(0), 2) || !a.duplicate(key(1), 2) || a.duplicate(key(1), 1) {
		t.Error("the audit should know the last ones, for later links only")
	}
}

func TestURIs(t *testing.T) {
	for _, c := range []struct{ uri, want string }{
		{"tcp://h:1", ""},
		{"tcp://h", ""},
		{"tcp://h:1?wireFormat.maxInactivityDuration=0&jms.prefetchPolicy.all=5", ""},
		{"failover:(tcp://a:1,tcp://b:2)?randomize=false&backOffMultiplier=1.5&timeout=3000", ""},
		{"failover:tcp://a:1,tcp://b:2", ""},
		{"failover:(tcp://a:1?wireFormat.cacheSize=200)", ""},
		{"http://h:1", `scheme "http"`},
		{"tcp://", "no host"},
		{"tcp://h:1?wireFormat.maxInactivity=1", "known are wireFormat.cacheEnabled"},
		{"tcp://h:1?jms.prefetchPolicy.all=x", "prefetchPolicy.all"},
		{"tcp://h:1?wireFormat.cacheSize=50", "CacheSize 50"},
		{"tcp://h:1?wireFormat.version=13", "1 to 12"},
		{"failover:(tcp://a:1)?randomise=true", "unknown option randomise; known are backOffMulti"},
		{"failover:(tcp://a:1", "a ( without its )"},
		{"failover:(tcp://a:1)x", "options begin with"},
		{"failover:()", "it lists no address"},
		{"", "it is empty; use tcp://host:port"},
		{"127.0.0.1:61616", "127.0.0.1:61616: no tcp:// in front; use tcp://host:port"},
		{"localhost", "no tcp:// in front; use tcp://host:port"},
		{"[::1]:61616", "no tcp:// in front"},
		{"tcp:localhost:1", "no // behind tcp:; use tcp://host:port"},
		{"tcp://h:abc", `colon is no port from 0 to 65535; use tcp://host:port`},
		{"tcp://h:70000", `"70000" is no port`},
		{"tcp://h h:1", `"h h" is no host`},
		{"tcp://[::1:1", "brackets"},
		{"tcp://a:61616,tcp://b:61617", "one address stands here; several are a list in parentheses," +
			" as in failover:(tcp://a:61616,tcp://b:61616)"},
		{"tcp://a,b", "failover:(tcp://a"},
		{"tcp://a:1?jms.userName=x,tcp://b:2", "failover:(tcp://a"},
		{"failover:(tcp://a:1,b:2)", `"b:2": no tcp:// in front`},
		{"static:(tcp://a:1)", `scheme "static"; use tcp://host:port`},
		{"tcp://h:1?keepAlive=x", `option keepAlive: "x" is neither true nor false`},
		{"tcp://h:1?wireFormat.cacheSize=x", `"x" is no whole number of 32 bits`},
		{"tcp://h:1?connectionTimeout=1s", `"1s" is no number of milliseconds`},
		{"tcp://h:1?a;b", "unknown option a;b"},
	} {
		_, err := parseURI(c.uri)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.uri, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s gives %v, want %q", c.uri, err, c.want)
		}
		if err != nil && regexp.MustCompile(`strconv|parse |URL|net:|dial`).MatchString(err.Error()) {
			t.Errorf("%s speaks Go's words: %v", c.uri, err)
		}
	}
	x := must[*target](t)(parseURI("failover:(tcp://a:1,tcp://b?wireFormat.version=9)?timeout=3000" +
		"&maxReconnectAttempts=4&jms.redeliveryPolicy.maximumRedeliveries=-1"))
	if len(x.endpoints) != 2 || x.endpoints[1].addr != "b:61616" || x.endpoints[1].version != 9 ||
		x.endpoints[0].hello.Host != "" || x.failover.timeout != 3*time.Second ||
		x.failover.maxAttempts != 4 || x.settings.redelivery.Maximum != -1 {
		t.Errorf("parsed %+v", x)
	}
}

func TestDestinations(t *testing.T) {
	for text, want := range map[string]string{
		"A": "queue://A", "queue://A": "queue://A", "topic://A.>": "topic://A.>",
		"temp-queue://x:1": "temp-queue://x:1", "queue://A?consumer.priority=1": "",
		"queue://": "error", "": "error", "queue://?a=b": "error", "X:Y": "queue://X:Y",
		"a:b//c": "queue://a:b//c", "queu://X": "error", "topic:X": "error", "Queue://X": "error",
		"queue//X": "error", "queue:/X": "error", "a//b": "queue://a//b", "ab//c": "queue://ab//c",
		"ID:vm-1": "queue://ID:vm-1",
	} {
		d, err := ParseDestination(text)
		if got := FormatDestination(d); (err != nil) != (want == "error") ||
			want != "" && want != "error" && got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := ParseDestination("queue:/X"); err == nil ||
		!strings.HasSuffix(err.Error(), "write queue://X") {
		t.Error(err)
	}
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	d := must[*Destination](t)(ParseDestination("queue://A?consumer.priority=3" +
		"&consumer.exclusive=true&consumer.selector=x%3D1&consumer.prefetchSize=7"))
	ok(t, during(t, func() error { _, err := s.Consumer(bound(t), d); return err }, func() {
		x := expect[*openwire.ConsumerInfo](p)
		if x.Priority != 3 || !x.Exclusive || x.Selector != "x=1" || x.PrefetchSize != 7 ||
			x.Destination.PhysicalName != "A" {
			t.Errorf("the options make %+v", x)
		}
		p.answer(x)
	}))
	for _, bad := range []string{
		"A?consumer.colour=1", "A?exclusive=true", "A?consumer.priority=999",
	} {
		if _, err := s.Consumer(bound(t), Queue(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestPropertiesKeepTheirTypes(t *testing.T) {
	m := NewText("x")
	for name, value := range map[string]any{"i": 5, "l": 1 << 40, "f": 1.5, "b": true, "n": nil} {
		ok(t, m.SetProperty(name, value))
	}
	if err := m.SetProperty("bad", struct{}{}); err == nil {
		t.Error("a struct became a property")
	}
	p := must[primitive.Map](t)(m.Properties())
	got := map[string]any{}
	for _, e := range p {
		got[e.Key] = e.Value
	}
	want := map[string]any{"i": int32(5), "l": int64(1 << 40), "f": 1.5, "b": true, "n": nil}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("properties %v, want %v", got, want)
	}
}

func TestMapsAndStreamsTakeIntsAsPropertiesDo(t *testing.T) {
	body := primitive.Map{{Key: "a", Value: 5}, {Key: "in", Value: primitive.List{1 << 40, "x"}}}
	got := must[any](t)(must[*Message](t)(NewMap(body)).Body())
	want := primitive.Map{{Key: "a", Value: int32(5)},
		{Key: "in", Value: primitive.List{int64(1 << 40), "x"}}}
	if !reflect.DeepEqual(got, want) || body[0].Value != 5 {
		t.Errorf("the map is %v, want %v; it was made of %v", got, want, body)
	}
	got = must[any](t)(must[*Message](t)(NewStream(primitive.List{7, true})).Body())
	if want := (primitive.List{int32(7), true}); !reflect.DeepEqual(got, want) {
		t.Errorf("the stream is %v, want %v", got, want)
	}
	_, err := NewMap(primitive.Map{{Key: "k", Value: uint(1)}})
	if err == nil || !strings.Contains(err.Error(), `entry "k": a value of type uint`) {
		t.Errorf("a uint: %v", err)
	}
}

func TestAMessageIsShownInAFewWords(t *testing.T) {
	m := NewText("secret")
	if got := fmt.Sprint(m); got != "ActiveMQTextMessage" {
		t.Errorf("a new one is %q", got)
	}
	m.ID, m.Destination = "ID:1", Queue("Q")
	if got := fmt.Sprint(m); got != "ActiveMQTextMessage ID:1 of queue://Q" {
		t.Errorf("one that was sent is %q", got)
	}
}

func TestForeignMessageIDsAreShownAsTheyAre(t *testing.T) {
	p := &openwire.ProducerId{ConnectionID: "c", SessionID: 1, Value: 2}
	for want, id := range map[string]*openwire.MessageId{
		"":          nil,
		"ID:mine":   {TextView: "ID:mine", ProducerID: &openwire.ProducerId{}},
		"c:1:2:7":   {ProducerID: p, ProducerSequenceID: 7},
		"ID:broken": {TextView: "ID:broken"},
	} {
		if got := formatID(id); got != want {
			t.Errorf("id %q, want %q", got, want)
		}
	}
	if a, b := (&openwire.MessageId{TextView: "a"}), (&openwire.MessageId{TextView: "b"}); keyOf(
		a) == keyOf(b) {
		t.Error("two foreign ids are one")
	}
}

func ExampleDial() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := Dial(ctx, "failover:(tcp://localhost:61616)?startupMaxReconnectAttempts=1")
	if err != nil {
		fmt.Println("no broker:", errors.Is(err, ErrUnavailable))
		return
	}
	defer conn.Close(ctx)
	session, err := conn.Session(ctx, AutoAck)
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := session.Producer(ctx, Queue("ORDERS"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := producer.Send(ctx, NewText("hello"), TTL(time.Minute)); err != nil {
		fmt.Println(err)
		return
	}
	consumer, err := session.Consumer(ctx, Queue("ORDERS"), WithSelector("JMSPriority > 3"))
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := consumer.Receive(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(message.Text())
}
