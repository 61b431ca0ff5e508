package queue

import (
	"testing"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// still is a world in which no time passes.
type still struct{ now time.Duration }

func (*still) Wall() int64           { return 0 }
func (s *still) Mono() time.Duration { return s.now }
func (*still) Soon(func())           {}
func (*still) Rand() uint64          { return 0 }
func (*still) After(time.Duration, func()) loop.Timer {
	return stopped{}
}

type stopped struct{}

func (stopped) Stop() {}

// quiet is a host that is asked for nothing.
type quiet struct{}

func (quiet) Wake(*Queue)                     {}
func (quiet) ReadPage(*Queue, uint64, uint64) {}
func (quiet) Expire(*Queue, *Copy)            {}
func (quiet) Deliverable(*Slot, *Copy) bool   { return true }
func (quiet) RaiseMark(s *Slot, seq uint64)   { s.SetMark(seq + 1000) }

// taker is a subscription that notes what it took. It has room for room copies, and refuses what
// its rule does not let through.
type taker struct {
	room  int
	rule  func(c *Copy) message.Verdict
	took  []uint64
	inUse int
}

func (t *taker) Gate(time.Duration) message.Verdict {
	if t.inUse >= t.room {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent}
	}
	return message.Verdict{}
}

func (t *taker) Verdict(c *Copy, _ time.Duration) message.Verdict {
	if t.rule == nil {
		return message.Verdict{}
	}
	return t.rule(c)
}

func (t *taker) Take(c *Copy) bool {
	c.Owner = t
	t.took = append(t.took, c.Seq)
	t.inUse++
	return t.inUse < t.room
}

func (t *taker) Claim(*Copy) bool {
	t.inUse++
	return t.inUse < t.room
}

func (t *taker) Unclaim(*Copy) { t.inUse-- }

func fresh(n int, stored bool) (*Queue, *still, []*Copy) {
	env := &still{}
	q := New(message.Destination{Kind: message.Queue, Name: "Q"}, env, quiet{}, 1)
	var copies []*Copy
	for range n {
		c := q.Add(&message.Message{Persistent: stored}, 0)
		c.Stored = stored
		copies = append(copies, c)
	}
	return q, env, copies
}

func want(t *testing.T, who string, got []uint64, seqs ...uint64) {
	t.Helper()
	if len(got) != len(seqs) {
		t.Fatalf("%s took %v, want %v", who, got, seqs)
	}
	for i := range seqs {
		if got[i] != seqs[i] {
			t.Fatalf("%s took %v, want %v", who, got, seqs)
		}
	}
}

func TestBridgeKeepsItsTurnUntilTheCopyIsDurable(t *testing.T) {
	q, _, copies := fresh(4, true)
	local, bridge := &taker{room: 10}, &taker{room: 10}
	q.Attach(local, Traits{})
	q.Attach(bridge, Traits{Network: true, Mark: true})
	q.Dispatch(NewSlice(q.env))
	want(t, "the local consumer", local.took, 1, 3)
	want(t, "the bridge", bridge.took)
	for _, c := range copies {
		q.Committed(c)
	}
	q.Dispatch(NewSlice(q.env))
	want(t, "the bridge", bridge.took, 2, 4)
}

func TestClaimsGoBackWhenTheirSubscriptionLeaves(t *testing.T) {
	q, _, _ := fresh(2, true)
	bridge, local := &taker{room: 10}, &taker{room: 10}
	s := q.Attach(bridge, Traits{Network: true})
	q.Dispatch(NewSlice(q.env))
	q.Attach(local, Traits{})
	q.Detach(s)
	q.Dispatch(NewSlice(q.env))
	want(t, "the local consumer", local.took, 1, 2)
}

func TestClaimThatIsRefusedAfterAllMakesRoomAgain(t *testing.T) {
	q, _, copies := fresh(3, true)
	refuse := false
	bridge := &taker{room: 1, rule: func(c *Copy) message.Verdict {
		if refuse && c.Seq == 1 {
			return message.Refused(message.SelectorNoMatch)
		}
		return message.Verdict{}
	}}
	q.Attach(bridge, Traits{Network: true})
	q.Dispatch(NewSlice(q.env)) // claims the first, and has no room for more
	refuse = true
	for _, c := range copies {
		q.Committed(c)
	}
	q.Dispatch(NewSlice(q.env))
	q.Dispatch(NewSlice(q.env))
	want(t, "the bridge", bridge.took, 2)
}

// A copy is looked at again out of the order, before older ones that the slot has still to see.
func TestSecondLookDoesNotJumpOverOlderCopies(t *testing.T) {
	q, env, _ := fresh(2, false)
	early := true
	s := &taker{room: 10, rule: func(c *Copy) message.Verdict {
		switch {
		case c.Seq == 1 && early:
			return message.Verdict{Outcome: message.Refuse, Wake: message.WakeConsumers}
		case c.Seq == 2 && env.now < time.Second:
			return message.RefusedUntil(message.ReplayDelay, time.Second)
		}
		return message.Verdict{}
	}}
	q.Attach(s, Traits{})
	q.Dispatch(NewSlice(q.env))
	early, env.now = false, time.Second
	other := q.Attach(&taker{}, Traits{}) // the consumers change, and the time of the second comes
	q.Detach(other)
	q.Dispatch(NewSlice(q.env))
	if len(s.took) != 2 {
		t.Fatalf("took %v, want both", s.took)
	}
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
}
