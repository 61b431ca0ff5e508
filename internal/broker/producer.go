package broker

import (
	"sort"

	"hopwire/internal/message"
)

// producer is one open producer.
type producer struct {
	info *message.ProducerInfo
	conn *Connection
	dest *destination // whose producer count it is in
	left bool         // its client closed it
}

func (c *Connection) addProducer(info *message.ProducerInfo) error {
	if err := c.mustHave(info.ID.SessionID()); err != nil {
		return err
	}
	if c.producers[info.ID] != nil {
		return nil
	}
	p := &producer{info: info, conn: c}
	if !info.Destination.IsZero() {
		if err := testName(info.Destination); err != nil {
			return err
		}
	}
	if !info.Destination.IsZero() {
		if err := c.rights.allow(writing, info.Destination); err != nil {
			return err
		}
	}
	if info.Destination.IsComposite() {
		if err := c.rights.allowMaking(info.Destination); err != nil {
			return err
		}
	}
	if to := info.Destination; !to.IsZero() && !to.IsComposite() && !to.IsAdvisory() {
		d, err := c.b.reach(c, to)
		switch {
		case err == nil:
			p.dest = d
			d.producerCount++
			d.stir()
		case c.b.expects(to) == 0: // else its sends wait
			return err
		}
	}
	c.producers[info.ID] = p
	c.b.adviseProducer(p, false)
	return nil
}

func (c *Connection) endProducer(p *producer) {
	delete(c.producers, p.info.ID)
	c.last = nil
	if p.dest != nil {
		p.dest.producerCount--
		p.dest.stir()
	}
	c.b.adviseProducer(p, true)
}

// sortedProducers gives producers in the order of their ids, so that what is told about them is
// the same in every run.
func sortedProducers(m map[message.ProducerID]*producer) []*producer {
	out := make([]*producer, 0, len(m))
	for _, p := range m {
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i].info.ID, out[j].info.ID
		if a.Session != b.Session {
			return a.Session < b.Session
		}
		return a.Value < b.Value
	})
	return out
}
