package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a session in a bubble of fake time, with the other end of its pipe.
type bench struct {
	t     *testing.T
	loop  *loop.Loop
	group *rungroup.Group
	s     *Session
	far   net.Conn
	stop  func()
	half  *atomic.Bool // the peer could read the end; nil where that cannot be said

	up   int
	got  []message.Command
	down []error
}

// halfOpen is an end of a pipe that can say that nothing more comes.
type halfOpen struct {
	net.Conn
	ended *atomic.Bool
}

func (h halfOpen) CloseWrite() error {
	h.ended.Store(true)
	return nil
}

type setting func(*Config, *transport.Options)

// inBubble runs f with a session that has started; f speaks for the peer. The loop runs unless
// stalled.
func inBubble(t *testing.T, stalled bool, set setting, f func(b *bench)) {
	t.Helper()
	inBubbleOver(t, nil, stalled, set, f)
}

// inBubbleOver is inBubble over a connection that notes in half, if there is one, that this side
// has ended.
func inBubbleOver(t *testing.T, half *atomic.Bool, stalled bool, set setting, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		b := &bench{t: t, loop: loop.New(), group: rungroup.New(context.Background()),
			far: far, half: half}
		if half != nil {
			near = halfOpen{near, half}
		}
		o := transport.DefaultOptions()
		cfg := Config{
			Hub: NewHub(b.loop), Group: b.group, Offer: DefaultOffer(), Name: "test",
			Up:      func(Peer) { b.up++ },
			Receive: func(c message.Command) { b.got = append(b.got, c) },
			Unsent:  func(c message.Command, err error) { t.Errorf("%T unsent: %v", c, err) },
			Down:    func(err error) { b.down = append(b.down, err) },
		}
		if set != nil {
			set(&cfg, &o)
		}
		cfg.Conn = transport.Wrap(near, o)
		b.s = New(cfg)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		run := func() { b.loop.Run(ctx); close(ended) }
		b.stop = func() { stop(); <-ended }
		if !stalled {
			go run()
		}
		b.s.Start()
		f(b)
		if stalled {
			go run()
		}
		far.Close()
		b.group.Stop()
		if err := b.group.Wait(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		b.stop()
		if len(b.down) != 1 {
			t.Errorf("Down was told %d times: %v", len(b.down), b.down)
		}
	})
}

// on runs f on the loop.
func (b *bench) on(f func()) { b.loop.Call(context.Background(), f) }

// hello answers the hello and gives the peer's codec; everything it sends is read from then on.
func (b *bench) hello(change func(*openwire.HelloOptions)) *far {
	b.t.Helper()
	o := openwire.DefaultHelloOptions()
	if change != nil {
		change(&o)
	}
	ours, err := openwire.NewHello(openwire.MaxVersion, o)
	if err != nil {
		b.t.Fatal(err)
	}
	frame, _ := ours.AppendFrame(nil)
	r := openwire.NewFrameReader(b.far)
	first, err := r.ReadBatch()
	if err != nil {
		b.t.Fatal(err)
	}
	theirs, err := openwire.DecodeHello(first[0])
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := openwire.Negotiate(ours, theirs)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.far.Write(frame); err != nil {
		b.t.Fatal(err)
	}
	r.SetLimit(0)
	synctest.Wait()
	return &far{b: b, r: r, e: openwire.NewEncoder(f), d: openwire.NewDecoder(f)}
}

// far is the peer after its hello.
type far struct {
	b     *bench
	r     *openwire.FrameReader
	e     *openwire.Encoder
	d     *openwire.Decoder
	heard []openwire.DataStructure
	reads int
	err   error
}

// listen reads for as long as the connection lives.
func (f *far) listen() {
	go func() {
		for {
			frames, err := f.r.ReadBatch()
			if err != nil {
				f.err = err
				return
			}
			f.reads++
			for _, x := range frames {
				c, err := f.d.Decode(x)
				if err != nil {
					f.err = err
					return
				}
				f.heard = append(f.heard, c)
			}
		}
	}()
}

func (f *far) frame(x openwire.DataStructure) []byte {
	b, err := f.e.Append(nil, x)
	if err != nil {
		f.b.t.Fatal(err)
	}
	return b
}

func (f *far) send(x openwire.DataStructure) {
	if _, err := f.b.far.Write(f.frame(x)); err != nil {
		f.b.t.Errorf("the peer could not send: %v", err)
	}
}

func (f *far) kinds() string {
	var s []string
	for _, x := range f.heard {
		s = append(s, openwire.TypeName(x.TypeID()))
	}
	return strings.Join(s, " ")
}

// swallow reads whatever comes.
func (b *bench) swallow() { go func() { _, _ = io.Copy(io.Discard, b.far) }() }

// ended holds the end to a text.
func (b *bench) ended(want string) {
	b.t.Helper()
	synctest.Wait()
	if len(b.down) != 1 || !strings.Contains(b.down[0].Error(), want) {
		b.t.Errorf("the end is %v, want one with %q", b.down, want)
	}
}

func TestAPeerWithoutHelloIsGivenUpAfterThirtySeconds(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		b.swallow()
		time.Sleep(29 * time.Second)
		b.on(func() {
			if len(b.down) != 0 {
				t.Error("given up too early")
			}
		})
		time.Sleep(2 * time.Second)
		b.ended("no hello within 30s")
		if b.up != 0 {
			t.Error("Up was told")
		}
	})
}

func TestAPeerThatDripsItsHelloIsGivenUpToo(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		b.swallow()
		for _, x := range []byte{0, 0, 1, 0, 1, 'A', 'c', 't'} {
			if _, err := b.far.Write([]byte{x}); err != nil {
				break
			}
			time.Sleep(5 * time.Second)
		}
		b.ended("no hello within 30s")
	})
}

func TestKeepAlivesGoOutOnlyWhileNothingElseDoes(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		go func() { // the peer lives
			for range 11 {
				time.Sleep(9 * time.Second)
				f.send(&openwire.KeepAliveInfo{})
			}
		}()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if n := len(f.heard); n < 5 || n > 7 || strings.Count(f.kinds(), "KeepAliveInfo") != n {
			t.Errorf("in a minute without traffic came: %s", f.kinds())
		}
		f.heard = nil
		for range 40 {
			b.on(func() { b.s.Respond(1) })
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if got := f.kinds(); strings.Contains(got, "KeepAlive") {
			t.Errorf("beside traffic came: %s", got)
		}
		if len(b.got) != 0 {
			t.Errorf("signs of life reached the loop: %v", b.got)
		}
	})
}

func TestASilentPeerIsGivenUpBetweenOneAndOneAndAThirdSilences(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		time.Sleep(29 * time.Second)
		b.on(func() {
			if len(b.down) != 0 {
				t.Error("given up too early")
			}
		})
		time.Sleep(11*time.Second + time.Millisecond)
		b.ended("nothing was heard for 30s")
	})
}

func TestASilenceOfZeroWatchesNothing(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		f.listen()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(b.down) != 0 || len(f.heard) != 0 {
			t.Errorf("after a day: %v, heard %s", b.down, f.kinds())
		}
	})
}

func TestAPingIsAnsweredWithItsNumberAndAnAnswerIsPassedOn(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		f.send(&openwire.KeepAliveInfo{
			BaseCommand: openwire.BaseCommand{CommandID: 7, ResponseRequired: true},
		})
		synctest.Wait()
		ping := &message.KeepAliveInfo{}
		ping.ResponseRequired = true
		b.on(func() { b.s.Send(ping) })
		synctest.Wait()
		if len(f.heard) != 2 {
			t.Fatalf("the peer heard %s", f.kinds())
		}
		answer, asked := f.heard[0].(*openwire.KeepAliveInfo), f.heard[1].(*openwire.KeepAliveInfo)
		if answer.CommandID != 7 || answer.ResponseRequired || !asked.ResponseRequired {
			t.Errorf("heard %+v and %+v", answer, asked)
		}
		f.send(&openwire.KeepAliveInfo{
			BaseCommand: openwire.BaseCommand{CommandID: asked.CommandID},
		})
		synctest.Wait()
		if len(b.got) != 1 {
			t.Errorf("the loop got %v", b.got)
		}
	})
}

func TestAPeerThatVanishesInsideACommandIsToldSo(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		whole := f.frame(&openwire.ControlCommand{Command: "a text of some length"})
		if _, err := b.far.Write(whole[:len(whole)-3]); err != nil {
			t.Fatal(err)
		}
		b.far.Close()
		synctest.Wait()
		if len(b.down) != 1 || !errors.Is(b.down[0], io.ErrUnexpectedEOF) || len(b.got) != 0 {
			t.Errorf("the end is %v, got %v", b.down, b.got)
		}
	})
}

func TestAFrameInPiecesIsOneCommand(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		for _, x := range f.frame(&openwire.ControlCommand{Command: "slow"}) {
			if _, err := b.far.Write([]byte{x}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if len(b.got) != 1 || b.got[0].(*message.ControlCommand).Command != "slow" {
			t.Errorf("got %v", b.got)
		}
	})
}

func TestWhatOneTurnSendsIsOneWrite(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		b.on(func() {
			for i := range 100 {
				b.s.Respond(int32(i))
			}
		})
		synctest.Wait()
		if len(f.heard) != 100 || f.reads != 1 {
			t.Errorf("%d answers in %d writes", len(f.heard), f.reads)
		}
	})
}

func TestAPeerThatTakesNothingIsGivenUp(t *testing.T) {
	set := func(_ *Config, o *transport.Options) { o.StallTimeout = time.Minute }
	inBubble(t, false, set, func(b *bench) {
		b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		b.on(func() { b.s.Respond(1) }) // never read
		time.Sleep(2 * time.Minute)
		b.ended("took nothing for 1m0s")
	})
}

func TestAPeerThatTakesALittleIsNotGivenUp(t *testing.T) {
	set := func(_ *Config, o *transport.Options) { o.StallTimeout = time.Minute }
	inBubble(t, false, set, func(b *bench) {
		b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		b.on(func() {
			for range 20 {
				b.s.Respond(1)
			}
		})
		one := make([]byte, 1)
		for range 20 {
			time.Sleep(50 * time.Second)
			if _, err := b.far.Read(one); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.down) != 0 {
			t.Errorf("given up: %v", b.down)
		}
	})
}

func TestTheReaderIsAheadOfTheLoopByItsCreditOnly(t *testing.T) {
	inBubble(t, true, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		sent := 0
		go func() {
			for {
				if _, err := b.far.Write(f.frame(&openwire.ControlCommand{Command: "x"})); err != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent != postingCredit {
			t.Errorf("%d batches were read while the loop looked at none", sent)
		}
	})
}

func TestCloseSendsWhatWaitsAndTellsAtOnce(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		b.on(func() {
			b.s.Respond(1)
			b.s.Send(&message.ConnectionError{Exception: &message.Throwable{Class: "x"}})
			b.s.Close("enough")
			b.s.Respond(2)
		})
		b.ended("enough") // although the peer has not read yet
		f.listen()
		synctest.Wait()
		if got := f.kinds(); got != "Response ConnectionError" || !errors.Is(f.err, io.EOF) {
			t.Errorf("the peer heard %q, then %v", got, f.err)
		}
	})
}

func TestACloseThatNobodyReadsEndsAfterFiveSeconds(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		b.hello(nil)
		b.on(func() { b.s.Respond(1); b.s.Close("enough") })
		time.Sleep(closeTimeout + time.Second)
		synctest.Wait()
		if _, err := b.far.Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the socket is still open: %v", err)
		}
	})
}

func TestAStrangerToTheLoginMaySendSmallFramesOnly(t *testing.T) {
	guard := func(c *Config, _ *transport.Options) { c.Guarded = true }
	big := &openwire.Message{Type: openwire.TypeBytesMessage, Content: make([]byte, 100<<10)}
	inBubble(t, false, guard, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		_, _ = b.far.Write(f.frame(big)) // it fails when the session ends
		b.ended("the limit is 65536")
	})
	inBubble(t, false, guard, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		b.on(func() { b.s.Trust() })
		f.send(&openwire.FlushCommand{})
		f.send(big)
		synctest.Wait()
		if len(b.got) != 2 || len(b.down) != 0 {
			t.Errorf("after the login: got %d, %v", len(b.got), b.down)
		}
	})
}

func TestAMessageAboveTheLimitIsToldAndTheSessionGoesOn(t *testing.T) {
	small := func(c *Config, _ *transport.Options) { c.Offer.FrameLimit = 1000 }
	inBubble(t, false, small, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		m := &openwire.Message{Type: openwire.TypeBytesMessage, Content: make([]byte, 50<<10)}
		m.CommandID, m.ResponseRequired = 9, true
		f.send(m)
		f.send(&openwire.FlushCommand{})
		synctest.Wait()
		if len(b.got) != 2 || len(b.down) != 0 {
			t.Fatalf("got %v, end %v", b.got, b.down)
		}
		o, ok := b.got[0].(*message.Oversized)
		if !ok || o.CommandID != 9 || !strings.Contains(o.Err().Error(), "the limit is 1000") {
			t.Errorf("got %+v", b.got[0])
		}
	})
}
