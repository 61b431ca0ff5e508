package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// library is a broker that crashes, with readers of durable subscriptions that come and go.
type library struct {
	w       *World
	rnd     *rand.Rand
	n       *Node
	readers []*durableReader
	sent    []sentTo
}

type durableReader struct {
	c     *Client
	wants Wants
	got   map[message.MessageID]int
	from  int // what was sent before is not its
}

type sentTo struct {
	id        message.MessageID
	to, color string
	confirmed bool
}

func newLibrary(seed uint64) *library {
	l := &library{w: New(seed, Options{})}
	l.rnd = l.w.Rand()
	l.n = l.w.Broker(NodeConfig{Name: "a", MemoryLimit: []int64{0, 50_000}[l.rnd.IntN(2)]})
	l.n.Slow(time.Duration(l.rnd.IntN(3)) * 40 * time.Millisecond)
	for i := range 2 + l.rnd.IntN(3) {
		r := &durableReader{c: l.w.Client(fmt.Sprint("reader", i)).Steady(),
			got: map[message.MessageID]int{}}
		r.wants = Wants{Durable: "s", Handle: func(m *message.Message) { r.got[m.ID]++ },
			From: message.Destination{Kind: message.Topic,
				Name: []string{"T.0", "T.1", "T.>", "T.0,T.1"}[l.rnd.IntN(4)]}}
		if l.rnd.IntN(2) == 0 {
			r.wants.Selector = "color='red'"
		}
		l.readers = append(l.readers, r)
		l.come(r)
	}
	l.w.Run(time.Second)
	return l
}

func (r *durableReader) takes(d message.Destination, color string) bool {
	return (r.wants.Selector == "" || color == "red") &&
		slices.ContainsFunc(r.wants.From.Split(), func(m message.Destination) bool {
			return policy.Matches(m, d)
		})
}

func (l *library) come(r *durableReader) { l.comeAs(r, AckMode(l.rnd.IntN(4))) }

func (l *library) comeAs(r *durableReader, mode AckMode) {
	if r.c.Node() != nil || !r.c.Connect(l.n) {
		return
	}
	w := r.wants
	w.Mode, w.Batch = mode, 1+l.rnd.IntN(5)
	w.Prefetch = []int{1, 5, 100}[l.rnd.IntN(3)]
	w.Work = l.w.within(20 * time.Millisecond)
	r.c.Consume(w)
}

func (l *library) send(p *Client) {
	if p.Node() == nil && !p.Connect(l.n) {
		return
	}
	color := []string{"red", "blue"}[l.rnd.IntN(2)]
	to := []string{"T.0", "T.1", "T.0,T.1"}[l.rnd.IntN(3)]
	m := colored(color)
	m.To = message.Destination{Kind: message.Topic, Name: to}
	m.Body = make([]byte, l.rnd.IntN(3000))
	i := len(l.sent)
	l.sent = append(l.sent, sentTo{to: to, color: color})
	if l.rnd.IntN(4) == 0 {
		p.Begin()
		l.sent[i].id = p.Send(m, func(error) {})
		p.Commit(func(err error) { l.sent[i].confirmed = err == nil })
		return
	}
	l.sent[i].id = p.Send(m, func(err error) { l.sent[i].confirmed = err == nil })
}

// renew ends the reader's subscription, by a word or by another selector, and begins it anew.
func (l *library) renew(r *durableReader) {
	if l.rnd.IntN(2) == 0 {
		r.wants.Selector = map[string]string{"": "color='red'", "color='red'": ""}[r.wants.Selector]
	} else if r.c.Node() != nil || r.c.Connect(l.n) {
		for _, c := range r.c.order {
			c.Close()
		}
		r.c.send(&message.RemoveSubscriptionInfo{ClientID: r.c.Name(), SubscriptionName: "s"})
	}
	r.c.Close()
	r.from = len(l.sent) + 1_000_000 // nothing is its until it is there again
	l.w.Run(10 * time.Millisecond)
	l.come(r)
	l.w.Run(500 * time.Millisecond)
	if r.c.Node() != nil {
		r.from = len(l.sent)
	}
}

func (l *library) play() {
	p := l.w.Client("writer")
	for range 150 + l.rnd.IntN(150) {
		switch r := l.readers[l.rnd.IntN(len(l.readers))]; l.rnd.IntN(20) {
		case 0:
			if l.n.Up() {
				l.n.Crash(false, 0)
				l.w.Run(l.w.within(100 * time.Millisecond))
				l.n.Start()
			}
		case 1, 2:
			if r.c.Node() != nil {
				if l.rnd.IntN(2) == 0 {
					r.c.Close()
				} else {
					r.c.Crash(0)
				}
			}
		case 3, 4, 5:
			l.come(r)
		case 6:
			l.renew(r)
		case 7:
			l.n.Capacity(1, 1<<20)
			l.w.After(l.w.within(time.Second), func() { l.n.Capacity(0, 0) })
		default:
			l.send(p)
		}
		l.w.Run(l.w.within(30 * time.Millisecond))
	}
}

// check has every reader come, and looks at what they got in all.
func (l *library) check(t *testing.T, seed uint64) {
	l.n.Capacity(0, 0)
	for _, r := range l.readers {
		r.c.Close()
		l.w.Run(time.Second)
		l.comeAs(r, Auto)
	}
	l.w.Run(time.Minute)
	for _, r := range l.readers {
		for i, s := range l.sent {
			if i < r.from {
				continue
			}
			want := 0
			to := message.Destination{Kind: message.Topic, Name: s.to}
			for _, d := range to.Split() {
				if s.confirmed && r.takes(d, s.color) {
					want++
				}
			}
			if r.got[s.id] < want {
				t.Errorf("seed %d: %s of %s %q got %d of %v to %s, %s: want %d", seed, r.c.Name(),
					r.wants.From, r.wants.Selector, r.got[s.id], s.id, s.to, s.color, want)
			}
		}
	}
	for _, s := range l.n.Core().Status().Subscriptions {
		if s.Size != 0 {
			t.Errorf("seed %d: %s keeps %d messages", seed, s.ClientID, s.Size)
		}
	}
	if used := l.n.Core().Status().MemoryBytes; used != 0 {
		t.Errorf("seed %d: %d bytes stay charged", seed, used)
	}
	l.n.Stop(func() {})
	l.w.Run(time.Second)
	headers, err := l.n.disk.store.Headers()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		page, err := l.n.disk.store.Page(store.PageRequest{Dest: h.ID, To: 1 << 60})
		if err != nil || len(page) > 0 {
			t.Errorf("seed %d: %d messages of %s stay stored: %v", seed, len(page), h.Destination, err)
		}
	}
}

func TestDurableSubscribersGetEverythingWhateverCrashes(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	for seed := uint64(1); seed <= seeds && !t.Failed(); seed++ {
		l := newLibrary(seed)
		l.play()
		l.check(t, seed)
	}
}
