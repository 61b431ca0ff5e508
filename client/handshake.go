package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

// connect opens a link to one broker: TCP, hellos, and the connection's ConnectionInfo, whose
// answer it awaits. A *BrokerError means that the broker refused the connection; the end of the
// context is its own error and tells nothing of the broker.
func (c *Conn) connect(ctx context.Context, e endpoint, again bool) (*link, error) {
	asked := ctx
	if e.connectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.connectTimeout)
		defer cancel()
	}
	conn, err := c.dial(ctx, e)
	if end := ended(asked); err != nil && end != nil {
		return nil, fmt.Errorf("%s: %w", e.addr, end)
	}
	if err != nil {
		return nil, unavailable(e.addr, transport.InWords(err, e.connectTimeout))
	}
	// Whatever blocks below ends when the context does.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	l, err := c.greet(conn, e)
	if err == nil {
		l.start(e.monitor)
		err = c.introduce(l, again)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return l, nil
	}
	conn.Close()
	if l != nil {
		err = l.why(err)
		l.end(err)
	}
	if end := ended(asked); end != nil {
		return nil, fmt.Errorf("%s: %w", e.addr, end)
	}
	if ctx.Err() != nil {
		err = transport.InWords(ctx.Err(), e.connectTimeout)
		if l == nil || l.enc == nil { // a broker says hello as soon as it is dialled
			err = fmt.Errorf("%w; is that an OpenWire port? ActiveMQ's is usually 61616", err)
		}
	}
	if _, refused := errors.AsType[*BrokerError](err); refused {
		return nil, fmt.Errorf("%s: %w", e.addr, err)
	}
	return nil, unavailable(e.addr, err)
}

// ended is why a context ended. A dialer that has its deadline may fail by it a moment before it
// does.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func (c *Conn) dial(ctx context.Context, e endpoint) (net.Conn, error) {
	if c.settings.dial != nil {
		return c.settings.dial(ctx, e.addr)
	}
	dialer := net.Dialer{KeepAlive: -1}
	if e.keepAlive {
		dialer.KeepAlive = 0
	}
	return dialer.DialContext(ctx, "tcp", e.addr)
}

// greet exchanges the hellos.
func (c *Conn) greet(conn net.Conn, e endpoint) (*link, error) {
	hello, err := openwire.NewHello(e.version, e.hello)
	if err != nil {
		return nil, err
	}
	out, err := hello.AppendFrame(nil)
	if err != nil {
		return nil, err
	}
	l := &link{
		addr: e.addr, conn: conn, kick: make(chan struct{}, 1), closed: make(chan struct{}),
		tasks: rungroup.New(context.Background()),
	}
	l.frames = openwire.NewFrameReader(l)
	// Both sides send at once: on a pipe without a buffer our write needs the peer to read.
	written := make(chan error, 1)
	l.tasks.Go("greet", func(context.Context) error {
		_, err := conn.Write(out)
		written <- err
		return nil
	})
	batch, err := l.frames.ReadBatch()
	if len(batch) == 0 {
		return l, err
	}
	peer, err := openwire.DecodeHello(batch[0])
	if err != nil {
		return l, err
	}
	l.batch = batch[1:]
	if err = <-written; err != nil {
		return l, err
	}
	if l.format, err = openwire.Negotiate(hello, peer); err != nil {
		return l, err
	}
	if theirs, err := peer.Options(); err == nil {
		l.own = theirs.ProviderName == e.hello.ProviderName
	}
	limit := int64(0)
	if e.hello.MaxFrameSizeEnabled {
		limit = e.hello.MaxFrameSize
	}
	l.frames.SetLimit(limit)
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err = tcp.SetNoDelay(l.format.TCPNoDelay); err != nil {
			return l, err
		}
	}
	l.heard.Store(time.Now().UnixNano())
	l.enc, l.dec = openwire.NewEncoder(l.format), openwire.NewDecoder(l.format)
	return l, nil
}

// introduce sends the ConnectionInfo and handles what comes until its answer.
func (c *Conn) introduce(l *link, again bool) error {
	info := *c.info
	if again {
		info.FailoverReconnect = true
		control := &openwire.ConnectionControl{FaultTolerant: true}
		if err := l.add(control); err != nil {
			return err
		}
	}
	if err := l.add(&info); err != nil {
		return err
	}
	for {
		cmd, err := l.next()
		if err != nil {
			return err
		}
		switch x := cmd.(type) {
		case *openwire.Response:
			if x.CorrelationID == info.CommandID {
				return nil
			}
		case *openwire.ExceptionResponse:
			if x.CorrelationID == info.CommandID {
				return brokerError(x.Exception)
			}
		case *openwire.ConnectionError:
			return brokerError(x.Exception)
		case *openwire.KeepAliveInfo, *openwire.WireFormatInfo:
		case *openwire.BrokerInfo:
			c.mu.Lock()
			c.broker = x
			c.mu.Unlock()
		}
	}
}
