package openwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
	"hopwire/internal/wire"
	"hopwire/openwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a broker with one connector.
type house struct {
	t        testing.TB
	loop     *loop.Loop
	broker   *broker.Broker
	group    *rungroup.Group
	hub      *wire.Hub
	listener *Listener
	log      lines
}

// lines is a log that tests read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// options are the query of the connector's URI.
func newHouse(t testing.TB, options string, change func(*broker.Options)) *house {
	t.Helper()
	h := &house{t: t, loop: loop.New(), group: rungroup.New(context.Background())}
	committer := store.NewCommitter(mem.New(), h.loop.Post)
	o := broker.Options{Name: "home", Persistent: true, Advisories: true}
	if change != nil {
		change(&o)
	}
	h.broker = broker.New(h.loop, committer, nil, o)
	h.loop.OnTurn(h.broker.EndTurn)
	h.hub = wire.NewHub(h.loop)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { h.loop.Run(ctx); close(ended) }()
	var err error
	h.listener, err = Listen(Options{
		Name: "openwire", URI: "tcp://127.0.0.1:0" + options,
		Broker: h.broker, Hub: h.hub, Group: h.group,
		Log: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.listener.Start()
	t.Cleanup(func() {
		h.group.Stop()
		if err := h.group.Wait(); err != nil {
			t.Error(err)
		}
		if err := committer.Close(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		<-ended
	})
	return h
}

// ask runs f on the loop.
func (h *house) ask(f func()) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !h.loop.Call(ctx, f) {
		h.t.Fatal("the loop did not answer")
	}
}

// until asks on the loop again and again until it holds.
func (h *house) until(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; {
		ok := false
		h.ask(func() { ok = holds() })
		if ok {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("it never came that %s; the log: %s", what, h.log.String())
		}
	}
}

const patience = 10 * time.Second

// client speaks OpenWire by the codec alone.
type client struct {
	t      testing.TB
	c      net.Conn
	r      *openwire.FrameReader
	d      *openwire.Decoder
	e      *openwire.Encoder
	format openwire.Format
	queue  [][]byte
	server openwire.HelloOptions
}

func clientHello(t testing.TB, change func(*openwire.HelloOptions)) *openwire.WireFormatInfo {
	t.Helper()
	o := openwire.DefaultHelloOptions()
	if change != nil {
		change(&o)
	}
	hello, err := openwire.NewHello(openwire.MaxVersion, o)
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

// dial connects and exchanges hellos.
func (h *house) dial(hello *openwire.WireFormatInfo) *client {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.listener.Addr())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return greet(h.t, conn, hello)
}

func greet(t testing.TB, conn net.Conn, hello *openwire.WireFormatInfo) *client {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(3 * patience))
	c := &client{t: t, c: conn, r: openwire.NewFrameReader(conn)}
	frame, err := hello.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.write(frame)
	first, err := c.r.ReadBatch()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := openwire.DecodeHello(first[0])
	if err != nil {
		t.Fatal(err)
	}
	if c.server, err = theirs.Options(); err != nil {
		t.Fatal(err)
	}
	if c.format, err = openwire.Negotiate(hello, theirs); err != nil {
		t.Fatal(err)
	}
	c.r.SetLimit(0)
	c.d, c.e = openwire.NewDecoder(c.format), openwire.NewEncoder(c.format)
	return c
}

func (c *client) write(b []byte) {
	c.t.Helper()
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(xs ...openwire.DataStructure) {
	c.t.Helper()
	var b []byte
	var err error
	for _, x := range xs {
		if b, err = c.e.Append(b, x); err != nil {
			c.t.Fatal(err)
		}
	}
	c.write(b)
}

// next gives the next structure that is no sign of life; nil at the end of the connection.
func (c *client) next() openwire.DataStructure {
	c.t.Helper()
	for {
		for len(c.queue) == 0 {
			fs, err := c.r.ReadBatch()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				c.t.Fatal(err)
			}
			c.queue = append(c.queue, fs...)
		}
		x, err := c.d.Decode(c.queue[0])
		if err != nil {
			c.t.Fatal(err)
		}
		c.queue = c.queue[1:]
		if _, alive := x.(*openwire.KeepAliveInfo); !alive {
			return x
		}
	}
}

// await reads until a structure of type T comes.
func await[T openwire.DataStructure](c *client) T {
	c.t.Helper()
	for {
		x := c.next()
		if x == nil {
			c.t.Fatalf("the connection ended before a %T", *new(T))
		}
		if x, ok := x.(T); ok {
			return x
		}
	}
}

func base(id int32, answer bool) openwire.BaseCommand {
	return openwire.BaseCommand{CommandID: id, ResponseRequired: answer}
}

// open logs in as connection id and opens a session and a producer, numbers 1.
func (c *client) open(id string) {
	c.t.Helper()
	await[*openwire.BrokerInfo](c)
	c.send(&openwire.ConnectionInfo{
		BaseCommand:  base(1, true),
		ConnectionID: &openwire.ConnectionId{Value: id}, ClientID: id,
	})
	if x, ok := c.next().(*openwire.Response); !ok || x.CorrelationID != 1 {
		c.t.Fatalf("the login was answered by %+v", x)
	}
	c.send(&openwire.SessionInfo{SessionID: &openwire.SessionId{ConnectionID: id, Value: 1}},
		&openwire.ProducerInfo{ProducerID: producer(id)})
}

func producer(id string) *openwire.ProducerId {
	return &openwire.ProducerId{ConnectionID: id, SessionID: 1, Value: 1}
}

func bytesMessage(id, queue string, seq int64, body []byte) *openwire.Message {
	return &openwire.Message{
		Type: openwire.TypeBytesMessage, ProducerID: producer(id),
		Destination: &openwire.Destination{Type: openwire.TypeQueue, PhysicalName: queue},
		MessageID:   &openwire.MessageId{ProducerID: producer(id), ProducerSequenceID: seq},
		Persistent:  true, Priority: 4, Content: body,
	}
}

func size(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }

func (h *house) queueSize(name string) (n int64) {
	for _, d := range h.broker.Status().Destinations {
		if d.Name == (message.Destination{Kind: message.Queue, Name: name}) {
			n = d.Size
		}
	}
	return n
}
