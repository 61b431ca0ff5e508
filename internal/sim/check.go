package sim

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// mostViolations is how many violations of one run are reported.
const mostViolations = 10

// checkEvery is how often the brokers are asked whether something is stuck.
const checkEvery = 250 * time.Millisecond

// checker holds a run to the promises.
type checker struct {
	r       *runner
	found   []string
	settled bool // the faults are over and the links had time
	last    map[orderKey]int64
}

type orderKey struct {
	consumer message.ConsumerID
	producer message.ProducerID
	dest     message.Destination
}

func newChecker(r *runner) *checker {
	c := &checker{r: r, last: map[orderKey]int64{}}
	r.w.ledger.OnDeliver(c.delivered)
	r.w.ledger.OnFinal(c.final)
	return c
}

func (c *checker) violate(promise, format string, args ...any) {
	line := fmt.Sprintf("%s at %.6f: ", promise, c.r.w.now.Seconds()) +
		fmt.Sprintf(format, args...)
	c.r.w.trace("VIOLATION %s", line)
	if len(c.found) < mostViolations {
		c.found = append(c.found, line)
	}
}

func (c *checker) start() { c.look() }

// look asks all idle brokers whether something is stuck, again and again.
func (c *checker) look() {
	for _, n := range c.r.w.nodes {
		if n.life == nil || n.life.env.pending {
			continue
		}
		if err := n.life.core.Check(); err != nil {
			c.violate("P1", "%v", err)
		}
	}
	c.r.w.After(checkEvery, c.look)
}

// once reports whether the message may be consumed only once.
func (c *checker) once(f *Fate) bool {
	if !c.r.p.strict() || f.Released {
		return false
	}
	ends := c.r.p.Crashes || c.r.p.Stops
	return !ends || f.Persistent && !c.r.p.Ahead
}

func (c *checker) delivered(d *Delivery) {
	f := d.Fate
	if f.At == nil {
		c.violate("P2", "nobody sent %s", f)
		return
	}
	if f.Undone {
		c.violate("P3", "delivered after its branch was rolled back: %s", f)
	}
	if f.Finals > 0 && !d.Stale && c.once(f) {
		c.violate("P3", "delivered after it was consumed: %s", f)
	}
	if !c.toldAgain(d) {
		c.violate("P3", "delivered before, and not told to be redelivered: %s", f)
	}
	c.circles(d)
	c.order(d)
}

// toldAgain reports whether an application is told of a message that one may have seen before. A
// producer that sends again makes a new message, as far as a restarted broker knows; and what an
// application still had of a connection that was gone was given to it before.
func (c *checker) toldAgain(d *Delivery) bool {
	f := d.Fate
	return d.Redelivery > 0 || d.Stale || len(f.Deliveries) == 1 || !f.Persistent || f.Resent ||
		f.Released || !c.r.p.strict() || c.r.p.Ahead
}

// circles holds the broker path to what is allowed.
func (c *checker) circles(d *Delivery) {
	most := 1
	if c.r.p.Replay {
		age := float64(c.r.w.now-d.Fate.Sent) / float64(20*time.Millisecond)
		most = 3 + int(math.Log2(1+age))
	}
	seen := map[message.BrokerID]int{}
	for _, id := range append([]message.BrokerID{d.Node.ID()}, d.Path...) {
		if seen[id]++; seen[id] > most {
			c.violate("P4", "%s was %d times at %s", d.Fate, seen[id], id)
			return
		}
	}
}

// order holds deliveries to the order of sending where nothing may break it: one route, no replay,
// nothing given back by consumers.
func (c *checker) order(d *Delivery) {
	if c.settled || d.Redelivery > 0 || !c.r.p.ordered() {
		return
	}
	f := d.Fate
	k := orderKey{d.Consumer, f.ID.Producer, f.Dest}
	if f.ID.Sequence < c.last[k] {
		c.violate("P7", "%s came after number %d", f, c.last[k])
	}
	c.last[k] = max(c.last[k], f.ID.Sequence)
}

func (c *checker) final(d *Delivery) {
	if f := d.Fate; f.Finals > 1 && c.once(f) {
		c.violate("P3", "consumed twice: %s", f)
	}
}

// left tells what the brokers still hold of the queues; "" for nothing.
func (c *checker) left() string {
	for _, n := range c.r.w.nodes {
		if n.life == nil {
			return n.cfg.Name + " is down"
		}
		status := n.life.core.Status()
		if k := len(status.Transactions); k > 0 {
			return fmt.Sprintf("%d prepared branches on %s", k, n.cfg.Name)
		}
		for _, d := range status.Destinations {
			if d.Name.Kind == message.Queue && d.Name.Name[0] == 'Q' && d.Size > 0 {
				return fmt.Sprintf("%d messages (%d in flight) of %s on %s", d.Size, d.InFlight,
					d.Name, n.cfg.Name)
			}
		}
	}
	if m := c.r.w.manager; m != nil && len(m.decided) > 0 {
		return fmt.Sprintf("%d branches that are to be committed", len(m.decided))
	}
	return ""
}

// why explains every queue that is not empty.
func (c *checker) why() string {
	var text strings.Builder
	for _, n := range c.r.w.nodes {
		if n.life == nil {
			continue
		}
		for _, d := range n.life.core.Status().Destinations {
			if d.Name.Kind != message.Queue || d.Size == 0 {
				continue
			}
			n.life.core.Explain(d.Name, nil, func(e *broker.Explanation) {
				for _, row := range e.Rows {
					fmt.Fprintf(&text, "\n    %s %s: %d %s %s, %s", n.cfg.Name, d.Name, row.Count,
						row.Reason, row.Who, row.Oldest.ID)
				}
			})
		}
	}
	c.r.w.Run(time.Second) // pages are read
	return text.String()
}

// end looks at what is there when everything had its time.
func (c *checker) end() {
	if left := c.left(); left != "" {
		c.violate("P1", "not drained: %s%s", left, c.why())
		return
	}
	for _, f := range c.r.w.ledger.Order {
		if !f.Confirmed || !f.Persistent {
			continue
		}
		handled := false
		for _, d := range f.Deliveries {
			handled = handled || d.Handled
		}
		if !handled {
			c.violate("P2", "confirmed and lost: %s", f)
		}
	}
	for _, n := range c.r.w.notes {
		c.violate("note", "%s", n)
	}
}
