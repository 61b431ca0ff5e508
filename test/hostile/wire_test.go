package hostile

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"hopwire/openwire"
)

// raw is a client that speaks OpenWire by the codec alone, so that it can do what a client of good
// manners would not.
type raw struct {
	t     testing.TB
	c     net.Conn
	r     *openwire.FrameReader
	d     *openwire.Decoder
	e     *openwire.Encoder
	queue [][]byte
	early []openwire.DataStructure // came while an answer was awaited
	id    string
}

// knock connects and sends nothing.
func knock(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(3 * patience))
	return c
}

func helloFrame(t testing.TB) (*openwire.WireFormatInfo, []byte) {
	t.Helper()
	o := openwire.DefaultHelloOptions()
	o.MaxInactivityDuration = 0
	hello, err := openwire.NewHello(openwire.MaxVersion, o)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := hello.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	return hello, frame
}

// greet connects and exchanges hellos.
func greet(t testing.TB, addr string) *raw {
	t.Helper()
	return greetOver(t, knock(t, addr))
}

func greetOver(t testing.TB, c net.Conn) *raw {
	t.Helper()
	hello, frame := helloFrame(t)
	k := &raw{t: t, c: c, r: openwire.NewFrameReader(c)}
	k.write(frame)
	first, err := k.r.ReadBatch()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := openwire.DecodeHello(first[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := openwire.Negotiate(hello, theirs)
	if err != nil {
		t.Fatal(err)
	}
	k.queue = append(k.queue, first[1:]...)
	k.r.SetLimit(0)
	k.d, k.e = openwire.NewDecoder(f), openwire.NewEncoder(f)
	return k
}

// login connects and opens connection, session 1 and producer 1.
func login(t testing.TB, addr, id string) *raw {
	t.Helper()
	k := greet(t, addr)
	k.id = id
	k.send(&openwire.ConnectionInfo{BaseCommand: command(1, true),
		ConnectionID: &openwire.ConnectionId{Value: id}, ClientID: id})
	k.answer(1)
	k.send(&openwire.SessionInfo{SessionID: &openwire.SessionId{ConnectionID: id, Value: 1}},
		&openwire.ProducerInfo{ProducerID: k.producer()})
	return k
}

func command(id int32, answer bool) openwire.BaseCommand {
	return openwire.BaseCommand{CommandID: id, ResponseRequired: answer}
}

func (k *raw) producer() *openwire.ProducerId {
	return &openwire.ProducerId{ConnectionID: k.id, SessionID: 1, Value: 1}
}

func (k *raw) consumer(n int64) *openwire.ConsumerId {
	return &openwire.ConsumerId{ConnectionID: k.id, SessionID: 1, Value: n}
}

func queueName(name string) *openwire.Destination {
	return &openwire.Destination{Type: openwire.TypeQueue, PhysicalName: name}
}

func topicName(name string) *openwire.Destination {
	return &openwire.Destination{Type: openwire.TypeTopic, PhysicalName: name}
}

// message is one with a body of n bytes.
func (k *raw) message(d *openwire.Destination, seq int64, n int) *openwire.Message {
	return &openwire.Message{Type: openwire.TypeBytesMessage, ProducerID: k.producer(),
		Destination: d, MessageID: &openwire.MessageId{ProducerID: k.producer(),
			ProducerSequenceID: seq}, Priority: 4, Content: make([]byte, n)}
}

// subscribe makes consumer n.
func (k *raw) subscribe(n int64, d *openwire.Destination, prefetch int32) {
	k.t.Helper()
	k.send(&openwire.ConsumerInfo{BaseCommand: command(int32(100+n), true), ConsumerID: k.consumer(n),
		Destination: d, PrefetchSize: prefetch})
	k.answer(int32(100 + n))
}

func (k *raw) write(b []byte) {
	k.t.Helper()
	if _, err := k.c.Write(b); err != nil {
		k.t.Fatal(err)
	}
}

func (k *raw) frames(xs ...openwire.DataStructure) []byte {
	k.t.Helper()
	var b []byte
	var err error
	for _, x := range xs {
		if b, err = k.e.Append(b, x); err != nil {
			k.t.Fatal(err)
		}
	}
	return b
}

func (k *raw) send(xs ...openwire.DataStructure) {
	k.t.Helper()
	k.write(k.frames(xs...))
}

// next gives the next structure that is no sign of life; nil at the end of the connection.
func (k *raw) next() openwire.DataStructure {
	k.t.Helper()
	for {
		for len(k.queue) == 0 {
			fs, err := k.r.ReadBatch()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				k.t.Fatalf("%s: the broker says nothing more", k.id)
			}
			if err != nil {
				return nil
			}
			k.queue = append(k.queue, fs...)
		}
		x, err := k.d.Decode(k.queue[0])
		if err != nil {
			k.t.Fatal(err)
		}
		k.queue = k.queue[1:]
		if _, alive := x.(*openwire.KeepAliveInfo); !alive {
			return x
		}
	}
}

// await reads until a structure of type T comes.
func await[T openwire.DataStructure](k *raw) T {
	k.t.Helper()
	for i, x := range k.early {
		if x, ok := x.(T); ok {
			k.early = append(k.early[:i], k.early[i+1:]...)
			return x
		}
	}
	for {
		x := k.next()
		if x == nil {
			k.t.Fatalf("the connection ended before a %T", *new(T))
		}
		if x, ok := x.(T); ok {
			return x
		}
		if x, failed := x.(*openwire.ExceptionResponse); failed {
			k.t.Fatalf("instead of a %T came %s: %s", *new(T), x.Exception.Class, x.Exception.Message)
		}
	}
}

// answer reads until the answer to a command comes, which must not be an exception.
func (k *raw) answer(id int32) {
	k.t.Helper()
	for {
		switch x := k.next().(type) {
		case nil:
			k.t.Fatalf("the connection ended before the answer to %d", id)
		case *openwire.ExceptionResponse:
			k.t.Fatalf("command %d: %s: %s", x.CorrelationID, x.Exception.Class, x.Exception.Message)
		case *openwire.Response:
			if x.CorrelationID == id {
				return
			}
		default:
			k.early = append(k.early, x)
		}
	}
}

// closes waits until the other side has closed, and tells how long that took.
func closes(t testing.TB, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection stays open")
	}
	return time.Since(began)
}
