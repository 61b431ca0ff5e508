package hostile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/openwire"
	"hopwire/test/wait"
)

func TestAConsumerThatNeverReadsDisturbsNobody(t *testing.T) {
	const messages, size, prefetch = 20_000, 1024, 1000
	p := newProcess(t, setup{})
	stuck := login(t, p.addr(), "stuck")
	stuck.subscribe(1, queueName("S"), prefetch)
	stuck.subscribe(2, topicName("T"), 32767)
	stuck.takeLittle()
	before := p.peakRSS()

	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	conn := dial(ctx, t, p.addr())
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	good := make(chan int, 4*messages)
	listen := func(d *client.Destination) {
		t.Helper()
		if _, err := s.Consume(ctx, d, func(context.Context, *client.Message) error {
			good <- 1
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	listen(client.Queue("S"))
	listen(client.Topic("T"))
	began := time.Now()
	for _, d := range []*client.Destination{client.Queue("S"), client.Topic("T")} {
		sendMany(ctx, t, conn, d, messages, size)
	}
	for n := range 2*messages - prefetch {
		select {
		case <-good:
		case <-ctx.Done():
			t.Fatalf("the other consumer got %d: %s", n, p.log.tail(2000))
		}
	}
	took := time.Since(began)
	q := queue(p.status(), "S")
	grown := p.peakRSS() - before
	t.Logf("%d messages for others in %v; %d are the stuck one's; %d MiB more", 2*messages,
		took.Round(time.Millisecond), q.InFlight, grown>>20)
	if q.InFlight != prefetch || q.Size != prefetch {
		t.Errorf("the queue has %d, %d in flight, want the %d of the stuck one", q.Size, q.InFlight,
			prefetch)
	}
	if grown > 150<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	// It gets what it asked for when it reads again, and loses nothing when it goes.
	began = time.Now()
	stuck.c.Close()
	defer func() { t.Log("came back after", time.Since(began)) }()
	for range prefetch {
		select {
		case <-good:
		case <-ctx.Done():
			t.Fatal("what the stuck one had does not come back")
		}
	}
}

// takeLittle makes the system keep next to nothing of what arrives and is not read.
func (k *raw) takeLittle() {
	if tcp, ok := k.c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
}

// sendMany sends transient messages of size bytes and waits until the broker has them.
func sendMany(ctx context.Context, t *testing.T, conn *client.Conn, d *client.Destination,
	messages, size int) {
	t.Helper()
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, d, client.NonPersistent())
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, size)
	for range messages {
		if err := p.SendAsync(ctx, client.NewBytes(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestAConsumerThatTakesNoByteIsGivenUp(t *testing.T) {
	p := newProcess(t, setup{uri: "?transport.soWriteTimeout=1000"})
	stuck := login(t, p.addr(), "stuck")
	stuck.takeLittle()
	stuck.subscribe(1, queueName("S"), 1000)
	k := login(t, p.addr(), "sender")
	for i := range int64(100) {
		k.send(k.message(queueName("S"), i+1, 256<<10))
	}
	k.alive()
	wait.For(t, patience, "rid of the stuck one", func() (string, bool) {
		s := p.status()
		q := queue(s, "S")
		return fmt.Sprintf("%d connections, %+v", s.Connections, q), s.Connections == 1 &&
			q.Size == 100 && q.InFlight == 0
	})
}

func TestATopicSubscriberThatNeverAcknowledgesIsBounded(t *testing.T) {
	const prefetch = 100
	p := newProcess(t, setup{body: `<systemUsage><systemUsage><memoryUsage>
<memoryUsage limit="20mb"/></memoryUsage></systemUsage></systemUsage>`})
	slow := login(t, p.addr(), "slow")
	slow.subscribe(1, topicName("T"), prefetch)
	k := login(t, p.addr(), "sender")
	before := p.peakRSS()
	sent := make(chan error, 1)
	go func() {
		var frames []byte
		for i := range int64(20_000) {
			frames = append(frames, k.frames(k.message(topicName("T"), i+1, 2048))...)
		}
		_, err := k.c.Write(frames)
		sent <- err
	}()
	t.Log(p.awaitLog(0, "reason=MEMORY_FULL"))
	s := p.status()
	grown := p.peakRSS() - before
	t.Logf("%d MiB more; memory %d KiB of %d; %+v", grown>>20, s.MemoryBytes>>10,
		s.MemoryLimitBytes>>10, s.Destinations)
	// The sender asks for no answers and has no window: it is not read any more.
	if grown > 100<<20 || s.MemoryBytes > 25<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	slow.c.Close()
	wait.For(t, patience, "free again", func() (string, bool) {
		s := p.status()
		return fmt.Sprint(s.MemoryBytes), s.MemoryBytes == 0
	})
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	k.alive()
}

func TestAProducerWindowIsGivenBack(t *testing.T) {
	p := newProcess(t, setup{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn := dial(ctx, t, p.addr())
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	pr, err := s.Producer(ctx, client.Queue("W"), client.NonPersistent(), client.WindowBytes(20_000))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := pr.Send(ctx, client.NewBytes(make([]byte, 1000))); err != nil {
			t.Fatalf("send %d: %v", i, err)
		}
	}
	wait.For(t, patience, "with all messages", func() (string, bool) {
		q := queue(p.status(), "W")
		return fmt.Sprint(q.Size), q.Size == 5000
	})
}

// small is a memory limit of 1 MB for one queue, which is not spooled.
const small = `<destinationPolicy><policyMap><policyEntries>
<policyEntry queue="FULL" memoryLimit="1mb" producerFlowControl="true">
<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
</policyEntries></policyMap></destinationPolicy>`

func TestSendsWithoutRoomWaitAndAcknowledgementsBehindThemDoNot(t *testing.T) {
	p := newProcess(t, setup{body: small})
	k := login(t, p.addr(), "both")
	const messages = 3000
	for i := range int64(messages) {
		k.send(k.message(queueName("FULL"), i+1, 1024))
	}
	mark := 0
	p.awaitLog(mark, "reason=MEMORY_FULL")
	q := queue(p.status(), "FULL")
	t.Logf("%d are there, %d sends wait", q.Size, q.Parked)
	if q.Parked == 0 || q.Size > 1100 {
		t.Errorf("%+v", q)
	}
	// The consumer is on the connection whose sends wait.
	k.subscribe(1, queueName("FULL"), 50)
	for i := range messages {
		d := await[*openwire.MessageDispatch](k)
		k.send(&openwire.MessageAck{ConsumerID: k.consumer(1), Destination: queueName("FULL"),
			AckType: openwire.AckStandard, MessageCount: 1,
			FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID})
		if got := d.Message.MessageID.ProducerSequenceID; got != int64(i+1) {
			t.Fatalf("message %d came as number %d", got, i+1)
		}
	}
	wait.For(t, patience, "empty", func() (string, bool) {
		q := queue(p.status(), "FULL")
		return fmt.Sprintf("%+v", q), q.Size == 0 && q.Parked == 0
	})
}

func TestSendsFailForSpaceWithActiveMQsWords(t *testing.T) {
	for _, c := range []struct{ name, usage, want string }{
		{"at once", `<systemUsage><systemUsage sendFailIfNoSpace="true"/></systemUsage>`,
			"Usage Manager Memory Limit reached. Stopping producer (ID:"},
		{"after a time",
			`<systemUsage><systemUsage sendFailIfNoSpaceAfterTimeout="300"/></systemUsage>`,
			"Usage Manager Memory Limit Wait Timeout. Stopping producer (ID:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProcess(t, setup{body: small + c.usage})
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			conn, err := client.Dial(ctx, p.url()+"?jms.alwaysSyncSend=true")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(ctx)
			s, err := conn.Session(ctx, client.AutoAck)
			if err != nil {
				t.Fatal(err)
			}
			pr, err := s.Producer(ctx, client.Queue("FULL"), client.NonPersistent())
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3000 {
				if err = pr.Send(ctx, client.NewBytes(make([]byte, 1024))); err != nil {
					t.Logf("send %d: %v", i, err)
					break
				}
			}
			var refused *client.BrokerError
			if !errors.As(err, &refused) || refused.Class != "javax.jms.ResourceAllocationException" ||
				!strings.Contains(refused.Message, c.want) ||
				!strings.Contains(refused.Message, "queue://FULL") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
