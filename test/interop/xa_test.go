package interop

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// manager is a connection as a transaction manager has it: one XA session.
type manager struct {
	p    *program
	conn *jms.Conn
	*jms.Session
}

// manager opens one on a connection of its own.
func (p *program) manager(options string) *manager {
	p.t.Helper()
	c, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL() + options, XA: true})
	must(p.t, err)
	return &manager{p, c, c.Session(jms.XA)}
}

// do says what an operation of a branch of this run gives.
func (m *manager) do(op jms.XAOp, name string) {
	m.p.t.Helper()
	result, err := m.Branch(op, m.p.name+name)
	var e *jms.Error
	switch {
	case errors.As(err, &e):
		m.p.say("%s %s: %s %s", op, name, class(err), e.Text)
	case result != "":
		m.p.say("%s %s: %s", op, name, result)
	default:
		m.p.say("%s %s", op, name)
	}
}

// all runs several operations of one branch.
func (m *manager) all(name string, ops ...jms.XAOp) {
	m.p.t.Helper()
	for _, op := range ops {
		m.do(op, name)
	}
}

// prepared says which branches of this run are prepared.
func (m *manager) prepared() {
	m.p.t.Helper()
	names, err := m.Branch(jms.XARecover, "")
	must(m.p.t, err)
	var own []string
	for name := range strings.FieldsSeq(names) {
		if rest, ok := strings.CutPrefix(name, m.p.name); ok {
			own = append(own, rest)
		}
	}
	slices.Sort(own)
	m.p.say("prepared: %v", own)
}

func (m *manager) sends(dest, body string, n int) {
	m.p.t.Helper()
	m.Send(jms.SendOptions{Dest: dest, N: n, Body: body})
}

// sizes says what a queue's statistics tell.
func (p *program) sizes(label, queue string) {
	s := p.b.Queue(strings.TrimPrefix(queue, "queue://"))
	p.say("%s: size %d, in flight %d", label, s.Size, s.Flying)
}

// xaScenarios are about XA transactions.
var xaScenarios = []scenario{
	{"XA sends are seen from the commit on", func(p *program) {
		m, c := p.manager(""), p.pull(p.session(jms.Auto), p.queue(""))
		m.do(jms.XAStart, "1")
		m.sends(p.queue(""), "one{}", 2)
		m.do(jms.XAEnd, "1")
		p.none("before", c)
		m.do(jms.XACommit1, "1")
		p.got("one phase", c.Receive(2, patience))
		m.do(jms.XAStart, "2")
		m.sends(p.queue(""), "two{}", 2)
		m.all("2", jms.XAEnd, jms.XAPrepare)
		p.none("prepared", c)
		p.got("browsed", p.conn.Browse(p.queue(""), ""))
		m.prepared()
		m.do(jms.XACommit, "2")
		p.got("two phases", c.Receive(2, patience))
		m.prepared()
	}},
	{"XA rollbacks forget sends", func(p *program) {
		m := p.manager("")
		m.do(jms.XAStart, "1")
		m.sends(p.queue(""), "gone", 2)
		m.all("1", jms.XAEnd, jms.XARollback, jms.XACommit1)
		m.do(jms.XAStart, "2")
		m.sends(p.queue(""), "gone", 2)
		m.all("2", jms.XAEnd, jms.XAPrepare, jms.XARollback, jms.XACommit)
		m.do(jms.XAStart, "3")
		m.sends(p.queue(""), "m{}", 2)
		m.all("3", jms.XAEnd, jms.XAPrepare, jms.XACommit, jms.XACommit, jms.XARollback)
		p.got("taken", p.conn.Consumer(p.queue("")).Wait(2, patience))
	}},
	{"XA acknowledgements count from the commit on", func(p *program) {
		p.send(p.queue(""), 5)
		m := p.manager("")
		c := p.pull(m.Session, p.queue(""))
		m.do(jms.XAStart, "1")
		p.got("first", c.Receive(2, patience))
		m.sends(p.queue(".out"), "o{}", 2)
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.got("browsed", p.conn.Browse(p.queue(""), ""))
		p.sizes("prepared", p.queue(""))
		m.do(jms.XACommit, "1")
		p.got("left", p.conn.Browse(p.queue(""), ""))
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
		m.do(jms.XAStart, "2")
		p.got("second", c.Receive(1, patience))
		m.all("2", jms.XAEnd, jms.XACommit1)
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"an XA rollback delivers again in order", func(p *program) {
		p.send(p.queue(""), 4)
		m := p.manager("")
		c := p.pull(m.Session, p.queue(""))
		m.do(jms.XAStart, "1")
		p.got("first", c.Receive(3, patience))
		m.all("1", jms.XAEnd, jms.XARollback)
		m.do(jms.XAStart, "2")
		p.got("again", c.Receive(4, patience))
		m.all("2", jms.XAEnd, jms.XAPrepare, jms.XARollback)
		m.do(jms.XAStart, "3")
		p.got("and again", c.Receive(4, patience))
		m.all("3", jms.XAEnd, jms.XAPrepare, jms.XACommit)
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"a prepared branch outlives its connection", func(p *program) {
		p.send(p.queue(".in"), 3)
		m, other := p.manager("?jms.prefetchPolicy.all=1"), p.manager("")
		m.do(jms.XAStart, "1")
		p.got("in", p.pull(m.Session, p.queue(".in")).Receive(2, patience))
		m.sends(p.queue(".out"), "o{}", 2)
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.failed("close", m.conn.Close())
		in, out := p.pull(p.session(jms.Auto), p.queue(".in")), p.queue(".out")
		p.got("in, others", in.Receive(1, patience))
		p.none("in, more", in)
		p.got("out", p.conn.Browse(out, ""))
		other.prepared()
		other.do(jms.XACommit, "1")
		other.prepared()
		p.none("in, left", in)
		p.got("out", p.conn.Browse(out, ""))
	}},
	{"what a prepared branch took comes back", func(p *program) {
		p.send(p.queue(""), 3)
		m, other := p.manager("?jms.prefetchPolicy.all=1"), p.manager("")
		m.do(jms.XAStart, "1")
		p.got("in", p.pull(m.Session, p.queue("")).Receive(2, patience))
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.failed("close", m.conn.Close())
		other.prepared()
		other.do(jms.XARollback, "1")
		other.prepared()
		p.sizes("back", p.queue(""))
	}},
	{"an open branch ends with its connection", func(p *program) {
		p.send(p.queue(""), 3)
		m, other := p.manager(""), p.manager("")
		m.do(jms.XAStart, "1")
		p.got("in", p.pull(m.Session, p.queue("")).Receive(2, patience))
		m.sends(p.queue(".out"), "gone", 2)
		m.do(jms.XAEnd, "1")
		p.failed("close", m.conn.Close())
		other.prepared()
		other.all("1", jms.XACommit1, jms.XACommit, jms.XARollback)
		p.got("again", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
	}},
	{"XA steps out of their order", func(p *program) {
		m := p.manager("")
		m.all("unknown", jms.XAPrepare, jms.XACommit, jms.XACommit1, jms.XARollback, jms.XAForget)
		m.all("empty", jms.XAStart, jms.XAEnd, jms.XAPrepare, jms.XACommit)
		m.all("nothing", jms.XAStart, jms.XAEnd, jms.XACommit1)
		m.all("undone", jms.XAStart, jms.XAEnd, jms.XARollback, jms.XARollback)
		m.do(jms.XAStart, "1")
		m.sends(p.queue(""), "one", 1)
		m.all("1", jms.XAEnd, jms.XACommit, jms.XARollback)
		m.do(jms.XAStart, "2")
		m.sends(p.queue(""), "two", 1)
		m.all("2", jms.XAEnd, jms.XAPrepare, jms.XAPrepare, jms.XACommit1)
		m.do(jms.XAStart, "3")
		m.sends(p.queue(""), "gone", 1)
		m.all("3", jms.XAEnd, jms.XAPrepare, jms.XAForget, jms.XACommit)
		m.prepared()
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"branches are suspended and resumed", func(p *program) {
		m := p.manager("")
		m.do(jms.XAStart, "1")
		m.sends(p.queue(""), "one", 1)
		m.do(jms.XASuspend, "1")
		m.do(jms.XAStart, "2")
		m.sends(p.queue(""), "two", 1)
		m.do(jms.XAEnd, "2")
		m.do(jms.XAResume, "1")
		m.sends(p.queue(""), "three", 1)
		m.do(jms.XAEnd, "1")
		m.do(jms.XACommit1, "2")
		p.got("first", p.conn.Browse(p.queue(""), ""))
		m.all("1", jms.XAPrepare, jms.XACommit)
		p.got("second", p.conn.Browse(p.queue(""), ""))
	}},
	{"sessions join a branch", func(p *program) {
		p.send(p.queue(".in"), 2)
		m := p.manager("")
		same := &manager{p, m.conn, m.conn.Session(jms.XA)}
		far := p.manager("")
		m.do(jms.XAStart, "1")
		m.sends(p.queue(""), "one", 1)
		m.do(jms.XAEnd, "1")
		same.do(jms.XAJoin, "1")
		same.sends(p.queue(""), "two", 1)
		p.got("in", p.pull(same.Session, p.queue(".in")).Receive(2, patience))
		same.do(jms.XAEnd, "1")
		far.do(jms.XAJoin, "1")
		far.sends(p.queue(""), "three", 1)
		far.do(jms.XAEnd, "1")
		m.all("1", jms.XAPrepare)
		p.failed("close", far.conn.Close())
		m.do(jms.XACommit, "1")
		p.got("out", p.conn.Browse(p.queue(""), ""))
		p.got("in, left", p.conn.Browse(p.queue(".in"), ""))
	}},
	{"a durable subscription in a prepared branch", func(p *program) {
		url := p.b.URL() + "?jms.prefetchPolicy.all=1"
		c, err := p.d.Dial(jms.ConnectOptions{URL: url, ClientID: p.name + "r", XA: true})
		must(p.t, err)
		m, other := &manager{p, c, c.Session(jms.XA)}, p.manager("")
		o := p.durable(p.topic(""))
		o.Pull = true
		r := m.Consumer(o)
		other.do(jms.XAStart, "s")
		other.sends(p.topic(""), "m{}", 4)
		other.all("s", jms.XAEnd, jms.XAPrepare)
		p.none("before", r)
		other.do(jms.XACommit, "s")
		m.do(jms.XAStart, "1")
		p.got("first", r.Receive(2, patience))
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.failed("close", m.conn.Close())
		again := p.as("r")
		p.got("beside", again.Session(jms.Auto).Consumer(o).Receive(2, patience))
		must(p.t, again.Close())
		other.do(jms.XACommit, "1")
		again = p.as("r")
		p.none("left", again.Session(jms.Auto).Consumer(o))
	}},
	{"a durable subscription ends while a prepared branch has messages of it", func(p *program) {
		url := p.b.URL() + "?jms.prefetchPolicy.all=1"
		c, err := p.d.Dial(jms.ConnectOptions{URL: url, ClientID: p.name + "r", XA: true})
		must(p.t, err)
		m, other := &manager{p, c, c.Session(jms.XA)}, p.manager("")
		o := p.durable(p.topic(""))
		o.Pull = true
		r := m.Consumer(o)
		p.send(p.topic(""), 4)
		m.do(jms.XAStart, "1")
		p.got("first", r.Receive(2, patience))
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.failed("close", m.conn.Close())
		again := p.as("r")
		p.failed("unsubscribe", again.Session(jms.Auto).Unsubscribe("sub"))
		other.prepared()
		other.do(jms.XARollback, "1")
		p.none("begun anew", again.Session(jms.Auto).Consumer(o))
	}},
	{"what is not persistent is in a branch too", func(p *program) {
		m, other := p.manager(""), p.manager("")
		topic := p.conn.Consumer(p.topic(""))
		m.do(jms.XAStart, "1")
		m.Send(jms.SendOptions{Dest: p.queue(""), N: 2, Body: "np{}", NonPersistent: true})
		m.sends(p.topic(""), "t{}", 1)
		m.all("1", jms.XAEnd, jms.XAPrepare)
		p.failed("close", m.conn.Close())
		topic.Silent(200 * time.Millisecond)
		other.do(jms.XACommit, "1")
		p.got("out", p.conn.Browse(p.queue(""), ""))
		p.got("heard", topic.Wait(1, patience))
	}},
}

// TestAPreparedBranchOutlivesItsBroker compares a stop and a kill -9 between prepare and the
// outcome.
func TestAPreparedBranchOutlivesItsBroker(t *testing.T) {
	for _, kill := range []bool{true, false} {
		var said []string
		for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire} {
			b := broker.Start(t, k, broker.Options{Persistent: true, Policy: policy})
			d := jms.Start(t, jms.V5)
			p := &program{t: t, d: d, b: b, conn: d.Connect(b.URL()), name: "x"}
			outlive(p, kill)
			said = append(said, p.said.String())
		}
		if said[0] != said[1] {
			t.Errorf("kill %v: with a real ActiveMQ\n%swith hopwire\n%s", kill, said[0], said[1])
		}
		t.Logf("kill %v:\n%s", kill, said[1])
	}
}

func outlive(p *program, kill bool) {
	p.send(p.queue(".in"), 6)
	m := p.manager("?jms.prefetchPolicy.all=1")
	c := p.pull(m.Session, p.queue(".in"))
	for _, name := range []string{"commit", "rollback", "open"} {
		m.do(jms.XAStart, name)
		p.got(name, c.Receive(2, patience)[:2])
		m.sends(p.queue(".out"), name+"{}", 2)
		m.do(jms.XAEnd, name)
		if name != "open" {
			m.do(jms.XAPrepare, name)
		}
	}
	if kill {
		p.b.Kill9()
	} else {
		p.b.Stop()
	}
	p.b.Restart()
	p.conn, m = p.d.Connect(p.b.URL()), p.manager("")
	m.prepared()
	p.got("out", p.conn.Browse(p.queue(".out"), ""))
	p.bodies("in", p.conn.Browse(p.queue(".in"), ""))
	p.sizes("in", p.queue(".in"))
	p.sizes("out", p.queue(".out"))
	all := p.pull(p.session(jms.Auto), p.queue(".in"))
	p.bodies("in, others", all.Receive(2, patience))
	p.none("in, more", all)
	m.do(jms.XACommit, "open")
	m.do(jms.XACommit, "commit")
	p.got("out", p.conn.Browse(p.queue(".out"), ""))
	m.do(jms.XARollback, "rollback")
	p.bodies("in, back", all.Receive(2, patience))
	p.got("out", p.conn.Browse(p.queue(".out"), ""))
	m.prepared()
	p.none("in, left", all)
}

// bodies says what messages hold, and not whether they were here before: the real one forgets.
func (p *program) bodies(label string, messages []jms.Msg) {
	p.say("%s: %v", label, jms.Bodies(messages))
}
