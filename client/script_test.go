package client

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"hopwire/openwire"
)

// script is a broker that does what a test says, one connection after another.
type script struct {
	t testing.TB
	l net.Listener
}

func newScript(t testing.TB) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { l.Close() })
	return &script{t, l}
}

func (s *script) uri() string { return "tcp://" + s.l.Addr().String() }

func (s *script) failover(options string) string {
	return "failover:(" + s.uri() + ")?initialReconnectDelay=1&maxReconnectDelay=5" + options
}

// peer is the broker's end of a connection.
type peer struct {
	t testing.TB
	*link
}

// accept takes the next connection and exchanges hellos.
func (s *script) accept(change ...func(*openwire.HelloOptions)) *peer {
	s.t.Helper()
	ok(s.t, s.l.(*net.TCPListener).SetDeadline(time.Now().Add(within)))
	conn, err := s.l.Accept()
	ok(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	ok(s.t, conn.SetDeadline(time.Now().Add(within)))
	options := openwire.DefaultHelloOptions()
	for _, f := range change {
		f(&options)
	}
	hello, err := openwire.NewHello(openwire.MaxVersion, options)
	ok(s.t, err)
	out, err := hello.AppendFrame(nil)
	ok(s.t, err)
	_, err = conn.Write(out)
	ok(s.t, err)
	p := &peer{s.t, &link{conn: conn}}
	p.frames = openwire.NewFrameReader(conn)
	batch, err := p.frames.ReadBatch()
	ok(s.t, err)
	theirs, err := openwire.DecodeHello(batch[0])
	ok(s.t, err)
	p.batch = batch[1:]
	format, err := openwire.Negotiate(hello, theirs)
	ok(s.t, err)
	p.frames.SetLimit(0)
	p.enc, p.dec = openwire.NewEncoder(format), openwire.NewDecoder(format)
	return p
}

// read is the next command that is not a KeepAliveInfo.
func (p *peer) read() openwire.Command {
	p.t.Helper()
	for {
		x, err := p.next()
		ok(p.t, err)
		if _, alive := x.(*openwire.KeepAliveInfo); !alive {
			return x.(openwire.Command)
		}
	}
}

// expect reads a command that must be of a type.
func expect[T openwire.Command](p *peer) T {
	p.t.Helper()
	cmd := p.read()
	x, is := cmd.(T)
	if !is {
		p.t.Fatalf("the client sent %s %+v, want %T", openwire.TypeName(cmd.TypeID()), cmd, x)
	}
	return x
}

// frame encodes a command.
func (p *peer) frame(cmd openwire.Command) []byte {
	p.t.Helper()
	out, err := p.enc.Append(nil, cmd)
	ok(p.t, err)
	return out
}

func (p *peer) write(cmds ...openwire.Command) {
	p.t.Helper()
	for _, cmd := range cmds {
		_, err := p.conn.Write(p.frame(cmd))
		ok(p.t, err)
	}
}

// answer confirms a command.
func (p *peer) answer(cmd openwire.Command) {
	p.t.Helper()
	p.write(&openwire.Response{CorrelationID: cmd.Base().CommandID})
}

// welcome takes a connection up to its confirmed ConnectionInfo; after a failover it begins with a
// ConnectionControl.
func (p *peer) welcome(again bool) *openwire.ConnectionInfo {
	p.t.Helper()
	if again {
		if x := expect[*openwire.ConnectionControl](p); !x.FaultTolerant {
			p.t.Errorf("the first command is %+v", x)
		}
	}
	info := expect[*openwire.ConnectionInfo](p)
	if info.FailoverReconnect != again {
		p.t.Errorf("failoverReconnect is %t, want %t", info.FailoverReconnect, again)
	}
	p.write(&openwire.BrokerInfo{BrokerID: &openwire.BrokerId{Value: "b"}, BrokerName: "script"})
	p.answer(info)
	return info
}

// goodbye plays the broker at the end of a connection, whatever is removed before.
func (p *peer) goodbye() (removed []openwire.DataStructure) {
	p.t.Helper()
	for {
		switch x := p.read().(type) {
		case *openwire.RemoveInfo:
			removed = append(removed, x.ObjectID)
			if x.ResponseRequired {
				p.answer(x)
			}
		case *openwire.ShutdownInfo:
			p.conn.Close()
			return removed
		case *openwire.MessageAck:
		default:
			p.t.Fatalf("while closing came %T", x)
		}
	}
}

// deliver dispatches text messages with these sequence numbers.
func (p *peer) deliver(to *openwire.ConsumerInfo, sequences ...int64) {
	p.t.Helper()
	for _, n := range sequences {
		m := &openwire.Message{
			ProducerID: &openwire.ProducerId{ConnectionID: "elsewhere", SessionID: 1, Value: 1},
			Persistent: true, Destination: to.Destination,
		}
		m.SetText(fmt.Sprint(n))
		m.MessageID = &openwire.MessageId{
			ProducerID: m.ProducerID, ProducerSequenceID: n, BrokerSequenceID: n,
		}
		p.write(&openwire.MessageDispatch{
			ConsumerID: to.ConsumerID, Destination: to.Destination, Message: m,
		})
	}
}

// ack reads an acknowledgement and writes it down: type, first-last, count.
func (p *peer) ack() string {
	p.t.Helper()
	a := expect[*openwire.MessageAck](p)
	first := int64(0)
	if a.FirstMessageID != nil {
		first = a.FirstMessageID.ProducerSequenceID
	}
	text := fmt.Sprintf("%d %d-%d %d", a.AckType, first, a.LastMessageID.ProducerSequenceID,
		a.MessageCount)
	if a.TransactionID != nil {
		text += " tx"
	}
	return text
}

// dialed opens a connection to a script whose broker's end is played by the test meanwhile.
func (s *script) dialed(uri string, opts ...Option) (*Conn, *peer) {
	s.t.Helper()
	type result struct {
		conn *Conn
		err  error
	}
	results := make(chan result, 1)
	ctx := bound(s.t)
	go func() {
		conn, err := Dial(ctx, uri, opts...)
		results <- result{conn, err}
	}()
	p := s.accept()
	info := p.welcome(false)
	r := <-results
	if over := strings.HasPrefix(uri, "failover:"); info.FaultTolerant != over {
		s.t.Errorf("faultTolerant is %t, over failover is %t", info.FaultTolerant, over)
	}
	ok(s.t, r.err)
	s.t.Cleanup(func() { cut(r.conn) })
	return r.conn, p
}

// cut ends a connection without the broker's help.
func cut(c *Conn) {
	c.mu.Lock()
	c.failLocked(ErrClosed)
	c.mu.Unlock()
	_ = c.tasks.Wait()
}

// during runs what blocks until the broker's end did its part, and returns its error.
func during(t testing.TB, blocks func() error, broker func()) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- blocks() }()
	broker()
	select {
	case err := <-done:
		return err
	case <-bound(t).Done():
		t.Fatal("the call did not return")
		return nil
	}
}

// produce makes a session with a producer.
func (p *peer) produce(c *Conn, mode AckMode) (*Session, *Producer) {
	p.t.Helper()
	s := session(p.t, c, mode)
	expect[*openwire.SessionInfo](p)
	var made *Producer
	ok(p.t, during(p.t, func() (err error) {
		made, err = s.Producer(bound(p.t), Queue("Q"))
		return err
	}, func() { p.answer(expect[*openwire.ProducerInfo](p)) }))
	return s, made
}

// consume makes a consumer.
func (p *peer) consume(s *Session, opts ...ConsumerOption) (*Consumer, *openwire.ConsumerInfo) {
	p.t.Helper()
	return p.making(func() (*Consumer, error) { return s.Consumer(bound(p.t), Queue("Q"), opts...) })
}

// busy makes a consumer whose handler is at its first message until goOn is closed.
func (p *peer) busy(s *Session) (k *Consumer, info *openwire.ConsumerInfo, goOn chan struct{}) {
	p.t.Helper()
	began, goOn := make(chan struct{}), make(chan struct{})
	k, info = p.making(func() (*Consumer, error) {
		return s.Consume(bound(p.t), Queue("Q"), func(context.Context, *Message) error {
			close(began)
			<-goOn
			return nil
		})
	})
	p.deliver(info, 1)
	<-began
	return k, info, goOn
}

// making has a consumer be made.
func (p *peer) making(f func() (*Consumer, error)) (made *Consumer, info *openwire.ConsumerInfo) {
	p.t.Helper()
	ok(p.t, during(p.t, func() (err error) {
		made, err = f()
		return err
	}, func() {
		info = expect[*openwire.ConsumerInfo](p)
		p.answer(info)
	}))
	return made, info
}
