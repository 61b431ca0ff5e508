package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// Inside is a listener without a port: its connections begin in the same process, as those of
// ActiveMQ's vm:// do.
type Inside struct {
	name   string
	dialed atomic.Uint64
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewInside makes a listener; name is its host in addresses.
func NewInside(name string) *Inside {
	return &Inside{name: name, accept: make(chan net.Conn), closed: make(chan struct{})}
}

// insideAddr is an address of ActiveMQ's form: vm://name#3 is the third that dialled.
type insideAddr string

func (insideAddr) Network() string  { return "vm" }
func (a insideAddr) String() string { return string(a) }

// insideConn is the listener's end of a connection, with an address that tells it from others.
type insideConn struct {
	net.Conn
	remote insideAddr
}

func (c insideConn) RemoteAddr() net.Addr { return c.remote }

// CloseWrite is that of the connection, if it has one.
func (c insideConn) CloseWrite() error {
	w, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return w.CloseWrite()
}

// Addr implements net.Listener.
func (i *Inside) Addr() net.Addr { return insideAddr(i.name) }

// Accept implements net.Listener.
func (i *Inside) Accept() (net.Conn, error) {
	select {
	case c := <-i.accept:
		return c, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections stay.
func (i *Inside) Close() error {
	i.once.Do(func() { close(i.closed) })
	return nil
}

// Dial gives the other end of a new connection, when that was accepted. After Close the error is
// net.ErrClosed.
func (i *Inside) Dial(ctx context.Context) (net.Conn, error) {
	theirs, ours, err := socketPair()
	if err != nil {
		return nil, InWords(err, 0)
	}
	n := strconv.FormatUint(i.dialed.Add(1), 10)
	accepted := insideConn{ours, insideAddr(i.name + "#" + n)}
	select {
	case <-i.closed: // both may be ready
		err = net.ErrClosed
	default:
		select {
		case i.accept <- accepted:
			return theirs, nil
		case <-i.closed:
			err = net.ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	theirs.Close()
	ours.Close()
	return nil, err
}

// ListenInside makes a Listener of one without a port, with the default options. log may be nil.
func ListenInside(i *Inside, log *slog.Logger) *Listener {
	u := URI{Scheme: insideAddr("").Network(), Host: i.name, text: "vm://" + i.name}
	return NewListener(i, u, DefaultOptions(), log)
}

var (
	_ net.Listener = (*Inside)(nil)
	_ net.Addr     = insideAddr("")
)
