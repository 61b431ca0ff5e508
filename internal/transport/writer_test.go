package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// pair is two ends of a TCP connection.
func pair(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := Wrap(near, DefaultOptions())
	t.Cleanup(func() { c.Close(); far.Close() })
	return c, far
}

// numbers is what a writer has to send: counting numbers, of which some wait.
type numbers struct {
	mu            sync.Mutex
	waiting, next int
}

func (n *numbers) add(count int) {
	n.mu.Lock()
	n.waiting += count
	n.mu.Unlock()
}

func (n *numbers) fill(b []byte, limit int) ([]byte, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ; n.waiting > 0 && len(b) < limit; n.waiting-- {
		b = binary.BigEndian.AppendUint32(b, uint32(n.next))
		n.next++
	}
	return b, n.waiting > 0, nil
}

// count reads count numbers, from first on, in order.
func count(t *testing.T, r io.Reader, first, count int) {
	t.Helper()
	got := make([]byte, 4*count)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		if n := binary.BigEndian.Uint32(got[4*i:]); n != uint32(first+i) {
			t.Fatalf("number %d is %d", first+i, n)
		}
	}
}

// begin runs a writer until the test ends and waits until its first bytes are out.
func begin(t *testing.T, w *Writer, far net.Conn) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.Run(done, []byte("hello")); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
	hello := make([]byte, 5)
	if _, err := io.ReadFull(far, hello); err != nil || string(hello) != "hello" {
		t.Fatalf("%q, %v", hello, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock() // the first round has ended
}

func TestAFlushWritesWithoutTheWriter(t *testing.T) {
	c, far := pair(t)
	if !c.direct.able() {
		t.Skip("this system does not write directly")
	}
	n := &numbers{}
	w := NewWriter(c, n.fill)
	w.begun = true // and nobody runs it
	n.add(100)
	w.Flush()
	if len(w.wake) > 0 {
		t.Error("the writer was woken")
	}
	count(t, far, 0, 100)
}

func TestAFlushBeforeTheFirstBytesWaitsForThem(t *testing.T) {
	c, far := pair(t)
	n := &numbers{}
	w := NewWriter(c, n.fill)
	n.add(100)
	w.Flush()
	begin(t, w, far)
	count(t, far, 0, 100)
}

func TestAFlushToAFullSocketLeavesTheRestToTheWriter(t *testing.T) {
	c, far := pair(t)
	n := &numbers{}
	w := NewWriter(c, n.fill)
	begin(t, w, far)
	const each, times = 4000, 2000 // 32 MB: no socket holds that
	for range times {
		n.add(each)
		w.Flush() // would block for ever
	}
	count(t, far, 0, each*times)
}

func TestAFlushDoesNotOvertakeTheRest(t *testing.T) {
	c, far := pair(t)
	if !c.direct.able() {
		t.Skip("this system does not write directly")
	}
	n := &numbers{}
	w := NewWriter(c, n.fill)
	w.begun = true // and nobody runs it
	for len(w.rest) == 0 {
		n.add(4000)
		w.Flush()
	}
	got := make([]byte, 4*n.next+40)
	begun := len(got) - 40 - len(w.rest)
	if _, err := io.ReadFull(far, got[:begun]); err != nil {
		t.Fatal(err)
	}
	n.add(10)
	w.Flush() // there is room again
	if err := w.round(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, got[begun:]); err != nil {
		t.Fatal(err)
	}
	count(t, bytes.NewReader(got), 0, len(got)/4)
}

func TestAFlushWhileTheWriterWritesIsNotForgotten(t *testing.T) {
	c, far := pair(t)
	n := &numbers{}
	looked, proceed := make(chan struct{}), make(chan struct{})
	w := NewWriter(c, func(b []byte, limit int) ([]byte, bool, error) {
		b, more, err := n.fill(b, limit)
		if looked != nil {
			close(looked)
			<-proceed
			looked = nil
		}
		return b, more, err
	})
	first := looked
	go func() {
		<-first
		n.add(1)
		w.Flush() // the writer has looked, and saw nothing
		close(proceed)
	}()
	begin(t, w, far)
	count(t, far, 0, 1)
}

func TestFlushesAndWakesKeepTheOrder(t *testing.T) {
	c, far := pair(t)
	n := &numbers{}
	w := NewWriter(c, n.fill)
	begin(t, w, far)
	const times = 20000
	go func() {
		for i := range times {
			n.add(1)
			if i%3 == 0 {
				w.Wake()
			} else {
				w.Flush()
			}
		}
	}()
	count(t, far, 0, times)
}

func TestAFlushTellsTheWriterOfTheEnd(t *testing.T) {
	c, far := pair(t)
	full := false
	w := NewWriter(c, func(b []byte, _ int) ([]byte, bool, error) {
		if !full {
			return b, false, nil
		}
		return append(b, "last"...), false, io.EOF
	})
	ended := make(chan error)
	go func() { ended <- w.Run(nil, []byte("first")) }()
	got := make([]byte, 9)
	if _, err := io.ReadFull(far, got[:5]); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	full = true
	w.mu.Unlock()
	w.Flush()
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := io.ReadFull(far, got[5:]); err != nil || !bytes.Equal(got, []byte("firstlast")) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWhatIsApartIsWrittenInItsPlace has every third number written apart, by the writer and by a
// flush that must leave it to the writer.
func TestWhatIsApartIsWrittenInItsPlace(t *testing.T) {
	c, far := pair(t)
	n := &numbers{}
	var w *Writer
	w = NewWriter(c, func(b []byte, limit int) ([]byte, bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for ; n.waiting > 0 && len(b) < limit; n.waiting-- {
			one := binary.BigEndian.AppendUint32(nil, uint32(n.next))
			if n.next%3 == 0 {
				w.Apart(len(b), one)
			} else {
				b = append(b, one...)
			}
			n.next++
		}
		return b, n.waiting > 0, nil
	})
	begin(t, w, far)
	_ = far.SetDeadline(time.Now().Add(10 * time.Second))
	for i := range 20 {
		n.add(50)
		if i%2 == 1 {
			w.Wake()
		} else {
			w.Flush()
		}
		count(t, far, 50*i, 50)
	}
	w.mu.Lock() // the round has ended
	defer w.mu.Unlock()
	if cap(w.apart) > 0 && w.apart[:1][0].b != nil {
		t.Error("what was written is kept")
	}
}
