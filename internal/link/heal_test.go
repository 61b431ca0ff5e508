package link

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/openwire"
)

// flaky listens before a broker and spoils the first connections.
func flaky(t *testing.T, target string, spoil ...func(net.Conn)) (uri string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); close(ended); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if len(spoil) > 0 {
				f := spoil[0]
				spoil = spoil[1:]
				all.Go(func() { f(c); c.Close() })
				continue
			}
			all.Go(func() { pass(c, target, ended) })
		}
	})
	return "tcp://" + l.Addr().String()
}

func pass(c net.Conn, target string, ended <-chan struct{}) {
	defer c.Close()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(to, c); done <- struct{}{} }()
	go func() { _, _ = io.Copy(c, to); done <- struct{}{} }()
	select {
	case <-done:
	case <-ended:
		done <- struct{}{}
	}
	c.Close()
	to.Close()
	<-done
}

func sayHello(c net.Conn) {
	hello, err := openwire.NewHello(12, openwire.DefaultHelloOptions())
	if err != nil {
		return
	}
	frame, _ := hello.AppendFrame(nil)
	_, _ = c.Write(frame)
}

// TestABridgeHealsAfterHalfHandshakes is bug B032: whatever the remote does half, the bridge tries
// again until it is whole.
func TestABridgeHealsAfterHalfHandshakes(t *testing.T) {
	a, b := newHouse(t, "a"), newHouse(t, "b")
	uri := flaky(t, b.listener.Addr(),
		func(net.Conn) {},
		sayHello,
		func(c net.Conn) {
			sayHello(c)
			_, _ = c.Write([]byte{0, 0, 0, 90, openwire.TypeBrokerInfo, 0, 0})
		},
		func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 503 Busy\r\n\r\n")) },
	)
	a.connect(uri, func(o *bridge.Options) { o.MaxReconnectDelay = 50 * time.Millisecond })
	a.until4(bridge.Running)
	q := queue("orders")
	consumer, producer := b.user("consumer"), a.user("producer")
	consumer.consume(q)
	producer.produce(q, 1, "at last")
	if m := consumer.receive(); string(m.Content) != "at last" {
		t.Errorf("got %q", m.Content)
	}
}

// TestABigMessageStaysAndTheRestCrosses: the peer's limit is known from its hello; what is
// larger stays, with its reason, and the rest crosses.
func TestABigMessageStaysAndTheRestCrosses(t *testing.T) {
	a, b := newHouse(t, "a"), newHouseAt(t, "b", "?wireFormat.maxFrameSize=20000")
	a.connect(b.uri(), nil)
	a.until4(bridge.Running)
	q := queue("orders")
	consumer, producer := b.user("consumer"), a.user("producer")
	consumer.consume(q)
	producer.produce(q, 1, string(make([]byte, 50_000)))
	producer.produce(q, 2, "small")
	if m := consumer.receive(); string(m.Content) != "small" {
		t.Errorf("got %d bytes", len(m.Content))
	}
	a.until("the big one waits at home", func() bool {
		s := a.broker.Status().Destinations
		return len(s) > 0 && s[0].Size == 1 && a.connector.Status().State == bridge.Running
	})
}
