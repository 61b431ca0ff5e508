package hostile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"hopwire/openwire"
)

// Bounds of what each of many queues costs, ten times what it does and more: they catch what grows
// faster than their number.
const (
	manyQueues    = 30_000
	queueBytes    = 30 << 10
	queueTime     = 150 * time.Microsecond // to make one, or to have it joined, told of, started with
	pulseMost     = 2 * time.Second        // for an answer meanwhile
	statusOfQueue = 2 << 10                // bytes of one, in JSON
)

// pulse sends a message now and then until stop, and tells how long the longest answer took.
func pulse(t *testing.T, p *process, name string) (stop func() time.Duration) {
	t.Helper()
	k := login(t, p.addr(), name)
	_ = k.c.SetDeadline(time.Now().Add(time.Hour))
	over, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for n := int32(1000); ; n++ {
			began := time.Now()
			k.send(&openwire.DestinationInfo{BaseCommand: command(n, true),
				ConnectionID: &openwire.ConnectionId{Value: k.id}, Destination: queueName("pulse")})
			k.answer(n)
			most = max(most, time.Since(began))
			select {
			case <-over:
				longest <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() time.Duration { close(over); return <-longest }
}

// crowd is a broker with many queues.
type crowd struct {
	*testing.T
	p    *process
	k    *raw
	many int
}

// limit is what something may take that looks at all of them.
func (c *crowd) limit() time.Duration { return time.Duration(c.many) * queueTime }

// timed runs something while another client asks the broker.
func (c *crowd) timed(what string, f func()) {
	c.Helper()
	stop := pulse(c.T, c.p, what)
	began := time.Now()
	f()
	took, most := time.Since(began), stop()
	c.Logf("%s: %v; the longest answer to another client meanwhile %v", what,
		took.Round(time.Millisecond), most.Round(time.Millisecond))
	if took > c.limit() {
		c.Errorf("%s took %v, the limit is %v", what, took, c.limit())
	}
	if most > pulseMost {
		c.Errorf("%s: another client waited %v", what, most)
	}
}

// patient is a client that may take its time.
func (c *crowd) patient(id string) *raw {
	c.Helper()
	k := login(c.T, c.p.addr(), id)
	_ = k.c.SetDeadline(time.Now().Add(time.Hour))
	return k
}

// fill makes the queues, one message in every tenth.
func (c *crowd) fill() {
	for n := range c.many {
		name := queueName(fmt.Sprint("Q.", n))
		if n%10 == 0 {
			m := c.k.message(name, int64(n), 100)
			m.Persistent = true
			c.k.send(m)
			continue
		}
		c.k.send(&openwire.DestinationInfo{ConnectionID: &openwire.ConnectionId{Value: c.k.id},
			Destination: name})
	}
	c.k.alive()
}

// command runs hopwire with arguments and bounds what it prints.
func (c *crowd) command(most int, args ...string) {
	c.timed(fmt.Sprint("hopwire ", args), func() {
		path, _ := program()
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+c.p.dir)
		out, err := cmd.CombinedOutput()
		if c.Logf("%d bytes", len(out)); err != nil || len(out) > most {
			c.Errorf("it prints %d bytes: %v", len(out), err)
		}
	})
}

// ask has the statistics plugin tell of all.
func (c *crowd) ask() {
	k := c.patient("asker")
	k.subscribe(1, queueName("answers"), 1<<30)
	m := k.message(queueName("ActiveMQ.Statistics.Destination.Q.>"), 1, 0)
	m.ReplyTo = queueName("answers")
	k.send(m)
	for range c.many {
		await[*openwire.MessageDispatch](k)
	}
	k.c.Close()
}

// restart starts the broker again, which was ended in some way.
func (c *crowd) restart(what string) {
	took := c.p.start()
	c.Logf("%s: started in %v", what, took.Round(time.Millisecond))
	if took > time.Second+c.limit() {
		c.Errorf("%s: the start took %v, the limit is %v", what, took, time.Second+c.limit())
	}
}

func TestManyQueuesCostEachTheSame(t *testing.T) {
	c := &crowd{T: t, many: manyQueues}
	if n, err := strconv.Atoi(os.Getenv("QUEUES")); err == nil {
		c.many = n
	}
	c.p = newProcess(t, setup{body: "<plugins><statisticsBrokerPlugin/></plugins>"})
	c.k = c.patient("maker")
	before := c.p.rss()
	c.timed("making them", c.fill)
	each := (c.p.rss() - before) / int64(c.many)
	t.Logf("%d queues: %d bytes resident each, %d MiB in all", c.many, each, c.p.rss()>>20)
	if each > queueBytes {
		t.Errorf("%d bytes each", each)
	}
	c.command(10_000, "status")
	c.command(c.many*statusOfQueue, "status", "--all")
	c.command(c.many*statusOfQueue, "status", "--json")
	c.timed("explain", func() { c.p.explain("Q.10") })
	c.timed("purge", func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if x, err := c.p.control().Purge(ctx, "Q.10"); err != nil || x.Dropped != 1 {
			t.Errorf("%+v %v", x, err)
		}
	})
	c.timed("the statistics plugin", c.ask)
	all := c.patient("all")
	c.timed("a consumer of all", func() {
		all.subscribe(1, queueName("Q.>"), 1<<30)
		for range c.many/10 - 1 {
			await[*openwire.MessageDispatch](all)
		}
	})
	all.c.Close()
	c.timed("its end", c.k.alive)
	c.p.stop()
	c.restart("after a clean stop")
	c.p.kill()
	c.restart("after a kill")
	if s := c.p.status(); len(s.Destinations) < c.many {
		t.Errorf("%d of %d are there", len(s.Destinations), c.many)
	}
}
