package bridge

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// candidate is one copy as the home broker shows it.
type candidate struct {
	m        *message.Message
	arrived  time.Duration
	now      time.Duration
	consumer bool // some local consumer
	matching bool // one whose selector takes it
	replay   network.Replay
}

func (c candidate) Message() *message.Message { return c.m }
func (c candidate) Redelivery() int32         { return 0 }
func (c candidate) Arrived() time.Duration    { return c.arrived }
func (c candidate) Now() time.Duration        { return c.now }
func (c candidate) Wall() int64               { return 0 }
func (c candidate) Replay() network.Replay    { return c.replay }
func (c candidate) LocalConsumer(matching bool) bool {
	if matching {
		return c.matching
	}
	return c.consumer
}

func pathed(dest string, path ...message.BrokerID) *message.Message {
	m := text(dest, 1)
	m.BrokerPath = path
	return m
}

const netB = message.BrokerID("ID:netB")

// Words of the verdict table.
var (
	on      = network.Replay{WhenNoConsumers: true}
	delayed = network.Replay{WhenNoConsumers: true, Delay: 3 * time.Second}
	aware   = network.Replay{WhenNoConsumers: true, SelectorAware: true}
	hop     = Hello{HopwireLevel: 1}
	amq     = Hello{}
)

const sec = time.Second

var verdictCases = []struct {
	name  string
	hello Hello
	dest  string // the remote consumer's
	ttl   int32
	c     candidate
	want  message.Verdict
}{
	{"N001 a fresh message crosses", amq, "queue://Q", 1, candidate{m: text("Q", 1)},
		message.Verdict{}},
	{"message TTL is the number of hops", amq, "queue://Q", 1,
		candidate{m: pathed("Q", "ID:netC")}, message.Refused(message.TTLMessage)},
	{"TTL 2 allows a second hop", amq, "queue://Q", 2, candidate{m: pathed("Q", "ID:netC")},
		message.Verdict{}},
	{"TTL -1 is no limit", amq, "queue://Q", -1,
		candidate{m: pathed("Q", "1", "2", "3", "4")}, message.Verdict{}},
	{"on topics TTL discards", amq, "topic://T", 1,
		candidate{m: pathed("topic://T", "ID:netC")},
		message.Verdict{Outcome: message.Discard, Reason: message.TTLMessage}},
	{"on topics a visited peer discards", amq, "topic://T", 5,
		candidate{m: pathed("topic://T", netB), replay: on},
		message.Verdict{Outcome: message.Discard, Reason: message.AlreadyVisited}},
	{"N030 no replay by default", hop, "queue://Q", 1, candidate{m: pathed("Q", netB)},
		message.Refused(message.ReplayOff)},
	{"N031 replay when there are no consumers, whatever the TTL", hop, "queue://Q", 1,
		candidate{m: pathed("Q", "x", netB), replay: on}, message.Verdict{}},
	{"replay waits for local consumers to go", hop, "queue://Q", 1,
		candidate{m: pathed("Q", netB), replay: on, consumer: true},
		message.Verdict{Outcome: message.Refuse, Wake: message.WakeConsumers,
			Reason: message.LocalConsumerPresent}},
	{"B028d a consumer that does not match is none when selectorAware", hop, "queue://Q", 1,
		candidate{m: pathed("Q", netB), replay: aware, consumer: true}, message.Verdict{}},
	{"N040 replayDelay counts from arrival and wakes by itself", hop, "queue://Q", 1,
		candidate{m: pathed("Q", netB), replay: delayed, arrived: 2 * sec, now: 3 * sec},
		message.RefusedUntil(message.ReplayDelay, 5*sec)},
	{"after the delay it goes", hop, "queue://Q", 1,
		candidate{m: pathed("Q", netB), replay: delayed, arrived: 2 * sec, now: 5 * sec},
		message.Verdict{}},
	{"the delay doubles with each return", hop, "queue://Q", 1,
		candidate{m: pathed("Q", netB, "x", netB), replay: delayed, arrived: 0, now: 3 * sec},
		message.RefusedUntil(message.ReplayDelay, 6*sec)},
	{"to an ActiveMQ broker a copy returns a second later at the earliest", amq, "queue://Q",
		1, candidate{m: pathed("Q", netB), replay: on, arrived: 10 * sec, now: 10 * sec},
		message.RefusedUntil(message.ReplayDelay, 11*sec)},
	{"and after five even without a keep-alive", amq, "queue://Q", 1,
		candidate{m: pathed("Q", netB), replay: on, arrived: 10 * sec, now: 15 * sec},
		message.Verdict{}},
	{"B036 a frame the peer does not take stays", Hello{MaxFrame: 4000}, "queue://Q", 1,
		candidate{m: sized("Q", 3000)}, message.Refused(message.FrameTooBig)},
	{"and a smaller one goes", Hello{MaxFrame: 8000}, "queue://Q", 1,
		candidate{m: sized("Q", 3000)}, message.Verdict{}},
	{"a wide subscription carries nothing excluded", amq, "queue://>", 1,
		candidate{m: text("no.1", 1)}, message.Refused(message.Excluded)},
}

func TestFilterVerdicts(t *testing.T) {
	for _, c := range verdictCases {
		w := newWorld(t, func(o *Options) {
			o.MessageTTL = c.ttl
			o.Excluded = []message.Destination{queue("no.>")}
		})
		w.connect(c.hello)
		w.consume(1, c.dest)
		if got := w.home.sub(t, c.dest).Filter.Verdict(c.c); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func sized(dest string, bytes int) *message.Message {
	m := text(dest, 1)
	m.Content = make([]byte, bytes)
	return m
}

func TestReplayDelayIsCapped(t *testing.T) {
	for _, c := range []struct {
		delay  time.Duration
		visits int
		want   time.Duration
	}{
		{0, 1, 0}, {0, 2, 40 * time.Millisecond}, {0, 3, 80 * time.Millisecond},
		{time.Second, 4, 8 * time.Second}, {time.Second, 50, time.Minute},
		{0, 1000, time.Minute}, {2 * time.Minute, 9, 2 * time.Minute},
	} {
		if got := replayDelay(c.delay, c.visits); got != c.want {
			t.Errorf("replayDelay(%v, %d) = %v, want %v", c.delay, c.visits, got, c.want)
		}
	}
}

// A copy may go back to an ActiveMQ broker once a keep-alive that left a second after our answer
// came back.
func TestReturnToActiveMQWaitsForAKeepAliveRoundTrip(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	f := w.home.sub(t, "queue://Q").Filter
	c := candidate{m: pathed("Q", netB), replay: network.Replay{WhenNoConsumers: true}}
	ask := func() message.Verdict {
		c.now = w.env.Mono()
		return f.Verdict(c)
	}
	w.link.take()
	ask()
	w.env.advance(1500 * time.Millisecond)
	if v := ask(); v.Outcome != message.Refuse || v.Wake != message.WakeAt {
		t.Fatalf("before the round trip: %+v", v)
	}
	var pings int
	answer := func() {
		for _, x := range w.link.take() {
			if _, ok := x.(*message.KeepAliveInfo); ok && x.Head().ResponseRequired {
				pings++
				w.dial.receive(&message.KeepAliveInfo{})
			}
		}
	}
	answer()
	w.env.advance(600 * time.Millisecond)
	answer()
	if v := ask(); v.Outcome != message.Deliver {
		t.Fatalf("after %d round trips: %+v", pings, v)
	}
	w.env.advance(time.Minute)
	answer()
	if pings != 1 {
		t.Errorf("%d keep-alives for one copy", pings)
	}
}

func TestRateLimitIsAGateWithAWake(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	f := w.home.sub(t, "queue://Q").Filter
	c := candidate{m: text("Q", 1), replay: network.Replay{RateLimit: 3,
		RateDuration: 2 * time.Second}}
	for at := range 3 {
		c.now = time.Duration(at) * 100 * time.Millisecond
		if v := f.Verdict(c); v.Outcome != message.Deliver {
			t.Fatalf("message %d: %+v", at, v)
		}
		f.Took(queue("Q"), c.replay, c.now)
	}
	want := message.RefusedUntil(message.RateLimit, 2*time.Second)
	if got := f.Gate(c.now); got != want {
		t.Errorf("gate %+v, want %+v", got, want)
	}
	if got := f.Verdict(c); got != want {
		t.Errorf("verdict %+v, want %+v", got, want)
	}
	if got := f.Gate(2 * time.Second); got.Outcome != message.Deliver {
		t.Errorf("gate at the end of the window %+v", got)
	}
}

func TestRateOfOneDestinationHoldsNoOther(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, ">")
	f := w.home.sub(t, "queue://>").Filter
	slow := candidate{m: text("slow", 1), replay: network.Replay{RateLimit: 1,
		RateDuration: time.Minute}}
	quick := candidate{m: text("quick", 1), replay: network.Replay{RateLimit: 2,
		RateDuration: time.Second}}
	free := candidate{m: text("free", 1)}
	reason := func(c candidate, at time.Duration) message.Reason {
		c.now = at
		return f.Verdict(c).Reason
	}
	for _, c := range []candidate{slow, quick, free} {
		f.Took(c.m.Destination, c.replay, 0)
		for range 3 {
			reason(c, 0) // asking changes nothing
		}
	}
	for _, c := range []struct {
		name string
		at   time.Duration
		c    candidate
		want message.Reason
	}{
		{"its one is gone", sec, slow, message.RateLimit},
		{"one of two", 0, quick, ""},
		{"no limit", 0, free, ""},
		{"the next minute", time.Minute, slow, ""},
	} {
		if got := reason(c.c, c.at); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	f.Took(quick.m.Destination, quick.replay, 0)
	if got := reason(quick, 0); got != message.RateLimit {
		t.Errorf("two of two: %q", got)
	}
	if got := reason(quick, sec); got != "" {
		t.Errorf("the next second: %q", got)
	}
	if got := f.Gate(0); got.Outcome != message.Deliver {
		t.Errorf("the gate of them all: %+v", got)
	}
	for n := range 1000 {
		f.Took(text(string(rune('a'+n)), 1).Destination, quick.replay, time.Duration(n)*sec)
	}
	if n := len(f.(*demand).rates); n > ratesKept+1 {
		t.Errorf("%d windows for destinations long gone", n)
	}
}

func TestB026SelectorsOfRemoteConsumersKeepMessagesHome(t *testing.T) {
	red := func() *message.ConsumerInfo {
		c := consumer(1, "Q")
		c.Selector = "color=red"
		return c
	}
	blue := text("Q", 1)
	blue.CorrelationID = "blue"
	for _, c := range []struct {
		name   string
		second func() *message.ConsumerInfo
		want   message.Verdict
	}{
		{"alone", nil, message.Refused(message.SelectorNoMatch)},
		{"one without selector", func() *message.ConsumerInfo { return consumer(2, "Q") },
			message.Verdict{}},
		{"one that takes blue", func() *message.ConsumerInfo {
			x := consumer(2, "Q")
			x.Selector = "color=blue"
			return x
		}, message.Verdict{}},
		{"one that reads what the peer changes", func() *message.ConsumerInfo {
			x := consumer(2, "Q")
			x.Selector = "JMSRedelivered=true"
			return x
		}, message.Verdict{}},
		{"one that does not parse", func() *message.ConsumerInfo {
			x := consumer(2, "Q")
			x.Selector = "???"
			return x
		}, message.Verdict{}},
	} {
		w := newWorld(t, nil)
		w.connect(Hello{})
		w.advise("Consumer.Queue.Q", red())
		w.home.take()
		if c.second != nil {
			w.advise("Consumer.Queue.Q", c.second())
		}
		f := w.home.sub(t, "queue://Q").Filter
		if got := f.Verdict(candidate{m: blue}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if c.second != nil {
			same(t, "a wider demand looks again", w.home.take()[:1], []string{"wake queue://Q"})
			w.unconsume(2)
			if got := f.Verdict(candidate{m: blue}); got.Reason != message.SelectorNoMatch {
				t.Errorf("%s gone: %+v", c.name, got)
			}
		}
	}
}

func TestAdvisoriesObeyPathAndTTLOfWhatTheyCarry(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Duplex = true })
	w.connect(Hello{})
	w.dial.receive(&message.ConsumerInfo{
		ID:          message.ConsumerID{Connection: "netB->netA", Session: 1, Value: 1},
		Destination: topic("ActiveMQ.Advisory.Consumer.>,ActiveMQ.Advisory.TempQueue")})
	same(t, "subscriptions", w.home.list(), []string{"topic://ActiveMQ.Advisory.Consumer.>",
		"topic://ActiveMQ.Advisory.TempQueue"})
	f := w.home.sub(t, "topic://ActiveMQ.Advisory.Consumer.>").Filter
	for _, c := range []struct {
		name string
		path []message.BrokerID
		want message.Reason
	}{
		{"a client's consumer", nil, ""},
		{"the peer's own consumer", []message.BrokerID{netB}, message.TTLConsumer},
	} {
		x := consumer(1, "Q")
		x.BrokerPath = c.path
		if got := f.Verdict(candidate{m: advisoryMessage("Consumer.Queue.Q", x)}); got.Reason != c.want {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}
