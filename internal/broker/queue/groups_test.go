package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// groupWorld is a queue with consumers of messages in groups.
type groupWorld struct {
	env *clock
	h   *testHost
	log []string
}

func newGroupWorld(change func(*policy.Entry)) *groupWorld {
	w := &groupWorld{env: &clock{}, h: &testHost{stored: map[uint64]*Copy{}}}
	w.h.q = New(message.Destination{Kind: message.Queue, Name: "q"}, w.env, w.h, 1)
	e := policy.NewEntry()
	if change != nil {
		change(e)
	}
	w.h.q.Follow(e)
	return w
}

// send adds messages: "G" of group G, "G1" with sequence 1, "G-" that closes it, "Gx" for a
// selector to refuse.
func (w *groupWorld) send(texts string) {
	w.add(texts)
	w.h.settle()
}

func (w *groupWorld) add(texts string) {
	for text := range strings.FieldsSeq(texts) {
		m := &message.Message{GroupID: strings.TrimRight(text, "1-x"), CorrelationID: text}
		switch {
		case strings.HasSuffix(text, "1"):
			m.GroupSequence = 1
		case strings.HasSuffix(text, "-"):
			m.GroupSequence = -1
		}
		w.h.q.Add(m, w.env.now)
	}
}

// taken gives what was taken since the last call, "!" behind the first of a group.
func (w *groupWorld) taken() string {
	s := strings.Join(w.log, " ")
	w.log = nil
	return s
}

func (w *groupWorld) attach(name string, room int, t Traits) *groupSub {
	s := &groupSub{w: w, name: name, room: room}
	s.slot = w.h.q.Attach(s, t)
	w.h.settle()
	return s
}

type groupSub struct {
	w    *groupWorld
	name string
	room int
	not  string // what its selector refuses
	slot *Slot
}

func (s *groupSub) Gate(time.Duration) message.Verdict {
	if s.room == 0 {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.WindowFull}
	}
	return message.Verdict{}
}

func (s *groupSub) Verdict(c *Copy, _ time.Duration) message.Verdict {
	if c.Message.CorrelationID == s.not {
		return message.Refused(message.SelectorNoMatch)
	}
	return message.Verdict{}
}

func (s *groupSub) Take(c *Copy) bool {
	first := ""
	if c.GroupFirst {
		first = "!"
	}
	s.w.log = append(s.w.log, fmt.Sprintf("%s:%s%s", s.name, c.Message.CorrelationID, first))
	s.w.h.q.Remove(c)
	s.room--
	return s.room > 0
}

func (s *groupSub) leave() {
	s.w.h.q.Detach(s.slot)
	s.w.h.settle()
}

func (s *groupSub) more(n int) {
	s.room += n
	s.slot.Ready()
	s.w.h.settle()
}

func (w *groupWorld) expect(t *testing.T, what, want string) {
	t.Helper()
	if got := w.taken(); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
	if err := w.h.q.Check(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAGroupHasOneConsumer(t *testing.T) {
	w := newGroupWorld(nil)
	a, b := w.attach("a", 100, Traits{}), w.attach("b", 100, Traits{})
	w.send("X Y X Y Z X")
	w.expect(t, "two consumers", "a:X! b:Y! a:X b:Y a:Z! a:X")
	w.send("W")
	w.expect(t, "a new group goes to who has fewest", "b:W!")
	w.send("X- X")
	w.expect(t, "closed", "a:X- a:X!")
	w.send("Y1 Y")
	w.expect(t, "begun again", "b:Y1! b:Y")
	b.room = 0
	b.slot.queue.blockSlot(b.slot, b.Gate(0))
	w.send("Y Z Y")
	w.expect(t, "the owner is full", "a:Z")
	b.more(1)
	w.expect(t, "the owner has room", "b:Y")
	b.leave()
	w.expect(t, "the owner is gone", "a:Y!")
	a.leave()
}

func TestACopyBehindAClosedGroupIsLookedAtAgain(t *testing.T) {
	w := newGroupWorld(nil)
	a, b := w.attach("a", 1, Traits{}), w.attach("b", 1, Traits{})
	w.send("X X- X")
	w.expect(t, "a is full, b waits for the group", "a:X!")
	a.more(1)
	w.expect(t, "a closes the group, b goes on", "a:X- b:X!")
	_ = b
}

func TestWhoeverLosesAGroupTheOthersLookAtItsCopiesAgain(t *testing.T) {
	one := func(e *policy.Entry) { e.Groups = policy.Groups{Kind: policy.GroupsCached, CacheSize: 1} }
	for _, c := range []struct {
		name   string
		change func(*policy.Entry)
		room   int // of a
		send   string
		want   string
	}{
		{"closed behind a copy that its owner refused", nil, 9, "G Gx G-", "a:G! a:G- b:Gx!"},
		{"given to another by its first number", nil, 1, "G G G1", "a:G! b:G1! b:G"},
		{"forgotten for another", one, 1, "G G H", "a:G! b:H! b:G!"},
	} {
		w := newGroupWorld(c.change)
		a := w.attach("a", c.room, Traits{})
		a.not = "Gx"
		w.attach("b", 9, Traits{})
		w.send(c.send)
		w.expect(t, c.name, c.want)
	}
}

func TestABridgeKeepsNoGroupOfWhatItMayNotForward(t *testing.T) {
	for _, send := range []string{"G Gx", "Gx G"} { // it has the group before, and only then
		w := newGroupWorld(nil)
		bridge := w.attach("bridge", 9, Traits{Priority: -1, Network: true})
		bridge.not = "Gx"
		local := w.attach("local", 1, Traits{})
		w.send("m1 " + send)
		w.expect(t, "the local consumer is full", "local:m1! bridge:G!")
		local.more(1)
		w.expect(t, "it has room", "local:Gx!")
	}
	w := newGroupWorld(nil)
	w.attach("bridge", 9, Traits{Priority: -1, Network: true}).not = "Gx"
	w.send("G")
	w.attach("local", 9, Traits{})
	w.send("Gx G")
	w.expect(t, "the local consumer waits for the group", "bridge:G! local:Gx! local:G")
}

func TestTheEndOfAGroupForgetsNoOtherRefusal(t *testing.T) {
	w := newGroupWorld(nil)
	w.attach("a", 9, Traits{})
	b := w.attach("b", 1, Traits{})
	w.send("G H H G-")
	w.expect(t, "b is full", "a:G! b:H! a:G-")
	b.leave()
	w.expect(t, "b is gone, H is free", "a:H!")
}

func TestWhoLooksAgainIsServedInItsTurnMeanwhile(t *testing.T) {
	w := newGroupWorld(nil)
	low := w.attach("low", 1, Traits{Priority: -1})
	w.send("G G-")
	w.attach("high", 9, Traits{})
	w.expect(t, "low is full", "low:G!")
	w.add("m n")
	low.more(9)
	w.expect(t, "low closes the group", "low:G- high:m! high:n!")
}

func TestOwnersOfGroupsAreRememberedAsThePolicySays(t *testing.T) {
	for _, c := range []struct {
		rule policy.Groups
		want string
	}{
		{policy.NewGroups(policy.GroupsSimple), "a:A! b:B! a:C! a:A"},
		{policy.Groups{Kind: policy.GroupsCached, CacheSize: 2}, "a:A! b:B! a:C! b:A!"},
		{policy.Groups{Kind: policy.GroupsBucket, Buckets: 1, CacheSize: 8}, "a:A! a:B a:C a:A"},
	} {
		w := newGroupWorld(func(e *policy.Entry) { e.Groups = c.rule })
		w.attach("a", 100, Traits{})
		w.attach("b", 100, Traits{})
		w.send("A B C A")
		w.expect(t, fmt.Sprintf("%+v", c.rule), c.want)
	}
}

func TestAnExclusiveConsumerHasTheQueueForItself(t *testing.T) {
	w := newGroupWorld(nil)
	exclusive := func(priority int) Traits { return Traits{Exclusive: Exclusive{true, priority}} }
	w.attach("plain", 100, Traits{Priority: 9})
	a := w.attach("a", 2, exclusive(0))
	w.send("m n o")
	w.expect(t, "the first exclusive one", "a:m! a:n!")
	a.more(1)
	w.expect(t, "it alone", "a:o!")
	b := w.attach("b", 100, exclusive(0))
	w.send("p")
	w.expect(t, "one more of the same priority", "")
	c := w.attach("c", 100, exclusive(5))
	w.expect(t, "one of higher priority", "c:p!")
	d := w.attach("d", 100, exclusive(takesOver))
	e := w.attach("e", 100, exclusive(takesOver))
	w.send("q")
	w.expect(t, "the last of the highest", "e:q!")
	e.leave()
	w.send("r")
	w.expect(t, "it leaves", "d:r!")
	d.leave()
	c.leave()
	b.leave()
	w.send("s")
	w.expect(t, "the first is full again", "")
	a.leave()
	w.expect(t, "nobody wants it alone", "plain:s!")
}

// Else neither could take what the other has, and both would wait for ever.
func TestAnExclusiveConsumerTakesTheGroupsOver(t *testing.T) {
	w := newGroupWorld(nil)
	exclusive := Traits{Exclusive: Exclusive{true, 0}}
	w.attach("plain", 100, Traits{})
	w.send("G")
	w.expect(t, "the group begins", "plain:G!")
	x := w.attach("x", 100, exclusive)
	w.send("G G")
	w.expect(t, "an exclusive one came", "x:G! x:G")
	y := w.attach("y", 0, exclusive)
	w.send("H")
	w.expect(t, "another one waits", "x:H!")
	x.leave()
	w.send("H")
	y.more(100)
	w.expect(t, "that has the queue now", "y:H!")
	y.leave()
	w.send("G H")
	w.expect(t, "nobody wants it alone", "plain:G! plain:H!")
}

func TestTheFirstDispatchWaitsForConsumersOrTime(t *testing.T) {
	w := newGroupWorld(func(e *policy.Entry) { e.Dispatch.ConsumersBeforeStart = 2 })
	w.send("m n")
	a := w.attach("a", 1, Traits{})
	w.expect(t, "one of two consumers", "")
	b := w.attach("b", 1, Traits{})
	w.expect(t, "two", "a:m! b:n!")
	a.leave()
	b.leave()
	w.send("o")
	w.attach("c", 1, Traits{})
	w.expect(t, "anew", "")
	w.env.advance(startWait)
	w.h.settle()
	w.expect(t, "a second later", "c:o!")

	w = newGroupWorld(func(e *policy.Entry) { e.Dispatch.TimeBeforeStart = time.Minute })
	w.send("m")
	w.attach("a", 1, Traits{})
	w.env.advance(59 * time.Second)
	w.h.settle()
	w.expect(t, "before the time", "")
	w.env.advance(time.Second)
	w.h.settle()
	w.expect(t, "at the time", "a:m!")
}
