package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// decisions is what a transaction manager has on its disk: the branches that are to be committed.
type decisions struct {
	sync.Mutex
	commit map[string]bool
}

func (d *decisions) has(name string) bool {
	d.Lock()
	defer d.Unlock()
	return d.commit[name]
}

// move takes messages of one queue to another, each in a branch of its own, until there are none or
// the broker is gone. It gives how many branches it committed.
func (d *decisions) move(s *jms.Session, in *jms.Consumer, prefix string) (n int) {
	for ; ; n++ {
		name := fmt.Sprint(prefix, "-", n)
		step := func(op jms.XAOp) (string, bool) {
			vote, err := s.Branch(op, name)
			return vote, err == nil
		}
		if _, ok := step(jms.XAStart); !ok {
			return n
		}
		got, err := in.TryReceive(1, 300*time.Millisecond)
		if err != nil {
			return n
		}
		if len(got) == 0 {
			step(jms.XAEnd)
			step(jms.XARollback)
			return n
		}
		if _, err := s.TrySend(jms.SendOptions{Dest: "queue://B", Body: got[0].Body}); err != nil {
			return n
		}
		if _, ok := step(jms.XAEnd); !ok {
			return n
		}
		if vote, ok := step(jms.XAPrepare); !ok || vote != "0" {
			return n
		}
		d.Lock()
		d.commit[name] = true
		d.Unlock()
		if _, ok := step(jms.XACommit); !ok {
			return n
		}
	}
}

// recover ends what is prepared as was decided, and gives how many it committed and rolled back.
func (d *decisions) recover(t *testing.T, s *jms.Session) (ends [2]int) {
	names, err := s.Branch(jms.XARecover, "")
	must(t, err)
	for name := range strings.FieldsSeq(names) {
		op, i := jms.XARollback, 1
		if d.has(name) {
			op, i = jms.XACommit, 0
		}
		_, err := s.Branch(op, name)
		must(t, err)
		ends[i]++
	}
	return ends
}

// TestMessagesMoveOnceByXAHoweverOftenTheBrokerIsKilled kills it while three clients move messages
// in XA transactions, at moments by chance.
func TestMessagesMoveOnceByXAHoweverOftenTheBrokerIsKilled(t *testing.T) {
	const all, rounds, movers = 400, 6, 3
	b := broker.Start(t, broker.Hopwire, broker.Options{Persistent: true})
	d := jms.Start(t, jms.V5)
	d.Connect(b.URL()).Send("queue://A", all, "m{}")
	log := &decisions{commit: map[string]bool{}}
	dial := func() *jms.Session {
		c, err := d.Dial(jms.ConnectOptions{URL: b.URL() + "?jms.prefetchPolicy.all=5", XA: true})
		must(t, err)
		return c.Session(jms.XA)
	}
	var committed, rolledBack int
	for round := range rounds + 1 {
		var group sync.WaitGroup
		for i := range movers {
			s := dial()
			in := s.Consumer(jms.ConsumerOptions{Dest: "queue://A", Pull: true})
			group.Go(func() { log.move(s, in, fmt.Sprint(round, "-", i)) })
		}
		if round == rounds {
			group.Wait()
			break
		}
		killed := make(chan struct{})
		time.AfterFunc(time.Duration(20+rand.IntN(180))*time.Millisecond, func() {
			b.Kill9()
			close(killed)
		})
		group.Wait()
		<-killed
		b.Restart()
		ends := log.recover(t, dial())
		committed, rolledBack = committed+ends[0], rolledBack+ends[1]
	}
	t.Logf("%d branches were committed after a kill, %d rolled back", committed, rolledBack)
	conn := d.Connect(b.URL())
	seen := map[string]int{}
	for _, queue := range []string{"queue://A", "queue://B"} {
		for _, m := range conn.Browse(queue, "") {
			seen[m.Body]++
		}
	}
	for i := range all {
		if body := fmt.Sprint("m", i); seen[body] != 1 {
			t.Errorf("%s is there %d times", body, seen[body])
		}
	}
	if left := len(conn.Browse("queue://A", "")); left != 0 {
		t.Errorf("%d messages are left where they were", left)
	}
}
