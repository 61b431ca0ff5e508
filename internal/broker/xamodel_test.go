package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

// story is what a transaction manager did with one branch, and was told.
type story struct {
	id    message.TransactionID
	on    *guest
	sends []int64
	acks  []int64
	asked message.TransactionType // last; 0 is begin
	told  string                  // of it; "" while it is not answered
	at    int32                   // the command
}

// manager drives branches with restarts of the broker, and holds it to the promise: a branch whose
// commit was answered took effect whole, one whose rollback was answered not at all, and a prepared
// one waits.
type manager struct {
	t       *rapid.T
	h       *house
	clients []*guest
	eaters  map[*guest]message.ConsumerID
	eaten   map[*guest]int // of got
	open    []*story
	over    []*story
	next    int64
	xids    int
}

func (m *manager) connect() {
	m.clients, m.eaters, m.eaten = nil, map[*guest]message.ConsumerID{}, map[*guest]int{}
	for range 3 {
		m.next++
		id := fmt.Sprint("c", m.next)
		g := m.h.connect(id, id, "", nil)
		m.clients = append(m.clients, g)
		m.eaters[g] = g.window(id, queueNamed("q"), int32(1+m.below(4, "window")), "")
	}
}

func (m *manager) below(n int, what string) int { return stranger{t: m.t}.below(n, what) }

func (m *manager) ask(s *story, how message.TransactionType, on *guest) {
	on.number++
	c := &message.TransactionInfo{Connection: on.id, ID: s.id, Type: how}
	c.CommandID, c.ResponseRequired = on.number, true
	s.asked, s.told, s.at, s.on = how, "", on.number, on
	on.Handle(c)
}

// hear notes the answers that came.
func (m *manager) hear() {
	m.open = slices.DeleteFunc(m.open, func(s *story) bool {
		if s.asked != begin && s.told == "" {
			if got := s.on.outcome(s.at, nil); got != "nothing" {
				s.told = got
			}
		}
		over := s.told != "" && s.asked != begin && s.told != "vote 0"
		if over {
			m.over = append(m.over, s)
		}
		return over
	})
}

func (m *manager) step() {
	h := m.h
	g := m.clients[m.below(len(m.clients), "client")]
	var s *story
	if len(m.open) > 0 {
		s = m.open[m.below(len(m.open), "branch")]
	}
	switch what := m.below(12, "step"); {
	case s == nil || what == 0:
		m.xids++
		s = &story{id: xid(m.xids), on: g}
		m.open = append(m.open, s)
		g.Handle(&message.TransactionInfo{Connection: g.id, ID: s.id, Type: begin})
	case what < 4 && s.asked == begin:
		m.next++
		x := s.on.mail(string(s.on.id), queueNamed("q"), m.next)
		x.Transaction, x.Content = s.id, make([]byte, 300)
		s.on.Handle(x)
		s.sends = append(s.sends, m.next)
	case what < 6 && s.asked == begin:
		h.turn()
		if at := m.eaten[g]; at < len(g.got) {
			m.eaten[g]++
			g.Handle(&message.MessageAck{Consumer: m.eaters[g], Destination: queueNamed("q"),
				Type: message.StandardAck, Transaction: s.id, First: g.got[at], Last: g.got[at],
				HasFirst: true, HasLast: true, Count: 1})
			s.acks = append(s.acks, g.got[at].Sequence)
		}
	case what < 8 && s.asked == begin:
		how := []message.TransactionType{prepare, prepare, prepare, rollback, commit1}
		m.ask(s, how[m.below(5, "how")], s.on)
	case what < 8 && s.told == "vote 0":
		m.ask(s, []message.TransactionType{commit2, commit2, rollback}[m.below(3, "how")], g)
	case what == 8:
		h.turn()
	case what == 9:
		for range m.below(4, "steps") {
			h.step()
		}
	case what == 10 && m.below(4, "full") == 0:
		h.disk.SetCapacity(0, 0)
		if m.below(2, "or not") == 0 {
			h.disk.SetCapacity(1, 1000)
		}
		h.pass(time.Second)
	case what == 11 && m.below(4, "crash") == 0:
		m.hear()
		m.h = h.again()
		m.h.disk.SetCapacity(0, 0)
		m.settle()
		m.connect()
	}
	m.hear()
}

// settle finds out after a crash what became of branches that nobody was told of.
func (m *manager) settle() {
	r := m.h.connect("r", "r", "", nil)
	ids := r.recovered()
	r.Gone()
	for _, s := range slices.Clone(m.open) {
		is := slices.Contains(ids, s.id)
		switch {
		case is:
			if s.asked == begin {
				m.t.Errorf("%s was never prepared, and is there", s.id)
			}
			s.asked, s.told = prepare, "vote 0"
		case s.asked == prepare && s.told == "vote 0":
			m.t.Errorf("%s was prepared, and is not there", s.id)
		case s.asked == begin || s.asked == prepare:
			s.asked, s.told = rollback, "ok" // it ended with its connection
		default:
			s.told = "either"
		}
	}
}

// check consumes everything and compares.
func (m *manager) check() {
	m.h.disk.SetCapacity(0, 0)
	m.h.turn()
	m.h.pass(10 * time.Second)
	m.hear()
	for _, s := range slices.Clone(m.open) {
		switch {
		case s.told == "vote 0":
			m.ask(s, []message.TransactionType{commit2, rollback}[m.below(2, "last")], m.clients[0])
		case s.asked == begin:
			m.ask(s, rollback, s.on)
		default:
			m.t.Errorf("%s is asked for %d and never told", s.id, s.asked)
		}
		m.h.turn()
		m.hear()
	}
	for _, g := range m.clients {
		g.Gone()
	}
	m.h.turn()
	m.h.pass(10 * time.Second)
	all := m.h.connect("all", "all", "", nil)
	all.window("all", queueNamed("q"), 1000, "")
	got := map[int64]int{}
	for _, id := range all.got {
		got[id.Sequence]++
	}
	var either []int64
	want := map[int64]int{}
	for _, s := range m.over {
		switch {
		case s.told == "either":
			either = append(either, slices.Concat(s.sends, s.acks)...)
		case s.told == "ok" && s.asked != rollback:
			for _, n := range s.sends {
				want[n]++
			}
			for _, n := range s.acks {
				want[n]--
			}
		}
	}
	for n := range m.next + 1 {
		if !slices.Contains(either, n) && got[n] != want[n] {
			m.t.Errorf("message %d is there %d times, want %d", n, got[n], want[n])
		}
	}
	for _, s := range m.over {
		if s.told != "either" {
			continue
		}
		in := 0
		for _, n := range s.sends {
			in += min(1, got[n])
		}
		if len(s.acks) == 0 && in != 0 && in != len(s.sends) && !m.taken(s) {
			m.t.Errorf("of the %d that %s sent %d are there", len(s.sends), s.id, in)
		}
	}
	all.Gone()
	m.h.turn()
	if err := m.h.balance(); err != nil {
		m.t.Error(err)
	}
	if len(m.h.b.xa.branches) != 0 {
		m.t.Errorf("%d branches are left", len(m.h.b.xa.branches))
	}
}

// taken reports whether another branch may have consumed what a branch sent.
func (m *manager) taken(s *story) bool {
	return slices.ContainsFunc(m.over, func(o *story) bool {
		return slices.ContainsFunc(o.acks, func(n int64) bool { return slices.Contains(s.sends, n) })
	})
}

func TestABranchTakesEffectWholeOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &manager{t: rt, h: open(t, nil, nil)}
		m.connect()
		for range 50 + m.below(150, "steps") {
			m.step()
		}
		m.check()
	})
}
