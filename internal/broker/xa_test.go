package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
)

// xid names a branch by its number.
func xid(n int) message.TransactionID {
	return message.TransactionID{XA: true, FormatID: 77, Global: fmt.Sprint("g", n), Branch: "b"}
}

// step is one step of a branch; it gives the vote, the code of an XAException, or what else came.
func (g *guest) step(tx message.TransactionID, how message.TransactionType) string {
	n := g.hand(&message.TransactionInfo{Connection: g.id, ID: tx, Type: how})
	g.h.turn()
	return g.outcome(n, nil)
}

func (g *guest) outcome(n int32, e *message.Throwable) string {
	switch {
	case e == nil:
	case e.Class == "javax.transaction.xa.XAException":
		return e.Message[strings.LastIndex(e.Message, "xaErrorCode:")+len("xaErrorCode:"):]
	default:
		return e.Class
	}
	for _, s := range g.sent {
		r, ok := s.(*message.Response)
		switch {
		case !ok || r.Correlation != n:
		case r.Exception != nil:
			return g.outcome(n, r.Exception)
		case r.Shape == message.IntegerResponse:
			return fmt.Sprint("vote ", r.Result)
		default:
			return "ok"
		}
	}
	return "nothing"
}

// walk is steps of one branch that must give what is behind them.
func (g *guest) walk(tx message.TransactionID, steps ...any) {
	g.h.t.Helper()
	for i := 0; i < len(steps); i += 2 {
		how := steps[i].(message.TransactionType)
		if got := g.step(tx, how); got != steps[i+1] {
			g.h.t.Errorf("step %d of %s is answered with %s, want %s", how, tx, got, steps[i+1])
		}
	}
}

// sendTx sends message n in a transaction.
func (g *guest) sendTx(tx message.TransactionID, d message.Destination, n int64) {
	g.h.t.Helper()
	if e := g.trySendTx(tx, d, n); e != nil {
		g.h.t.Errorf("message %d in %s is answered with %v", n, tx, e)
	}
}

func (g *guest) trySendTx(tx message.TransactionID, d message.Destination,
	n int64) *message.Throwable {
	m := g.mail(string(g.id), d, n)
	m.Transaction = tx
	return g.do(m)
}

// recovered gives the ids that recovery tells.
func (g *guest) recovered() (ids []message.TransactionID) {
	g.do(&message.TransactionInfo{Connection: g.id, Type: message.Recover})
	for _, s := range g.sent {
		if r, ok := s.(*message.Response); ok && r.Correlation == g.number &&
			r.Shape == message.DataArrayResponse {
			ids = r.Array
		}
	}
	return ids
}

const (
	begin    = message.Begin
	end      = message.End
	prepare  = message.Prepare
	commit1  = message.CommitOnePhase
	commit2  = message.CommitTwoPhase
	rollback = message.Rollback
)

// branched is a house in which client c prepared a branch: it took 1 and 2 of the queue "in", sent
// 11 and 12 to "out", and 13 to the topic "T" of a durable subscription, of which it took 21.
func branched(t *testing.T) (*house, *reader) {
	h := open(t, nil, nil)
	s := h.subscribe("c", "s", "T", nil)
	h.publish("T", 21, 22)
	for n := range int64(3) {
		s.produce("c", queueNamed("in"), n+1)
	}
	c := s.window("c", queueNamed("in"), 2, "")
	s.walk(xid(1), begin, "ok")
	for n, d := range []message.Destination{queueNamed("out"), queueNamed("out"), topicNamed("T")} {
		s.sendTx(xid(1), d, int64(11+n))
	}
	for _, id := range s.got {
		if from := s.from[id]; from == topicNamed("T") && id.Sequence == 21 {
			s.ack(s.id, from, id, message.StandardAck, xid(1))
		} else if from != topicNamed("T") {
			s.ack(c, from, id, message.StandardAck, xid(1))
		}
	}
	s.walk(xid(1), end, "ok", prepare, "vote 0")
	return h, s
}

// seen gives what consumers get: of "in", of "out", and of the durable subscription.
func (h *house) seen() string { return strings.ReplaceAll(h.counted(), "*", "") }

// counted is seen with a star at what was redelivered.
func (h *house) counted() string {
	h.t.Helper()
	var out []string
	for _, q := range []string{"in", "out"} {
		g := h.connect("seer", "seer", "", nil)
		g.window("seer", queueNamed(q), 100, "")
		out = append(out, numbers(g))
		g.do(&message.RemoveInfo{Object: message.ConnectionID("seer"),
			LastDelivered: message.LastDeliveredUnset})
		g.Gone()
		h.turn()
	}
	r := h.subscribe("c", "s", "T", nil)
	out = append(out, numbers(r.guest))
	r.leave()
	return strings.Join(out, "; ")
}

func numbers(g *guest) string {
	var out []string
	for i, id := range g.got {
		text := fmt.Sprint(id.Sequence)
		if g.counts[i] > 0 {
			text += "*"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// sorted gives what was seen without its order.
func sorted(seen string) string {
	lists := strings.Split(seen, "; ")
	for i, list := range lists {
		one := strings.Fields(list)
		slices.Sort(one)
		lists[i] = strings.Join(one, " ")
	}
	return strings.Join(lists, "; ")
}

// over fails when anything of a branch is left.
func (h *house) over(what string) {
	h.t.Helper()
	if n := len(h.b.xa.branches) + len(h.b.xa.prepared) + len(h.b.xa.preparing); n != 0 {
		h.t.Errorf("%s: %d branches are left", what, n)
	}
	for _, x := range h.headersOf(false) {
		if x.Prepared != nil {
			h.t.Errorf("%s: branch %s is left in the store", what, x.Prepared.ID)
		}
	}
	for _, c := range slices.Clone(h.b.connOrder) {
		c.Gone()
	}
	h.turn()
	if err := h.balance(); err != nil {
		h.t.Errorf("%s: %v", what, err)
	}
}

// goAway closes a client's connection, if it still has one, so that what it had is not redelivered.
func (r *reader) goAway() {
	r.hand(&message.RemoveInfo{Object: r.Connection.id, LastDelivered: message.LastDeliveredUnset})
	r.Gone()
	r.h.turn()
}

func TestAPreparedBranchWaitsForItsOutcome(t *testing.T) {
	for _, way := range []string{"at once", "its connection goes", "stop", "kill", "kill twice"} {
		for _, commits := range []bool{true, false} {
			h, c := branched(t)
			what := fmt.Sprintf("%s, commit %v", way, commits)
			switch way {
			case "stop":
				c.goAway()
				h.stop()
				h = h.again()
			case "kill", "kill twice":
				h = h.again()
				if way == "kill twice" {
					h = h.again()
				}
			case "its connection goes":
				c.goAway()
			}
			m := h.connect("m", "m", "", nil)
			if ids := m.recovered(); !slices.Equal(ids, []message.TransactionID{xid(1)}) {
				t.Errorf("%s: recovered %v", what, ids)
			}
			for q, want := range map[string]int64{"in": 3, "out": 0} {
				d := h.b.find(queueNamed(q))
				if d != nil && d.queue.Len()+d.queue.Withheld() != want {
					t.Errorf("%s: %d messages are in %s, want %d", what, d.queue.Len(), q, want)
				}
				if e := m.do(&message.DestinationInfo{Destination: queueNamed(q), Timeout: 1,
					Op: message.RemoveDestination}); (e != nil) != (q == "in") {
					t.Errorf("%s: the removal of %s is answered with %v", what, q, e)
				}
			}
			if way != "at once" {
				if got := h.seen(); got != "3; ; 22" {
					t.Errorf("%s: before the outcome clients get %q", what, got)
				}
			}
			if commits {
				m.walk(xid(1), commit2, "ok", commit2, "-4")
			} else {
				m.walk(xid(1), rollback, "ok", rollback, "-4")
			}
			c.goAway()
			if ids := m.recovered(); len(ids) != 0 {
				t.Errorf("%s: recovered %v after the outcome", what, ids)
			}
			want := "3; 11 12; 13 22"
			if !commits {
				want = "1 2 3; ; 21 22"
			}
			for _, when := range []string{"after", "and after a restart"} {
				if got := sorted(h.seen()); got != want {
					t.Errorf("%s: %s the outcome clients get %q, want %q", what, when, got, want)
				}
				h.over(what)
				h = h.again()
			}
		}
	}
}

// TestACrashLeavesABranchWholeOrNot crashes at every moment of a prepare and an outcome.
func TestACrashLeavesABranchWholeOrNot(t *testing.T) {
	for _, commits := range []bool{true, false} {
		h, c := branched(t)
		c.walk(xid(2), begin, "ok")
		c.sendTx(xid(2), queueNamed("out"), 31)
		c.sendTx(xid(2), queueNamed("out"), 32)
		how := message.CommitTwoPhase
		if !commits {
			how = message.Rollback
		}
		for _, s := range []struct {
			tx  message.TransactionID
			how message.TransactionType
		}{{xid(2), prepare}, {xid(1), how}, {xid(2), how}} {
			c.number++
			cmd := &message.TransactionInfo{Connection: "c", ID: s.tx, Type: s.how}
			cmd.CommandID, cmd.ResponseRequired = c.number, true
			c.Handle(cmd)
			for more := true; more; more = h.step() {
				answered := c.answered(c.number)
				x := h.again()
				x.wholeOrNot(s.tx, s.how, answered)
			}
		}
	}
}

// wholeOrNot checks a house after a crash: what is there of branches 1 and 2, of which one was
// asked to take a step.
func (h *house) wholeOrNot(tx message.TransactionID, how message.TransactionType, answered bool) {
	h.t.Helper()
	m := h.connect("m", "m", "", nil)
	is := slices.Contains(m.recovered(), tx)
	if answered && is != (how == prepare) {
		h.t.Errorf("step %d of %s was answered, and it is prepared: %v", how, tx, is)
	}
	for _, id := range m.recovered() {
		m.walk(id, commit2, "ok")
	}
	want := "11 12"
	if tx == xid(2) {
		want = "31 32"
	}
	got := h.seen()
	in := strings.Contains(got, want)
	switch {
	case !in && (strings.Contains(got, want[:2]) || strings.Contains(got, want[3:])):
		h.t.Errorf("half of %s is there: %s", tx, got)
	case is && !in:
		h.t.Errorf("%s was prepared and committed, and there is %s", tx, got)
	case answered && how == rollback && in:
		h.t.Errorf("%s was rolled back and there is %s", tx, got)
	case answered && how == commit2 && !in:
		h.t.Errorf("%s was committed and there is %s", tx, got)
	}
	h.over("after a crash")
}

func TestXAStepsOutOfOrderAreRefused(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	q := queueNamed("q")
	g.walk(xid(1), commit1, "-4", commit2, "-4", rollback, "-4", message.Forget, "-4", end, "ok",
		prepare, "java.lang.IllegalStateException")
	g.walk(xid(1), begin, "ok", begin, "ok", prepare, "vote 3", commit2, "-4")
	g.walk(xid(1), begin, "ok", commit1, "ok", rollback, "-4")
	g.walk(xid(1), begin, "ok", rollback, "ok", rollback, "-4")
	g.walk(xid(1), begin, "ok")
	g.sendTx(xid(1), q, 1)
	g.walk(xid(1), begin, "ok", commit2, "-6", message.TransactionType(9), "-5", commit1, "ok")
	g.walk(xid(2), begin, "ok")
	g.sendTx(xid(2), q, 2)
	g.walk(xid(2), prepare, "vote 0", prepare, "vote 0", begin, "ok")
	if e := g.trySendTx(xid(2), q, 3); e == nil || !strings.HasSuffix(e.Message, "xaErrorCode:-6") {
		t.Errorf("a send in a prepared branch is answered with %v", e)
	}
	g.walk(xid(2), message.Forget, "ok", commit2, "-4")
	if e := g.trySendTx(xid(2), q, 3); e == nil || !strings.HasSuffix(e.Message, "xaErrorCode:-4") {
		t.Errorf("a send in no branch is answered with %v", e)
	}
	if n := h.b.find(q).queue.Len(); n != 1 {
		t.Errorf("%d messages are there, want 1", n)
	}
	h.over("all is over")
}

func TestXABranchesAreBounded(t *testing.T) {
	h := open(t, nil, nil)
	var g *guest
	for n := range maxBranches {
		if n%maxTransactions == 0 {
			id := fmt.Sprint("g", n)
			g = h.connect(id, id, "", nil)
		}
		c := &message.TransactionInfo{Connection: g.id, ID: xid(n), Type: message.Begin}
		g.Handle(c)
	}
	g.walk(xid(maxBranches), begin, "-3")
	g.walk(xid(1), begin, "ok")
	for range 3 {
		for _, c := range slices.Clone(h.b.connOrder) {
			c.Gone()
		}
	}
	g = h.connect("g", "g", "", nil)
	long := xid(1)
	long.Branch = strings.Repeat("b", maxXidBytes+1)
	g.walk(long, begin, "-5")
	for n := range maxTransactions {
		g.Handle(&message.TransactionInfo{Connection: "g", ID: xid(n), Type: message.Begin})
	}
	g.walk(xid(maxTransactions), begin, "-3")
	if n := h.b.counts.Reasons[message.TransactionLimit]; n != 2 {
		t.Errorf("%d refusals are counted, want 2", n)
	}
	g.Gone()
	h.over("all are gone")
}

func TestAnOpenBranchEndsWithWhoBeganIt(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	a, b := h.connect("a", "a", "", nil), h.connect("b", "b", "", nil)
	for n := range int64(2) {
		a.produce("a", q, n+1)
	}
	a.walk(xid(1), begin, "ok")
	b.walk(xid(1), begin, "ok")
	c := b.consume("b", q)
	b.ack(c, q, b.got[0], message.StandardAck, xid(1))
	b.sendTx(xid(1), queueNamed("out"), 3)
	b.do(&message.RemoveInfo{Object: message.ConnectionID("b"),
		LastDelivered: message.LastDeliveredUnset})
	b.Gone()
	h.turn()
	if n := h.b.find(q).queue.Pending(); n != 1 {
		t.Errorf("%d messages wait while a branch has the other", n)
	}
	a.Gone()
	h.turn()
	if got := h.connect("m", "m", "", nil).step(xid(1), commit1); got != "-4" {
		t.Errorf("the commit of what is gone is answered with %s", got)
	}
	if got := h.counts(q); !slices.Equal(got, []int32{0, 1}) && !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("messages come with the counts %v", got)
	}
	h.over("its connection is gone")
}

func TestAClientThatFailsOverMaySendAPreparedBranchAgain(t *testing.T) {
	h, _ := branched(t)
	g := &guest{h: h}
	g.Connection = h.b.Connect(g, Remote{Address: "test"}, nil)
	g.do(&message.ConnectionInfo{ID: "c", ClientID: "c", FailoverReconnect: true})
	g.do(&message.SessionInfo{ID: message.SessionID{Connection: "c", Value: 1}})
	g.walk(xid(1), begin, "ok")
	if e := g.trySendTx(xid(1), queueNamed("out"), 11); e != nil {
		t.Errorf("a send that is repeated is answered with %v", e)
	}
	c := g.consume("c", queueNamed("in"))
	g.ack(c, queueNamed("in"), message.MessageID{Sequence: 1}, message.StandardAck, xid(1))
	g.walk(xid(1), prepare, "vote 0", commit2, "ok")
	g.Gone()
	h.turn()
	if got := sorted(h.seen()); got != "3; 11 12; 13 22" {
		t.Errorf("clients get %s", got)
	}
	h.over("it is committed")
}

func TestWhatComesWhileABranchIsBeingEndedWaits(t *testing.T) {
	h := open(t, nil, nil)
	g, q := h.connect("g", "g", "", nil), queueNamed("q")
	g.walk(xid(1), begin, "ok")
	g.sendTx(xid(1), q, 1)
	at := g.number
	for _, how := range []message.TransactionType{prepare, prepare, commit2, commit2, rollback} {
		g.number++
		c := &message.TransactionInfo{Connection: "g", ID: xid(1), Type: how}
		c.CommandID, c.ResponseRequired = g.number, true
		g.Handle(c)
	}
	h.turn()
	var got []string
	for n := at + 1; n <= g.number; n++ {
		got = append(got, g.outcome(n, nil))
	}
	if want := []string{"vote 0", "vote 0", "ok", "ok", "-4"}; !slices.Equal(got, want) {
		t.Errorf("answered with %v, want %v", got, want)
	}
	g.walk(xid(2), begin, "ok")
	g.sendTx(xid(2), q, 2)
	for range laterMost + 5 {
		c := &message.TransactionInfo{Connection: "g", ID: xid(2), Type: prepare}
		c.CommandID, c.ResponseRequired = 9999, true
		g.Handle(c)
	}
	if got := g.outcome(9999, nil); got != "-6" {
		t.Errorf("the %dth command is answered with %s", laterMost+2, got)
	}
	h.turn()
	g.walk(xid(2), rollback, "ok")
	h.over("all is over")
}
