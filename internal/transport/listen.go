package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"hopwire/internal/message"
)

// Waits after a failed accept, and how often it is reported.
const (
	acceptPauseFirst = 50 * time.Millisecond
	acceptPauseMost  = time.Second
	reportEvery      = time.Minute
)

// Listener accepts connections for one transport connector.
type Listener struct {
	uri  URI
	opt  Options
	l    net.Listener
	log  *slog.Logger
	open atomic.Int64

	files          func() uint64 // the limit of open files; 0 is none
	refused        atomic.Int64
	reported, full time.Time
}

// Listen opens the port of a connector's URI; port 0 takes any free one. log may be nil.
func Listen(text string, log *slog.Logger) (*Listener, error) {
	u, err := ParseURI(text)
	if err != nil {
		return nil, err
	}
	o, err := ParseOptions(u)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", u.Address())
	if err != nil {
		return nil, &message.Error{Kind: message.Unavailable, Cause: err,
			Text: u.String() + ": " + reason(err, 0) + refused(u, err)}
	}
	return NewListener(l, u, o, log), nil
}

// NewListener makes a Listener of any that net knows.
func NewListener(l net.Listener, u URI, o Options, log *slog.Logger) *Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Listener{uri: u, opt: o, l: l, log: log, files: OpenFileLimit}
}

// Addr is the address that is listened at.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }

// Options are those of the URI.
func (l *Listener) Options() Options { return l.opt }

// Open is the number of connections now.
func (l *Listener) Open() int { return int(l.open.Load()) }

// Refused is how many connections were refused, as there were too many.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Close ends Serve. Connections stay.
func (l *Listener) Close() error { return l.l.Close() }

// Serve accepts until ctx ends or Close is called and hands each connection to handle, which must
// not block and from then on has to close it. Running out of open files is waited out.
func (l *Listener) Serve(ctx context.Context, handle func(*Conn)) error {
	defer context.AfterFunc(ctx, func() { l.l.Close() })()
	pause := time.Duration(0)
	for {
		c, err := l.l.Accept()
		if err == nil {
			pause = 0
			l.admit(c, handle)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if errors.Is(err, syscall.ECONNABORTED) {
			continue
		}
		pause = min(max(2*pause, acceptPauseFirst), acceptPauseMost)
		l.report(err, pause)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
	}
}

func (l *Listener) report(err error, pause time.Duration) {
	if time.Since(l.reported) < reportEvery {
		return
	}
	l.reported = time.Now()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		l.log.Error("no more files can be opened: new connections wait; raise the limit of open "+
			"files (ulimit -n, LimitNOFILE) or set maximumConnections",
			slog.String("connector", l.uri.String()), slog.Int("open", l.Open()),
			slog.Uint64("limit", OpenFileLimit()), slog.Duration("retry", pause))
		return
	}
	l.log.Error("a connection could not be accepted; it is tried again",
		slog.String("connector", l.uri.String()), slog.String("error", err.Error()),
		slog.Duration("retry", pause))
}

func (l *Listener) admit(c net.Conn, handle func(*Conn)) {
	n, limit := l.open.Add(1), l.files()
	switch most := l.opt.MaximumConnections; {
	case most > 0 && n > int64(most):
		l.refuse(c, "connections are refused: maximumConnections is reached; raise it in the uri",
			slog.Int("maximumConnections", most))
		return
	case leavesTooFew(c, limit):
		l.refuse(c, "connections are refused: the rest of the open files is kept for the store and"+
			" bridges; raise their limit (ulimit -n, LimitNOFILE)", slog.Uint64("limit", limit),
			slog.Uint64("kept", ReservedFiles(limit)))
		return
	}
	conn := Wrap(c, l.opt)
	conn.release = func() { l.open.Add(-1) }
	handle(conn)
}

// refuse ends a connection that is one too many.
func (l *Listener) refuse(c net.Conn, why string, limits ...any) {
	l.open.Add(-1)
	l.refused.Add(1)
	if time.Since(l.full) >= reportEvery {
		l.full = time.Now()
		l.log.Warn(why, append(limits, slog.String("connector", l.uri.String()),
			slog.String("remote", c.RemoteAddr().String()))...)
	}
	c.Close()
}

// Dial connects to a broker's URI. It is bounded by connectionTimeout and ctx. The error of a
// connection that cannot be made is the reason alone; the caller knows the address.
func Dial(ctx context.Context, text string) (*Conn, error) {
	u, err := ParseURI(text)
	if err != nil {
		return nil, err
	}
	o, err := ParseOptions(u)
	if err != nil {
		return nil, err
	}
	if len(o.Ignored) > 0 {
		return nil, message.Errorf(message.Protocol, "uri %q: option %s is not known", u,
			o.Ignored[0])
	}
	d := net.Dialer{Timeout: o.ConnectionTimeout}
	c, err := d.DialContext(ctx, "tcp", u.Address())
	if err != nil {
		return nil, InWords(err, o.ConnectionTimeout)
	}
	return Wrap(c, o), nil
}

// InWords is an error of package net without the address and the steps that it repeats. timeout is
// the time that a connection had to be made.
func InWords(err error, timeout time.Duration) error {
	if err == nil {
		return nil
	}
	return &message.Error{Kind: message.Unavailable, Text: reason(err, timeout), Cause: err}
}

func reason(err error, timeout time.Duration) string {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err.Error()
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name.Name + ": " + name.Err
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return "no answer within " + timeout.String() + " (connectionTimeout)"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the peer closed the connection"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}
