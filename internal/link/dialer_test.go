package link

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
	"hopwire/openwire"
)

// rig is a dialer in a bubble of fake time, whose connections are pipes.
type rig struct {
	t      *testing.T
	loop   *loop.Loop
	dialer *Dialer
	far    net.Conn // the peer's end of the last connection
	tried  []string

	links []bridge.Link
	hello []bridge.Hello
	got   []message.Command
	down  []error
	over  chan struct{} // has one more whenever down does
}

// inBubble runs f with a dialer; connect, which may be nil, decides about each connection.
func inBubble(t *testing.T, connect func(ctx context.Context, uri string) error, f func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, loop: loop.New(), over: make(chan struct{}, 8)}
		group := rungroup.New(context.Background())
		r.dialer = NewDialer(Options{
			Hub: wire.NewHub(r.loop), Group: group,
			Connect: func(ctx context.Context, uri string) (*transport.Conn, error) {
				r.tried = append(r.tried, uri)
				if connect != nil {
					if err := connect(ctx, uri); err != nil {
						return nil, err
					}
				}
				near, far := net.Pipe()
				r.far = far
				u, err := transport.ParseURI(uri)
				if err != nil {
					return nil, err
				}
				o, err := transport.ParseOptions(u)
				return transport.Wrap(near, o), err
			},
		})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { r.loop.Run(ctx); close(ended) }()
		f(r)
		if r.far != nil {
			r.far.Close()
		}
		group.Stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		stop()
		<-ended
		if len(r.down) != 1 {
			t.Errorf("down was told %d times: %v", len(r.down), r.down)
		}
	})
}

func (r *rig) on(f func()) { r.loop.Call(context.Background(), f) }

func (r *rig) dial(uri string) (giveUp func()) {
	r.on(func() {
		giveUp = r.dialer.Dial(uri,
			func(l bridge.Link, h bridge.Hello) {
				r.links, r.hello = append(r.links, l), append(r.hello, h)
			},
			func(c message.Command) { r.got = append(r.got, c) },
			r.ends)
	})
	synctest.Wait()
	return giveUp
}

// ends is told of an end.
func (r *rig) ends(err error) {
	r.down = append(r.down, err)
	r.over <- struct{}{}
}

// endsWithin waits for the end of a link.
func (r *rig) endsWithin(most time.Duration) {
	r.t.Helper()
	begun := time.Now()
	<-r.over
	if took := time.Since(begun); took > most {
		r.t.Errorf("it took %v, want %v at most", took, most)
	}
}

// swallow reads whatever comes.
func (r *rig) swallow() {
	far := r.far
	go func() { _, _ = io.Copy(io.Discard, far) }()
}

// greet says the peer's hello and goes on reading.
func (r *rig) greet() {
	r.t.Helper()
	hello, err := openwire.NewHello(12, openwire.DefaultHelloOptions())
	if err != nil {
		r.t.Fatal(err)
	}
	frame, _ := hello.AppendFrame(nil)
	r.swallow()
	if _, err := r.far.Write(frame); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) ended(up int, want ...string) {
	r.t.Helper()
	synctest.Wait()
	if len(r.down) != 1 || len(r.links) != up {
		r.t.Fatalf("up %d times, down %v", len(r.links), r.down)
	}
	text := r.down[0].Error()
	for _, w := range want {
		if !strings.Contains(text, w) {
			r.t.Errorf("the end is %q, want %q in it", text, w)
		}
	}
	if strings.Contains(text, "\n") {
		r.t.Errorf("the end has more than one line: %q", text)
	}
}

func TestAPeerThatNeverSpeaksEndsInThePhaseHello(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.swallow()
		r.endsWithin(31 * time.Second)
		r.ended(0, "hello", "no hello within 30s")
	})
}

func TestAPeerThatClosesAfterItsHelloEndsTheLink(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.greet()
		if len(r.links) != 1 || r.hello[0].Version != 12 || r.hello[0].HopwireLevel != 0 {
			t.Fatalf("up: %+v", r.hello)
		}
		r.far.Close()
		r.ended(1, "connection", "the peer closed")
	})
}

func TestAPeerThatStallsInsideACommandEndsTheLink(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.greet()
		if _, err := r.far.Write([]byte{0, 0, 0, 90, openwire.TypeBrokerInfo, 0, 0}); err != nil {
			t.Fatal(err)
		}
		r.endsWithin(41 * time.Second)
		r.ended(1, "connection", "nothing was heard for 30s")
	})
}

func TestAPeerThatSpeaksNonsenseEndsTheLink(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.greet()
		if _, err := r.far.Write([]byte{0, 0, 0, 2, 99, 0}); err != nil {
			t.Fatal(err)
		}
		r.ended(1, "connection", "unknown type 99")
	})
}

func TestTheWebIsNoBroker(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.swallow()
		if _, err := r.far.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		r.ended(0, `hello: the peer answers with text ("HTTP/1.1 400 Bad Request"): no OpenWire port; `+
			"ActiveMQ's is usually 61616")
	})
}

func TestARefusedConnectionNamesTheAddress(t *testing.T) {
	refuse := func(context.Context, string) error { return errors.New("connection refused") }
	inBubble(t, refuse, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.ended(0, "tcp://peer:61616", "connecting", "connection refused")
	})
}

func TestARefusedConnectionIsOneShortLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	uri := "tcp://" + l.Addr().String()
	l.Close()
	_, err = transport.Dial(context.Background(), uri+"?wireFormat.version=9")
	want := uri + ": connecting: connection refused"
	if got := lineOf(uri, "connecting", err); got.Error() != want ||
		!errors.Is(got, syscall.ECONNREFUSED) {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

func TestGivingUpEndsAnAttemptInEveryPhase(t *testing.T) {
	forever := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	inBubble(t, forever, func(r *rig) {
		giveUp := r.dial("tcp://peer:61616")
		r.on(giveUp)
		r.ended(0, "given up")
	})
	inBubble(t, nil, func(r *rig) {
		giveUp := r.dial("tcp://peer:61616")
		r.on(giveUp)
		r.ended(0, "given up")
	})
}

func TestAConnectionMadeWhileItIsGivenUpIsClosed(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.on(func() {
			giveUp := r.dialer.Dial("tcp://peer:61616", nil, nil,
				r.ends)
			synctest.Wait() // it is made, and its turn comes after this one
			giveUp()
		})
		r.ended(0, "given up")
		if n, err := r.far.Read(make([]byte, 1)); err == nil {
			t.Errorf("the peer got %d bytes", n)
		}
	})
}

func TestAMessageAboveTheUrisLimitIsHandedOn(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616?wireFormat.maxFrameSize=1000")
		r.greet()
		m := &openwire.Message{Type: openwire.TypeBytesMessage, Content: make([]byte, 2000)}
		m.CommandID = 9
		frame, err := openwire.NewEncoder(openwire.Format{Version: 12}).Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.far.Write(frame); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(r.got) != 1 || r.got[0].(*message.Oversized).CommandID != 9 {
			t.Errorf("got %+v", r.got)
		}
		r.far.Close()
		r.ended(1)
	})
}

func TestManyFailedRoundsLeaveNothingBehind(t *testing.T) {
	// goleak looks at the end of all tests; the bubble would not end either.
	for range 100 {
		inBubble(t, nil, func(r *rig) {
			r.dial("tcp://peer:61616")
			r.greet()
			r.far.Close()
			r.ended(1)
		})
	}
}

func TestEncryptedUrisAreRefusedClearly(t *testing.T) {
	socket := func(ctx context.Context, uri string) error {
		_, err := transport.Dial(ctx, uri)
		return err
	}
	inBubble(t, socket, func(r *rig) {
		r.dial("ssl://peer:61617")
		r.ended(0, "ssl is not supported yet")
	})
}

func TestAClosedLinkSaysNothingMore(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.dial("tcp://peer:61616")
		r.greet()
		r.on(func() {
			r.links[0].Close("no longer wanted")
			r.links[0].Send(&message.KeepAliveInfo{})
		})
		r.ended(1, "no longer wanted")
	})
}
