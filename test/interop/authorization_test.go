package interop

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// rights are users and what they may do. The names of destinations begin with who may what.
const rights = `<simpleAuthenticationPlugin><users>` +
	`<authenticationUser username="boss" password="p" groups="admins"/>` +
	`<authenticationUser username="alice" password="p" groups="users, temps"/>` +
	`<authenticationUser username="carol" password="p" groups="users"/>` +
	`<authenticationUser username="lone" password="p"/>` +
	`<authenticationUser username="deaf" password="p" groups="deaf"/>` +
	`</users></simpleAuthenticationPlugin>` +
	`<authorizationPlugin><map><authorizationMap><authorizationEntries>` +
	`<authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>` +
	`<authorizationEntry topic=">" read="admins" write="admins" admin="admins"/>` +
	`<authorizationEntry queue="USERS.>" read="users,deaf" write="users,deaf" admin="users,deaf"/>` +
	`<authorizationEntry topic="USERS.>" read="users" write="users" admin="users"/>` +
	`<authorizationEntry queue="READ.>" read="nobody, users"/>` +
	`<authorizationEntry queue="WRITE.>" write="users"/>` +
	`<authorizationEntry queue="MAKE.>" admin="users"/>` +
	`<authorizationEntry queue="UNION.>" read="users"/>` +
	`<authorizationEntry queue="UNION.>" write="users"/>` +
	`<authorizationEntry queue="UNION.*.>" admin="users"/>` +
	`<authorizationEntry queue="ANY.>" read="*" write="*" admin="*"/>` +
	`<authorizationEntry queue="CLASS.>" read="users,carol" ` +
	`groupClass="org.apache.activemq.jaas.UserPrincipal" write="users,carol" admin="*"/>` +
	`<authorizationEntry topic="ActiveMQ.Advisory.>" read="users" write="users" ` +
	`admin="users,deaf"/>` +
	`</authorizationEntries><tempDestinationAuthorizationEntry>` +
	`<tempDestinationAuthorizationEntry read="temps" write="temps" admin="temps"/>` +
	`</tempDestinationAuthorizationEntry></authorizationMap></map></authorizationPlugin>`

// TestAJMSProgramIsRefusedAsByActiveMQ compares with transcripts as
// TestAJMSProgramSeesWhatItSeesOfActiveMQ does.
func TestAJMSProgramIsRefusedAsByActiveMQ(t *testing.T) {
	o := broker.Options{Persistent: true, Plugins: rights}
	eachKind(t, func(t *testing.T, k broker.Kind) {
		playAll(t, broker.Start(t, k, o), playGuarded, refusedScenarios)
	})
	o.Compat = 6
	t.Run("hopwire at level 6", func(t *testing.T) {
		playAll(t, broker.Start(t, broker.Hopwire, o), playGuarded, refusedScenarios)
	})
}

func playGuarded(p *program, s scenario) {
	p.conn = p.user("alice", "")
	s.play(p)
	p.compare("authorization", s,
		unnamed.ReplaceAllString(strings.ReplaceAll(p.said.String(), p.name, "NAME"), "ID"))
}

// unnamed are the names of temporary destinations, and ids.
var unnamed = regexp.MustCompile(`ID:[-.:\w]+`)

// user connects as a user; more is behind the broker's address.
func (p *program) user(name, more string) *jms.Conn {
	p.t.Helper()
	c, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL() + more, User: name, Password: "p"})
	must(p.t, err)
	return c
}

// of is a queue of this run that users have a right to.
func (p *program) of(right, suffix string) string {
	return "queue://" + right + "." + p.name + suffix
}

// why says an exception with its text.
func (p *program) why(what string, err error) {
	text := ""
	if e, ok := errors.AsType[*jms.Error](err); ok {
		text = " " + e.Text
	}
	p.say("%s: %s%s", what, class(err), text)
}

// tries says what becomes of a consumer, a producer, a send and a browser.
func (p *program) tries(conn *jms.Conn, dest string) {
	s := conn.Session(jms.Auto)
	c, err := s.TryConsumer(jms.ConsumerOptions{Dest: dest})
	p.why("consume "+dest, err)
	if err == nil {
		must(p.t, c.Close())
	}
	_, err = s.TrySend(jms.SendOptions{Dest: dest, Body: "x"})
	p.why("produce "+dest, err)
	_, err = s.TrySend(jms.SendOptions{Dest: dest, Body: "x", Anonymous: true})
	p.why("send "+dest, err)
}

// made has the boss make queues.
func (p *program) made(dests ...string) {
	boss := p.user("boss", "")
	for _, d := range dests {
		boss.Send(d, 1, "boss")
	}
	must(p.t, boss.Close())
}

// refusedScenarios are about what a user may not do.
var refusedScenarios = []scenario{
	{"who may do everything and who nothing", func(p *program) {
		p.tries(p.conn, p.of("USERS", ""))
		p.tries(p.conn, p.of("SECRET", ""))
		p.made(p.of("SECRET", ""))
		p.tries(p.conn, p.of("SECRET", ""))
		p.tries(p.conn, "topic://USERS."+p.name)
		p.tries(p.conn, "topic://SECRET."+p.name)
		p.tries(p.user("boss", ""), p.of("SECRET", ""))
	}},
	{"each right by itself", func(p *program) {
		for _, right := range []string{"READ", "WRITE", "MAKE", "UNION", "ANY", "CLASS"} {
			p.tries(p.conn, p.of(right, ""))
		}
		p.made(p.of("READ", ""), p.of("WRITE", ""))
		for _, right := range []string{"READ", "WRITE"} {
			p.tries(p.conn, p.of(right, ""))
		}
		p.tries(p.user("lone", "?jms.watchTopicAdvisories=false"), p.of("ANY", ""))
	}},
	{"a refused connection goes on", func(p *program) {
		s := p.session(jms.Auto)
		_, err := s.TrySend(jms.SendOptions{Dest: p.of("SECRET", ""), Body: "x"})
		p.why("refused", err)
		s.Send(jms.SendOptions{Dest: p.of("USERS", ""), Body: "y"})
		p.got("got", p.conn.Consumer(p.of("USERS", "")).Wait(1, patience))
	}},
	{"patterns of consumers", func(p *program) {
		for _, pattern := range []string{">", "SECRET.>", "SECRET." + p.name + ".*", "SECRET.*.mix",
			"*.mix", "READ.>", "WRITE.>", "*." + p.name + ".*"} {
			c, err := p.session(jms.Auto).TryConsumer(jms.ConsumerOptions{Dest: "queue://" + pattern})
			p.why(pattern, err)
			if err == nil {
				must(p.t, c.Close())
			}
		}
		p.made(p.of("READ", ".mix"), p.of("SECRET", ".mix"))
		c := p.conn.Consumer("queue://*." + p.name + ".mix")
		p.got("what was there", p.calm(c))
		p.made(p.of("SECRET", ".mix"), p.of("READ", ".mix"), p.of("WRITE", ".mix"))
		p.got("and came", p.calm(c)[1:])
		boss := p.user("boss", "")
		p.got("left", boss.Browse(p.of("SECRET", ".mix"), ""))
	}},
	{"several destinations at once", func(p *program) {
		p.made(p.of("SECRET", ""))
		p.tries(p.conn, p.of("USERS", ".a")+","+p.of("USERS", ".b"))
		p.tries(p.conn, p.of("USERS", ".a")+","+p.of("SECRET", ""))
		p.got("a", p.conn.Browse(p.of("USERS", ".a"), ""))
	}},
	{"browsers", func(p *program) {
		p.made(p.of("READ", ""), p.of("SECRET", ""), p.of("WRITE", ""))
		p.got("may", p.conn.Browse(p.of("READ", ""), ""))
		for _, right := range []string{"SECRET", "WRITE"} {
			_, err := p.conn.TryBrowse(p.of(right, ""), "")
			p.why(right, err)
		}
	}},
	{"durable subscriptions", func(p *program) {
		c, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL(), User: "alice", Password: "p",
			ClientID: p.name})
		must(p.t, err)
		s := c.Session(jms.Auto)
		for _, right := range []string{"SECRET", "USERS"} {
			sub, err := s.TryConsumer(jms.ConsumerOptions{Dest: "topic://" + right + "." + p.name,
				Durable: right})
			p.why("subscribe "+right, err)
			if err == nil {
				must(p.t, sub.Close())
			}
			p.why("unsubscribe "+right, s.Unsubscribe(right))
		}
	}},
	{"temporary destinations", func(p *program) {
		for _, topic := range []bool{false, true} {
			_, err := p.session(jms.Auto).Temporary(topic)
			p.why("alice makes one", err)
			_, err = p.user("carol", "").Session(jms.Auto).Temporary(topic)
			p.why("carol makes one", err)
		}
		temp, err := p.session(jms.Auto).Temporary(false)
		must(p.t, err)
		carol := p.user("carol", "").Session(jms.Auto)
		_, err = carol.TrySend(jms.SendOptions{Dest: temp, Body: "x"})
		p.why("carol answers", err)
		_, err = carol.TryConsumer(jms.ConsumerOptions{Dest: temp})
		p.why("carol listens", err)
		p.session(jms.Auto).Send(jms.SendOptions{Dest: temp, Body: "y"})
		p.got("alice", p.conn.Consumer(temp).Wait(1, patience))
	}},
	{"transactions", func(p *program) {
		p.made(p.of("SECRET", ""))
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.of("USERS", ""), Body: "in"})
		_, err := s.TrySend(jms.SendOptions{Dest: p.of("SECRET", ""), Body: "x"})
		p.why("produce", err)
		p.why("commit", s.Commit())
		p.got("users", p.conn.Browse(p.of("USERS", ""), ""))
		s.Send(jms.SendOptions{Dest: p.of("USERS", ""), Body: "in"})
		_, err = s.TrySend(jms.SendOptions{Dest: p.of("SECRET", ""), Body: "x", Anonymous: true})
		p.why("send", err)
		fault := p.conn.WaitFault(patience)
		p.say("listener: %s %s", class(fault), fault.Text)
		p.say("committed: %t", s.Commit() == nil)
		p.got("users", p.conn.Browse(p.of("USERS", ""), ""))
	}},
	{"sends that ask for no answer", func(p *program) {
		p.made(p.of("SECRET", ""))
		s := p.session(jms.Auto)
		_, err := s.TrySend(jms.SendOptions{Dest: p.of("SECRET", ""), Body: "x", Anonymous: true,
			NonPersistent: true})
		p.why("send", err)
		fault := p.conn.WaitFault(patience)
		p.say("listener: %s %s", class(fault), fault.Text)
		s.Send(jms.SendOptions{Dest: p.of("USERS", ""), Body: "y"})
		p.got("users", p.conn.Browse(p.of("USERS", ""), ""))
	}},
	{"advisories", func(p *program) {
		p.tries(p.conn, "topic://ActiveMQ.Advisory.Queue")
		_, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL(), User: "deaf", Password: "p"})
		p.why("who may not hear advisories", err)
		deaf, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL() + "?jms.watchTopicAdvisories=false",
			User: "deaf", Password: "p"})
		p.why("who does not want them", err)
		must(p.t, err)
		p.tries(deaf, "topic://ActiveMQ.Advisory.Queue")
		p.tries(deaf, "topic://ActiveMQ.Advisory.Consumer.>")
		p.tries(deaf, p.of("USERS", ""))
	}},
}
