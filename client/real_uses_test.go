package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/openwire"
	until "hopwire/test/wait"
)

func pulling(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name))
	k := consumer(t, s, &Destination{
		Type: openwire.TypeQueue, PhysicalName: name + "?consumer.prefetchSize=0",
	})
	if m, err := k.ReceiveNoWait(bound(t)); m != nil || err != nil {
		t.Fatal(m, err)
	}
	none(t, k, 100*time.Millisecond)
	send(t, p, "a", "b", "c")
	// ActiveMQ may answer that there is nothing while it brings what was sent to its consumers.
	until.For(t, within, "a message that is pulled", func() (string, bool) {
		m, err := k.ReceiveNoWait(bound(t))
		ok(t, err)
		return "nothing is pulled", m != nil
	})
	if got := texts(t, k, 1); got[0] != "b" {
		t.Fatal(got)
	}
	// ActiveMQ may have given it to a pull that had ended without any.
	ok(t, k.Close())
	if got := texts(t, consumer(t, s, Queue(name)), 1); got[0] != "c" {
		t.Fatal(got)
	}
}

func selectors(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name))
	red := consumer(t, s, Queue(name), WithSelector("color = 'red'"), WithPriority(3))
	m := NewText("r")
	ok(t, m.SetProperty("color", "red"))
	ok(t, p.Send(bound(t), m))
	send(t, p, "other")
	if got := texts(t, red, 1); got[0] != "r" {
		t.Fatal(got)
	}
	none(t, red, 100*time.Millisecond)
	ok(t, red.Close())
	first := consumer(t, s, Queue(name), WithExclusive())
	second := consumer(t, s, Queue(name))
	send(t, p, "x")
	texts(t, first, 2)
	none(t, second, 100*time.Millisecond)
	_, err := s.Consumer(bound(t), Queue(name), WithSelector("a = "))
	var refused *BrokerError
	if !errors.As(err, &refused) || !refused.is("InvalidSelectorException") {
		t.Fatalf("a bad selector gives %v", err)
	}
}

func durable(t *testing.T, uri, name string) {
	c := open(t, uri, WithClientID(name))
	s := session(t, c, AutoAck)
	k, err := s.Consumer(bound(t), Topic(name), WithDurable("sub"))
	if err != nil && strings.Contains(err.Error(), "not supported") {
		t.Skip(err)
	}
	ok(t, err)
	ok(t, k.Close())
	send(t, producer(t, s, Topic(name)), "while away")
	k = consumer(t, s, Topic(name), WithDurable("sub"))
	texts(t, k, 1)
	if err := c.Unsubscribe(bound(t), "sub"); err == nil {
		t.Fatal("a subscription in use was deleted")
	}
	ok(t, k.Close())
	ok(t, c.Unsubscribe(bound(t), "sub"))
	if err := c.Unsubscribe(bound(t), "sub"); err == nil {
		t.Fatal("a deleted subscription was deleted again")
	}
}

func noLocal(t *testing.T, uri, name string) {
	c := open(t, uri)
	s := session(t, c, AutoAck)
	mine := consumer(t, s, Topic(name), WithNoLocal())
	all := consumer(t, s, Topic(name))
	send(t, producer(t, s, Topic(name)), "mine")
	texts(t, all, 1)
	none(t, mine, 100*time.Millisecond)
}

func browse(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name))
	for i := range 30 {
		send(t, p, fmt.Sprint(i))
	}
	b, err := s.Browser(bound(t), Queue(name), WithPrefetchSize(4))
	ok(t, err)
	n := 0
	for {
		m, err := b.Next(bound(t))
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if text, _ := m.Text(); text != fmt.Sprint(n) {
			t.Fatalf("message %d is %s", n, text)
		}
		n++
	}
	if n != 30 {
		t.Fatalf("saw %d of 30", n)
	}
	ok(t, b.Close())
	if got := texts(t, consumer(t, s, Queue(name)), 30); got[29] != "29" {
		t.Fatal(got)
	}
}

func requestReply(t *testing.T, uri, name string) {
	server := session(t, open(t, uri), AutoAck)
	answers := producer(t, server, nil)
	_, err := server.Consume(bound(t), Queue(name), func(ctx context.Context, m *Message) error {
		text, err := m.Text()
		if err != nil {
			return err
		}
		return answers.Reply(ctx, m, NewText(text+"!"), NonPersistent())
	})
	ok(t, err)
	r := must[*Requester](t)(open(t, uri).Requester(bound(t)))
	for _, text := range []string{"a", "b"} {
		m := must[*Message](t)(r.Do(bound(t), Queue(name), NewText(text)))
		if got, _ := m.Text(); got != text+"!" {
			t.Fatalf("the reply to %s is %s", text, got)
		}
	}
	ok(t, r.Close(bound(t)))
}

func advisories(t *testing.T, uri, name string) {
	c := open(t, uri)
	s := session(t, c, AutoAck)
	watch := consumer(t, s, AdvisoryConsumer.For(Queue(name)))
	k := consumer(t, s, Queue(name))
	m := must[*Message](t)(watch.Receive(bound(t)))
	info, _ := m.Structure().(*openwire.ConsumerInfo)
	if info == nil || info.Destination.PhysicalName != name || !IsAdvisory(m.Destination) {
		t.Fatalf("the advisory is about %v", m.Structure())
	}
	if n, _ := m.Property("consumerCount"); n != int32(1) {
		t.Fatalf("consumerCount = %v", n)
	}
	ok(t, k.Close())
	m = must[*Message](t)(watch.Receive(bound(t)))
	if _, is := m.Structure().(*openwire.RemoveInfo); !is {
		t.Fatalf("the advisory is about %v", m.Structure())
	}
}

func asyncWindow(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name), Window(8))
	var confirmed atomic.Int64
	for i := range 200 {
		ok(t, p.SendAsync(bound(t), NewText(fmt.Sprint(i)), func(err error) {
			if err == nil {
				confirmed.Add(1)
			}
		}))
	}
	ok(t, p.Flush(bound(t)))
	ok(t, p.Close(bound(t)))
	if got := texts(t, consumer(t, s, Queue(name)), 200); got[199] != "199" {
		t.Fatal(got)
	}
	if n := confirmed.Load(); n != 200 {
		t.Fatalf("%d of 200 confirmed", n)
	}
}

func byteWindow(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	p := producer(t, s, Queue(name), NonPersistent(), WindowBytes(3000))
	for i := range 50 {
		send(t, p, fmt.Sprint(i))
	}
	texts(t, consumer(t, s, Queue(name)), 50)
}

func sharedSession(t *testing.T, uri, name string) {
	const senders, receivers, each = 8, 4, 50
	c := open(t, uri)
	s := session(t, c, AutoAck)
	p := producer(t, s, Queue(name))
	k := consumer(t, s, Queue(name), WithPrefetchSize(10))
	ctx := bound(t)
	var group sync.WaitGroup
	var seen sync.Map
	for i := range senders {
		group.Go(func() {
			for n := range each {
				if err := p.Send(ctx, NewText(fmt.Sprint(i, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range receivers {
		group.Go(func() {
			for range senders * each / receivers {
				m, err := k.Receive(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := m.Text()
				if _, twice := seen.LoadOrStore(text, true); twice {
					t.Errorf("%s came twice", text)
				}
			}
		})
	}
	group.Wait()
}

func timeToLive(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), AutoAck)
	k := consumer(t, s, Queue(name)) // prefetches the message, so that it expires in the client
	p := producer(t, s, Queue(name))
	ok(t, p.Send(bound(t), NewText("short"), TTL(50*time.Millisecond)))
	timer := time.NewTimer(150 * time.Millisecond)
	<-timer.C
	send(t, p, "long")
	if got := texts(t, k, 1); got[0] != "long" {
		t.Fatal(got)
	}
	if got := texts(t, consumer(t, s, Queue("ActiveMQ.DLQ")), 1); got[0] != "short" {
		t.Fatalf("the dead letter queue has %q", got)
	}
}

func refusals(t *testing.T, uri, name string) {
	c := open(t, uri, WithClientID(name))
	_, err := Dial(bound(t), uri, WithClientID(name))
	var refused *BrokerError
	if !errors.As(err, &refused) || !refused.is("InvalidClientIDException") {
		t.Fatalf("a client id in use gives %v", err)
	}
	temp := must[*Destination](t)(c.TempQueue(bound(t)))
	ok(t, c.DeleteTemp(bound(t), temp))
	p := producer(t, session(t, c, AutoAck), nil)
	if err := p.Send(bound(t), NewText("x"), To(temp)); !errors.As(err, &refused) {
		t.Fatalf("sending to a deleted temporary queue gives %v", err)
	}
	ok(t, c.AddDestination(bound(t), Queue(name)))
	ok(t, c.RemoveDestination(bound(t), Queue(name)))
}

func countersAfterClose(t *testing.T, uri, name string) {
	s := session(t, open(t, uri), ClientAck)
	send(t, producer(t, s, Queue(name)), "m0", "m1", "m2", "m3")
	k := consumer(t, s, Queue(name))
	texts(t, k, 2)
	ok(t, k.Close())
	k = consumer(t, s, Queue(name))
	for i, want := range []int{2, 2, 1, 1} {
		if m := must[*Message](t)(k.Receive(bound(t))); m.DeliveryCount != want {
			t.Errorf("m%d comes with delivery count %d, want %d", i, m.DeliveryCount, want)
		}
	}
}
