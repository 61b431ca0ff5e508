package interop

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/need"
)

var update = flag.Bool("update", false, "write testdata anew from what a real ActiveMQ does")

// patience bounds every wait for something that must come.
const patience = 20 * time.Second

// scenario is what one JMS program does with one broker. What it says must be the same with a real
// ActiveMQ, with hopwire, and with both generations of the client.
type scenario struct {
	name string
	play func(*program)
}

// alone are the scenarios that no other may run beside, since they look at the whole broker.
var alone = map[string]bool{
	"destinations and connections are advised of": true,
	"the last image of the master is kept":        true,
	"browsers":                                    true,
	"patterns of consumers":                       true,
}

// better tells of the scenarios in which a real ActiveMQ should not be followed what Hopwire does
// instead; they have a transcript for each.
var better = map[string]string{
	"a client acknowledges all queues of its session": "" +
		"what the application saw is told as redelivered, of whichever queue",
	"a transaction of several queues": "" +
		"what the application saw is told as redelivered, of whichever queue",
	"a composite is sent to several queues of one consumer": "" +
		"a range of copies of one id ends at the right one, and none comes back",
	"a composite is sent to several topics of one consumer": "all come",
	"composites have parts that are not there": "" +
		"a send to no destination at all is refused, and not lost without a word",
	"a temporary destination is deleted": "only its own connection may do so",
	"a slow consumer of a queue is aborted": "" +
		"one that is full while more waits is slow; ActiveMQ finds topics' alone",
	"a transaction of a consumer that is aborted": "" +
		"what comes again was not committed, and what was sent for it is taken back",
	"policies tell of a queue's slow consumers": "" +
		"one that is full while more waits is slow, as with ActiveMQ 6; 5.17 finds topics' alone",
	"queues and topics of one consumer are acknowledged": "" +
		"it is a consumer of all its members, not only of those of the kind of the first",
}

// program is one run of a scenario.
type program struct {
	t    *testing.T
	d    *jms.Driver
	b    *broker.Broker
	conn *jms.Conn
	name string
	said strings.Builder

	model broker.Kind // whose transcripts the others are compared with
}

// policy is that of all brokers of these scenarios.
const policy = `<policyEntry queue=">" expireMessagesPeriod="300"/>` + recoveryPolicies +
	deadPolicies + narrowPolicies + pendingPolicies

// TestAJMSProgramSeesWhatItSeesOfActiveMQ compares with transcripts that -update writes from a run
// with a real ActiveMQ and the client 5.17, and with hopwire where that does better.
func TestAJMSProgramSeesWhatItSeesOfActiveMQ(t *testing.T) {
	eachKind(t, func(t *testing.T, k broker.Kind) {
		b := broker.Start(t, k, broker.Options{Persistent: true, Policy: policy, Elements: declared})
		all := slices.Concat(queueScenarios, optionScenarios, destinationScenarios,
			redeliveryScenarios, messageScenarios, advisoryScenarios, transactionScenarios,
			durableScenarios, ownerScenarios, xaScenarios, otherScenarios)
		if k != broker.ActiveMQ6 || need.Soaks() {
			all = slices.Concat(all, nameScenarios, flowScenarios, endScenarios, spanScenarios,
				topicSpanScenarios, retroactiveScenarios, pendingScenarios)
		}
		playAll(t, b, play, all)
	})
}

// atATime is how many programs run beside each other, whatever -parallel says: they mostly wait.
const atATime = 8

// playAll plays scenarios with both generations of the client, several at a time, and then those
// that look at the whole broker. One scenario's generations play one after the other, since the
// topics of one policy may share what they keep.
func playAll(t *testing.T, b *broker.Broker, play func(*program, scenario), all []scenario) {
	versions := []jms.Version{jms.V5, jms.V6}
	if b.Newer() {
		versions = versions[1:] // the older client knows no exceptions of the newer broker
	}
	run := func(s scenario) {
		for _, v := range versions {
			t.Run(v.String()+"/"+s.name, func(t *testing.T) {
				name := v.String() + "." + strings.ReplaceAll(s.name, " ", "-")
				play(&program{t: t, d: jms.Start(t, v), b: b.For(t), name: name}, s)
			})
		}
	}
	parts := make(chan scenario)
	var players sync.WaitGroup
	for range atATime {
		players.Go(func() {
			for s := range parts {
				run(s)
			}
		})
	}
	for _, s := range all {
		if !alone[s.name] {
			parts <- s
		}
	}
	close(parts)
	players.Wait()
	for _, s := range all {
		if alone[s.name] {
			run(s)
		}
	}
}

func play(p *program, s scenario) {
	p.conn = p.d.Connect(p.b.URL())
	s.play(p)
	p.compare("clients", s, strings.ReplaceAll(p.said.String(), p.name, "NAME"))
}

// transcript is the file with what the broker says in a scenario, and the one that ActiveMQ 6 has
// where it differs from that.
func (p *program) transcript(folder string, s scenario) (file, newer string) {
	base := filepath.Join("testdata", folder, strings.ReplaceAll(s.name, " ", "-"))
	if better[s.name] != "" && p.b.Kind().Real() {
		return base + ".activemq.txt", base + ".activemq6.txt"
	}
	return base + ".txt", base + ".activemq6.txt"
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// compare compares what was said with a transcript, or writes it: the model's, and that of each
// broker that does better or otherwise. A run that writes compares nothing.
func (p *program) compare(folder string, s scenario, got string) {
	p.t.Helper()
	file, newer := p.transcript(folder, s)
	follows := p.b.Newer() && p.model != broker.ActiveMQ6
	if *update {
		switch {
		case follows:
			if p.b.Kind() == broker.ActiveMQ6 {
				p.differs(file, newer, got)
			}
		case (p.b.Kind() == p.model || better[s.name] != "") && p.d.Version() == p.writes():
			must(p.t, os.WriteFile(file, []byte(got), 0o644))
		}
		return
	}
	if follows && exists(newer) {
		file = newer
	}
	want, err := os.ReadFile(file)
	must(p.t, err)
	if got != string(want) {
		p.t.Errorf("it says\n%sbut %s has\n%s", got, file, want)
	}
}

// writes is the client whose transcripts are kept: that of the broker's generation.
func (p *program) writes() jms.Version {
	if p.model == broker.ActiveMQ6 {
		return jms.V6
	}
	return jms.V5
}

// differs writes a transcript of ActiveMQ 6, if it is not the same as the older one's.
func (p *program) differs(file, newer, got string) {
	p.t.Helper()
	same, err := os.ReadFile(file)
	must(p.t, err)
	if got != string(same) {
		must(p.t, os.WriteFile(newer, []byte(got), 0o644))
	} else if exists(newer) {
		must(p.t, os.Remove(newer))
	}
}

// queue and topic are destinations of this run alone.
func (p *program) queue(suffix string) string { return "queue://" + p.name + suffix }
func (p *program) topic(suffix string) string { return "topic://" + p.name + suffix }

func (p *program) say(format string, args ...any) {
	fmt.Fprintf(&p.said, format+"\n", args...)
}

// got says what messages are like, one a line.
func (p *program) got(label string, messages []jms.Msg) {
	p.say("%s: %d", label, len(messages))
	for _, m := range messages {
		line := "  " + m.Body
		if m.Kind != "text" {
			line += " kind=" + m.Kind
		}
		if m.Redelivered {
			line += " redelivered"
		}
		if n := m.Prop("JMSXDeliveryCount"); n != "" && n != "1" { // 5.17 leaves out the first
			line += " delivery=" + n
		}
		if m.Priority != 4 {
			line += fmt.Sprintf(" priority=%d", m.Priority)
		}
		p.say("%s", line)
	}
}

// failed says the short class of an exception; the two generations differ by its package.
func (p *program) failed(what string, err error) { p.say("%s: %s", what, class(err)) }

func class(err error) string {
	var e *jms.Error
	switch {
	case err == nil:
		return "no exception"
	case errors.As(err, &e):
		return e.Class[strings.LastIndexByte(e.Class, '.')+1:]
	}
	return err.Error()
}

// session, consumer and send are short for the usual.
func (p *program) session(mode jms.Mode) *jms.Session { return p.conn.Session(mode) }

func (p *program) send(dest string, n int) []string { return p.conn.Send(dest, n, "m{}") }

// pull opens a consumer that is asked for each message.
func (p *program) pull(s *jms.Session, dest string) *jms.Consumer {
	return s.Consumer(jms.ConsumerOptions{Dest: dest, Pull: true})
}

// one asks a consumer for one message, which must come.
func (p *program) one(c *jms.Consumer) jms.Msg {
	p.t.Helper()
	got := c.Receive(1, patience)
	if len(got) == 0 {
		p.t.Fatal("no message came")
	}
	return got[0]
}

// none says whether a consumer that is asked gets nothing.
func (p *program) none(label string, c *jms.Consumer) {
	p.got(label, c.Receive(1, 300*time.Millisecond))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
