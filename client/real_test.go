package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/openwire/primitive"
	"hopwire/test/interop/broker"
)

// kinds are the brokers that the rules are played with.
var kinds = []broker.Kind{broker.ActiveMQ, broker.Hopwire, broker.ActiveMQ6}

// is reports whether the exception is of that class of JMS, by the name of either of its lines.
func (e *BrokerError) is(class string) bool {
	return e.Class == "javax.jms."+class || e.Class == "jakarta.jms."+class
}

// TestAgainstRealBrokers plays the rules of a client, one queue or topic each.
func TestAgainstRealBrokers(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) { playRules(t, kind) })
	}
}

func playRules(t *testing.T, kind broker.Kind) {
	b := broker.Start(t, kind, broker.Options{Name: "real"})
	for _, format := range []struct{ name, query string }{
		{"tight", ""},
		{"loose", "?wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false" +
			"&wireFormat.version=9"},
	} {
		uri := b.URL() + format.query
		for _, rule := range rules {
			t.Run(format.name+"/"+rule.name, func(t *testing.T) {
				rule.play(t, uri, fmt.Sprintf("%s.%s", format.name, rule.name))
			})
		}
	}
}

var rules = []struct {
	name string
	play func(t *testing.T, uri, name string)
}{
	{"bodies-and-headers-arrive", bodiesArrive},
	{"auto-ack-consumes", autoAckConsumes},
	{"client-ack-beyond-the-prefetch", clientAckExtends},
	{"individual-ack-consumes-one", individualAck},
	{"dups-ok-consumes", dupsOK},
	{"commit-and-rollback", commitRollback},
	{"poison-after-the-policy", poison},
	{"handler-error-redelivers", handlerRedelivers},
	{"pull", pulling},
	{"selector-priority-exclusive", selectors},
	{"durable-subscription", durable},
	{"no-local", noLocal},
	{"browse", browse},
	{"request-reply", requestReply},
	{"advisories", advisories},
	{"async-window", asyncWindow},
	{"byte-window", byteWindow},
	{"many-goroutines-share-a-session", sharedSession},
	{"time-to-live", timeToLive},
	{"refusals", refusals},
	{"counters-after-close", countersAfterClose},
}

func bodiesArrive(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name), Priority(7))
	k := consumer(t, s, Queue(name))
	body := primitive.Map{{Key: "n", Value: int32(5)}, {Key: "s", Value: "ü\x00\U0001F600"}}
	list := primitive.List{true, int64(1 << 40), "x", []byte{1, 2}}
	for i, m := range []*Message{
		NewText("grüße \U0001F600"), NewBytes([]byte{0, 1, 255}), must[*Message](t)(NewMap(body)),
		must[*Message](t)(NewStream(list)), NewEmpty(),
		{},
	} {
		m.CorrelationID, m.Type, m.GroupID, m.GroupSequence = "c", "t", "g", int32(i+1)
		m.ReplyTo = Topic("answers")
		ok(t, m.SetProperty("i", i))
		want := must[any](t)(m.Body())
		ok(t, p.Send(bound(t), m))
		got := must[*Message](t)(k.Receive(bound(t)))
		if have := must[any](t)(got.Body()); !reflect.DeepEqual(have, want) {
			t.Errorf("body %v, want %v", have, want)
		}
		if n, _ := got.Property("i"); n != int32(i) {
			t.Errorf("property i = %v, want %d", n, i)
		}
		if got.ID != m.ID || got.CorrelationID != "c" || got.Type != "t" || got.GroupID != "g" ||
			got.GroupSequence != m.GroupSequence || !got.Persistent || got.Priority != 7 ||
			!got.Timestamp.Equal(m.Timestamp) || got.DeliveryCount != 1 ||
			FormatDestination(got.ReplyTo) != "topic://answers" {
			t.Errorf("received %+v\nsent %+v", got, m)
		}
	}
}

func autoAckConsumes(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	send(t, producer(t, s, Queue(name)), "a", "b", "c")
	k := consumer(t, s, Queue(name))
	if got := texts(t, k, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
	ok(t, k.Close())
	if got := texts(t, consumer(t, s, Queue(name)), 1); got[0] != "c" {
		t.Fatal(got)
	}
}

func clientAckExtends(t *testing.T, uri, name string) {
	var asked atomic.Value
	c := open(t, uri, WithErrorHandler(func(err error) { asked.Store(err) }))
	s := session(t, c, ClientAck)
	p := producer(t, s, Queue(name))
	for i := range 50 {
		send(t, p, fmt.Sprint(i))
	}
	k := consumer(t, s, Queue(name), WithPrefetchSize(4))
	texts(t, k, 20)
	ok(t, s.Recover())
	first := must[*Message](t)(k.Receive(bound(t)))
	if text, _ := first.Text(); text != "0" || first.DeliveryCount != 2 {
		t.Fatalf("after Recover came %s, delivery %d", text, first.DeliveryCount)
	}
	texts(t, k, 48)
	last := must[*Message](t)(k.Receive(bound(t)))
	ok(t, last.Ack())
	ok(t, k.Close())
	none(t, consumer(t, s, Queue(name)), 300*time.Millisecond)
	if err := asked.Load(); err != nil {
		t.Fatal(err)
	}
}

func individualAck(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), IndividualAck)
	send(t, producer(t, s, Queue(name)), "a", "b", "c")
	k := consumer(t, s, Queue(name))
	for range 3 {
		m := must[*Message](t)(k.Receive(bound(t)))
		if text, _ := m.Text(); text == "b" {
			ok(t, m.Ack())
		}
	}
	ok(t, k.Close())
	if got := texts(t, consumer(t, s, Queue(name)), 2); !slices.Equal(got, []string{"a", "c"}) {
		t.Fatal(got)
	}
}

func dupsOK(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), DupsOKAck)
	p := producer(t, s, Queue(name))
	for i := range 25 {
		send(t, p, fmt.Sprint(i))
	}
	k := consumer(t, s, Queue(name), WithPrefetchSize(10))
	texts(t, k, 23)
	ok(t, k.Close())
	if got := texts(t, consumer(t, s, Queue(name)), 2); !slices.Equal(got, []string{"23", "24"}) {
		t.Fatal(got)
	}
}

func commitRollback(t *testing.T, uri, name string) {
	c := open(t, uri, WithRedelivery(Redelivery{Maximum: 6}))
	s := session(t, c, Transacted)
	p := producer(t, s, Queue(name))
	k := consumer(t, s, Queue(name), WithPrefetchSize(2))
	send(t, p, "lost")
	ok(t, s.Rollback(bound(t)))
	send(t, p, "a", "b", "c", "d")
	ok(t, s.Commit(bound(t)))
	if got := texts(t, k, 3); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatal(got)
	}
	ok(t, s.Rollback(bound(t)))
	m := must[*Message](t)(k.Receive(bound(t)))
	if text, _ := m.Text(); text != "a" || m.DeliveryCount != 2 {
		t.Fatalf("after the rollback came %s, delivery %d", text, m.DeliveryCount)
	}
	texts(t, k, 1)
	ok(t, s.Commit(bound(t)))
	texts(t, k, 1)
	ok(t, k.Close()) // stays until the commit
	ok(t, s.Commit(bound(t)))
	other := session(t, c, AutoAck)
	if got := texts(t, consumer(t, other, Queue(name)), 1); got[0] != "d" {
		t.Fatal(got)
	}
	none(t, consumer(t, other, Queue(name)), 200*time.Millisecond)
}

func poison(t *testing.T, uri, name string) {
	c := open(t, uri, WithRedelivery(Redelivery{Maximum: 2, Initial: time.Millisecond}))
	s := session(t, c, Transacted)
	send(t, producer(t, s, Queue(name)), "bad", "good")
	ok(t, s.Commit(bound(t)))
	k := consumer(t, s, Queue(name))
	for i := 1; i <= 3; i++ {
		m := must[*Message](t)(k.Receive(bound(t)))
		if text, _ := m.Text(); text != "bad" || m.DeliveryCount != i {
			t.Fatalf("delivery %d: %s, count %d", i, text, m.DeliveryCount)
		}
		ok(t, s.Rollback(bound(t)))
	}
	if got := texts(t, k, 1); got[0] != "good" {
		t.Fatal(got)
	}
	ok(t, s.Commit(bound(t)))
	dead := consumer(t, session(t, c, AutoAck), Queue("ActiveMQ.DLQ"))
	m := must[*Message](t)(dead.Receive(bound(t)))
	cause, _ := m.Property("dlqDeliveryFailureCause")
	if text, _ := m.Text(); text != "bad" || cause == nil {
		t.Fatalf("in the dead letter queue is %s, cause %v", text, cause)
	}
}

func handlerRedelivers(t *testing.T, uri, name string) {
	c := open(t, uri, WithRedelivery(Redelivery{Maximum: 6, Initial: time.Millisecond}))
	for _, mode := range []AckMode{AutoAck, ClientAck, DupsOKAck, IndividualAck, Transacted} {
		s := session(t, c, mode)
		d := Queue(name + "." + mode.String())
		send(t, producer(t, session(t, c, AutoAck), d), "a", "b")
		seen := make(chan string, 100)
		k, err := s.Consume(bound(t), d, func(ctx context.Context, m *Message) error {
			text, _ := m.Text()
			seen <- fmt.Sprint(text, m.DeliveryCount)
			if text == "a" && m.DeliveryCount < 3 {
				return errors.New("not now")
			}
			if mode == Transacted {
				return s.Commit(ctx)
			}
			return m.Ack()
		})
		ok(t, err)
		last := map[string]bool{}
		for !last["a3"] || !last["b1"] && !last["b2"] && !last["b3"] {
			select {
			case text := <-seen:
				last[text] = true
			case <-bound(t).Done():
				t.Fatalf("%v: saw %v", mode, last)
			}
		}
		if !last["a1"] || !last["a2"] {
			t.Errorf("%v: saw %v", mode, last)
		}
		ok(t, k.Close())
		ok(t, s.Close(bound(t)))
		none(t, consumer(t, session(t, c, AutoAck), d), 100*time.Millisecond)
	}
}
