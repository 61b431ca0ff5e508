package wire

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

// newBorrower makes a reader of large frames; gone is its end, and failed why it was ended.
func newBorrower(r *frameRoom) (b *borrower, gone chan struct{}, failed *error) {
	near, _ := net.Pipe()
	gone, failed = make(chan struct{}), new(error)
	return &borrower{room: r, conn: transport.Wrap(near, transport.DefaultOptions()), gone: gone,
		fail: func(err error) { *failed = err; close(gone) }}, gone, failed
}

const mib = 1 << 20

func TestManyLargeFramesAtOnceTakeTheLimitAndOneFrameAndAllArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, frame, crowd = 100 * mib, 64 * mib, 50
		r := &frameRoom{limit: limit}
		var most int64
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				b, _, _ := newBorrower(r)
				for _, step := range []int{mib, 3 * mib, 12 * mib, 48 * mib} {
					if err := b.Take(step, frame); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second) // the others come as far
					b.Came(step)
					r.mu.Lock()
					most = max(most, r.used)
					r.mu.Unlock()
				}
				l := b.pass()
				time.Sleep(time.Second)
				r.giveBack(l)
			})
		}
		all.Wait()
		if most > limit+frame || most < limit/2 {
			t.Errorf("%d MiB were taken at the most, the limit is %d", most/mib, limit/mib)
		}
		if r.used != 0 || r.waits == 0 || r.slow != 0 || len(r.reading)+len(r.waiting) > 0 ||
			r.looks != nil || r.first != nil {
			t.Errorf("left: %+v", r)
		}
	})
}

// What holds much has to arrive the faster, and what is small waits for none of it.
func TestFramesThatHardlyArriveKeepNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 * mib
		r := &frameRoom{limit: 256 * mib}
		for range 3 {
			b, gone, _ := newBorrower(r)
			if err := b.Take(size, size); err != nil {
				t.Fatal(err)
			}
			b.Came(size / 4)
			go func() {
				defer func() { r.giveBack(b.pass()) }()
				for came := size / 4; came < size; came += slowBytes {
					select {
					case <-gone:
						return
					case <-time.After(9 * time.Second):
						b.Came(slowBytes)
					}
				}
			}()
		}
		began := time.Now()
		for _, c := range []struct {
			bytes int
			wait  time.Duration
		}{{40 << 10, 0}, {sideFrame, 0}, {8 * mib, time.Minute}} {
			b, _, _ := newBorrower(r)
			if err := b.Take(c.bytes, c.bytes); err != nil {
				t.Fatal(err)
			}
			if n := time.Since(began); n > c.wait {
				t.Errorf("a frame of %d bytes waited for %v", c.bytes, n)
			}
			r.giveBack(b.pass())
		}
		time.Sleep(time.Hour)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.used != 0 || r.side != 0 || len(r.reading)+len(r.waiting) > 0 {
			t.Errorf("left: %+v", r)
		}
	})
}

// Frames beside the line have a part of the limit, and wait in line when that is taken.
func TestManySmallFramesHaveABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &frameRoom{limit: 8 * mib}
		for range 10 {
			b, _, _ := newBorrower(r)
			if err := b.Take(sideFrame, sideFrame); err != nil {
				t.Fatal(err)
			}
		}
		if r.side != 2*mib || r.used != 8*mib {
			t.Errorf("%d beside and %d in line", r.side, r.used)
		}
	})
}

// Whose first bytes are few takes no memory of the small frames, and they do not wait for it.
func TestALargeFrameTakesNothingBesideTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame = 64 * mib
		r := &frameRoom{limit: 100 * mib}
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				b, _, _ := newBorrower(r)
				for _, step := range []int{mib, 3 * mib, 12 * mib, 48 * mib} {
					if b.Take(step, frame) != nil {
						t.Error("one was ended")
					}
					time.Sleep(time.Second)
					b.Came(step)
				}
				l := b.pass()
				time.Sleep(20 * time.Second) // the loop has it
				r.giveBack(l)
			})
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		small, _, _ := newBorrower(r)
		if err := small.Take(40<<10, 40<<10); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		if n := time.Since(began); n > 0 || r.side != 40<<10 {
			t.Errorf("a frame of 40 KiB waited for %v; %d bytes are beside the line", n, r.side)
		}
		r.mu.Unlock()
		r.giveBack(small.pass())
		all.Wait()
	})
}

// A frame that began in line goes on beside it, and gives each part back where it is of.
func TestASmallFrameMayHavePartsInLineAndBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &frameRoom{limit: 8 * mib}
		var beside []*borrower
		for range 2 {
			b, _, _ := newBorrower(r)
			if err := b.Take(sideFrame, sideFrame); err != nil {
				t.Fatal(err)
			}
			beside = append(beside, b)
		}
		b, _, _ := newBorrower(r)
		for range 2 {
			if err := b.Take(sideFrame/2, sideFrame); err != nil {
				t.Fatal(err)
			}
			if l := beside[0].pass(); l != nil {
				r.giveBack(l)
			}
		}
		if l := b.loan; l.has != sideFrame || l.side != sideFrame/2 || r.used != sideFrame/2 {
			t.Errorf("it has %d, %d of them beside the line; in line are %d", l.has, l.side, r.used)
		}
		r.giveBack(b.pass())
		r.giveBack(beside[1].pass())
		if r.used != 0 || r.side != 0 {
			t.Errorf("left: %+v", r)
		}
	})
}

// trickle has a frame that was given its memory come at some bytes a second until its connection
// ends or stop is closed, and gives the memory back.
func trickle(b *borrower, gone, stop chan struct{}, bytes int) {
	for {
		select {
		case <-gone:
		case <-stop:
		case <-time.After(time.Second):
			b.Came(bytes)
			continue
		}
		b.room.giveBack(b.pass())
		return
	}
}

// TestASlowFrameBesideTheLineEndsForThoseAloneThatWaitForThat has large frames wait in line, and
// then a small one for what slow ones have beside it.
func TestASlowFrameBesideTheLineEndsForThoseAloneThatWaitForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const small = 600 << 10
		r, stop := &frameRoom{limit: 3 * mib}, make(chan struct{})
		begin := func(size, bytes int) *error {
			b, gone, failed := newBorrower(r)
			go func() {
				if b.Take(size, size) == nil {
					trickle(b, gone, stop, bytes)
				}
			}()
			synctest.Wait()
			return failed
		}
		state := func() (waiting int, side int64) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.waiting), r.side
		}
		slow := begin(small, 20<<10)
		for range 3 {
			begin(3*mib, slowBytes)
		}
		begin(sideFrame, slowBytes) // is more than all that is beside the line
		time.Sleep(5*slowLook + slowLook/2)
		if n, _ := state(); *slow != nil || n == 0 {
			t.Fatalf("%d frames wait in line, and one beside it was ended: %v", n, *slow)
		}
		last := begin(small, slowBytes)
		before, _ := state()
		time.Sleep(3 * slowLook)
		if n, side := state(); *slow == nil || *last != nil || n != before-1 || side != small {
			t.Errorf("a small one waits (%v), the slow one's end is %v; %d beside, %d of %d wait", *last,
				*slow, side, n, before)
		}
		close(stop)
		synctest.Wait() // each that gets its memory ends at once
		if r.mu.Lock(); r.used != 0 || r.side != 0 || r.slow != 1 {
			t.Errorf("left: %+v", r)
		}
		r.mu.Unlock()
	})
}

func TestAConnectionThatDiesGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &frameRoom{limit: 10 * mib}
		holder, _, _ := newBorrower(r)
		first, _, _ := newBorrower(r)
		for _, b := range []*borrower{holder, first} { // the second goes over the limit
			if err := b.Take(8*mib, 8*mib); err != nil {
				t.Fatal(err)
			}
		}
		dying, gone, _ := newBorrower(r)
		last, _, _ := newBorrower(r)
		ended, got := make(chan error, 1), make(chan error, 1)
		go func() {
			err := dying.Take(8*mib, 8*mib)
			r.giveBack(dying.pass())
			ended <- err
		}()
		synctest.Wait()
		go func() { got <- last.Take(8*mib, 8*mib) }()
		synctest.Wait()
		if n := len(r.waiting); n != 2 {
			t.Fatalf("%d wait", n)
		}
		close(gone)
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the end is %v", err)
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Error("what waits behind it has room that nobody gave back")
		}
		r.giveBack(first.pass())
		if err := <-got; err != nil {
			t.Error(err)
		}
		r.giveBack(holder.pass())
		r.giveBack(last.pass())
		if r.used != 0 || r.looks != nil {
			t.Errorf("left: %+v", r)
		}
	})
}

func TestAFrameThatHardlyArrivesEndsWhenOthersWaitForItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &frameRoom{limit: 10 * mib}
		trickle := func(bytes int) (b *borrower, failed *error) {
			b, gone, failed := newBorrower(r)
			if err := b.Take(8*mib, 8*mib); err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					select {
					case <-gone:
						r.giveBack(b.pass())
						return
					case <-time.After(time.Second):
						b.Came(bytes)
					}
				}
			}()
			return b, failed
		}
		_, dead := trickle(1)
		slow, alive := trickle(slowBytes / 5)
		time.Sleep(time.Hour)
		synctest.Wait()
		if *dead != nil || r.slow != 0 {
			t.Fatalf("ended while nobody waits: %v", *dead)
		}
		waits, _, _ := newBorrower(r)
		began := time.Now()
		if err := waits.Take(2*mib, 2*mib); err != nil {
			t.Fatal(err)
		}
		if n := time.Since(began); n > 3*slowLook {
			t.Errorf("waited for %v", n)
		}
		if *dead == nil || !strings.Contains((*dead).Error(), "FRAME_SLOW") || r.slow != 1 {
			t.Errorf("the slow one's end is %v", *dead)
		}
		time.Sleep(10 * slowLook)
		if *alive != nil {
			t.Errorf("one that arrives was ended: %v", *alive)
		}
		slow.fail(nil)
		synctest.Wait()
		r.giveBack(waits.pass())
		if r.used != 0 {
			t.Errorf("left: %+v", r)
		}
	})
}

// TestAHeldPeerIsReadNoFurther holds it when the first of many messages comes: of small ones one
// more batch is read, of large ones none.
func TestAHeldPeerIsReadNoFurther(t *testing.T) {
	for size, want := range map[int]int{100: 2, 2 * mib: 1} {
		var s *Session
		set := func(c *Config, _ *transport.Options) {
			receive := c.Receive
			c.Receive = func(m message.Command) {
				receive(m)
				s.Hold(true)
			}
		}
		inBubble(t, false, set, func(b *bench) {
			s = b.s
			f := b.hello(nil)
			f.listen()
			frame := f.frame(&openwire.Message{Type: openwire.TypeBytesMessage,
				Content: make([]byte, size)})
			go func() {
				for range 10 {
					if _, err := b.far.Write(frame); err != nil {
						return
					}
				}
			}()
			synctest.Wait()
			b.on(func() {
				if len(b.got) > want {
					t.Errorf("of %d bytes each %d messages came, want %d", size, len(b.got), want)
				}
			})
			b.on(func() { s.Close("enough") })
		})
	}
}

func TestTheReaderIsAheadOfTheLoopByOneLargeFrameOnly(t *testing.T) {
	inBubble(t, true, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		frame := f.frame(&openwire.Message{Type: openwire.TypeBytesMessage,
			Content: make([]byte, 2*mib)})
		sent := 0
		go func() {
			for {
				if _, err := b.far.Write(frame); err != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent != 1 {
			t.Errorf("%d were read while the loop looked at none", sent)
		}
	})
}

// TestALargeFrameWithoutRoomWaitsAndItsPeerIsNotGivenUp has another frame hold the room for longer
// than the time of silence.
func TestALargeFrameWithoutRoomWaitsAndItsPeerIsNotGivenUp(t *testing.T) {
	set := func(c *Config, _ *transport.Options) { c.Hub.LimitFrames(mib) }
	inBubble(t, false, set, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		hub := b.s.cfg.Hub
		other, _, _ := newBorrower(&hub.frames)
		over, _, _ := newBorrower(&hub.frames)
		if other.Take(mib, mib) != nil || over.Take(mib, mib) != nil {
			t.Fatal("no room for the first")
		}
		frame := f.frame(&openwire.Message{Type: openwire.TypeBytesMessage,
			Content: make([]byte, 2*mib)})
		go func() { _, _ = b.far.Write(frame) }()
		for range 20 { // the others arrive all the while
			time.Sleep(5 * time.Second)
			other.Came(slowBytes)
			over.Came(slowBytes)
		}
		if s := hub.Frames(); s.Waiting != 1 || s.Waited != 1 || s.Bytes < 2*mib || len(b.got) > 0 {
			t.Errorf("%+v, %d came", s, len(b.got))
		}
		b.on(func() {
			if len(b.down) > 0 {
				t.Errorf("given up: %v", b.down)
			}
		})
		hub.frames.giveBack(over.pass())
		synctest.Wait()
		b.on(func() {
			if m, ok := b.got[0].(*message.Message); len(b.got) != 1 || !ok || len(m.Content) != 2*mib {
				t.Errorf("%d came", len(b.got))
			}
		})
		hub.frames.giveBack(other.pass())
		if s := hub.Frames(); s.Bytes != 0 || s.Waiting != 0 {
			t.Errorf("the loop has seen it, and there are %+v", s)
		}
	})
}
