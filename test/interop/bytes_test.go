package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/openwire"
	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// tap is a TCP relay that keeps what passes: up to the broker and down from it.
type tap struct {
	listen   net.Listener
	mu       sync.Mutex
	up, down bytes.Buffer
}

// plain are options with which every frame can be read by itself.
const plain = "?wireFormat.cacheEnabled=false&wireFormat.tightEncodingEnabled=false" +
	"&jms.watchTopicAdvisories=false"

// newTap relays one connection to a broker.
func newTap(t *testing.T, b *broker.Broker) (p *tap, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p = &tap{listen: l}
	var relays sync.WaitGroup
	relays.Go(func() {
		near, err := l.Accept()
		if err != nil {
			return // the test ended before it connected
		}
		defer near.Close()
		far, err := net.Dial("tcp", b.Addr())
		if err != nil {
			return // the client sees the end of its connection
		}
		defer far.Close()
		relays.Go(func() {
			_, _ = io.Copy(io.MultiWriter(near, p.keep(&p.down)), far) // ends with either side
			near.Close()
		})
		_, _ = io.Copy(io.MultiWriter(far, p.keep(&p.up)), near) // ends with either side
	})
	t.Cleanup(func() { l.Close(); relays.Wait() })
	return p, "tcp://" + l.Addr().String() + plain
}

// keeper writes to a buffer under the tap's lock.
type keeper struct {
	p    *tap
	into *bytes.Buffer
}

func (p *tap) keep(into *bytes.Buffer) io.Writer { return keeper{p, into} }

func (k keeper) Write(b []byte) (int, error) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	return k.into.Write(b)
}

// messages reads those for a destination out of one direction.
func (p *tap) messages(t *testing.T, from *bytes.Buffer, queue string) []*openwire.Message {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	in := openwire.NewFrameReader(bytes.NewReader(from.Bytes()))
	in.SetLimit(1 << 20)
	var d *openwire.Decoder
	var out []*openwire.Message
	for {
		batch, err := in.ReadBatch()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out
		}
		must(t, err)
		for _, frame := range batch {
			if d == nil { // the hello, whose version both sides use
				hello, err := openwire.DecodeHello(frame)
				must(t, err)
				d = openwire.NewDecoder(openwire.Format{Version: min(int(hello.Version),
					openwire.MaxVersion), StackTrace: true})
				continue
			}
			x, err := d.Decode(bytes.Clone(frame))
			must(t, err)
			if dispatch, ok := x.(*openwire.MessageDispatch); ok {
				x = dispatch.Message
			}
			if m, ok := x.(*openwire.Message); ok && m != nil && m.Destination.PhysicalName == queue {
				out = append(out, m)
			}
		}
	}
}

// sentPart is what a sender wrote: all that brokers have to leave as it is. The producer is the
// bridge's own; that of the sender is in the message's id.
func sentPart(m *openwire.Message) openwire.Message {
	id := *m.MessageID
	id.BrokerSequenceID = 0
	return openwire.Message{Type: m.Type, Destination: m.Destination,
		MessageID: &id, GroupID: m.GroupID, GroupSequence: m.GroupSequence,
		CorrelationID: m.CorrelationID, Persistent: m.Persistent, Expiration: m.Expiration,
		Priority: m.Priority, ReplyTo: m.ReplyTo, Timestamp: m.Timestamp, JMSType: m.JMSType,
		Content: m.Content, MarshalledProperties: m.MarshalledProperties,
		Compressed: m.Compressed, Droppable: m.Droppable, Empty: m.Empty &^
			openwire.EmptyMessageUserID}
}

// kinds are messages of every kind.
var kinds = []jms.SendOptions{
	{Body: "a text with ümlauts and 😀"},
	{Body: ""},
	{Body: strings.Repeat("long ", 20000)},
	{Kind: "bytes", Body: "bytes"},
	{Kind: "object", Body: "a string as an object"},
	{Kind: "none"},
	{Kind: "map", Map: map[string]string{"i": "int:5", "s": "string:x", "b": "bytes:AAEC",
		"d": "double:0.5", "c": "char:c", "l": "long:-1"}},
	{Kind: "stream", Stream: []string{"int:1", "string:two", "long:3", "bool:true", "float:0.5"}},
	{Body: "headers", NonPersistent: true, Priority: 7, TTL: time.Hour, CorrelationID: "c1",
		Type: "t1", ReplyTo: "topic://answers", Props: map[string]string{"bo": "bool:false",
			"by": "byte:1", "sh": "short:2", "in": "int:3", "lo": "long:4", "fl": "float:0.5",
			"do": "double:0.25", "st": "string:ß"}},
}

func TestMessagesCrossBridgesByteByByte(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		a, b := linked(t, p, oneWay, broker.Options{Persistent: true}, "")
		for _, v := range []jms.Version{jms.V5, jms.V6} {
			t.Run(v.String(), func(t *testing.T) { crossAll(t, a, b, v) })
		}
	})
}

func crossAll(t *testing.T, a, b *broker.Broker, v jms.Version) {
	queue := "Q.BYTES." + v.String()
	d := jms.Start(t, v)
	in, inURL := newTap(t, b)
	c := d.Connect(inURL).Consumer("queue://" + queue)
	a.WaitConsumers(queue, 1, patience)
	n := 0
	var sent []*openwire.Message
	for _, compress := range []string{"", "&jms.useCompression=true"} {
		out, outURL := newTap(t, a)
		s := d.Connect(outURL + compress).Session(jms.Auto)
		for _, o := range kinds {
			o.Dest = "queue://" + queue
			s.Send(o)
			n++
			c.Wait(n, patience)
		}
		sent = append(sent, out.messages(t, &out.up, queue)...)
	}
	got := in.messages(t, &in.down, queue)
	if len(sent) != n || len(got) != n {
		t.Fatalf("%d sent and %d received, want %d", len(sent), len(got), n)
	}
	for i := range sent {
		want, have := reflect.ValueOf(sentPart(sent[i])), reflect.ValueOf(sentPart(got[i]))
		for f := range want.NumField() {
			was, is := want.Field(f).Interface(), have.Field(f).Interface()
			if !reflect.DeepEqual(was, is) {
				t.Errorf("message %d, %s: sent %.300s, got %.300s", i, want.Type().Field(f).Name,
					fmt.Sprintf("%#v", was), fmt.Sprintf("%#v", is))
			}
		}
	}
}
