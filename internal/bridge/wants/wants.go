// Package wants is what the consumers behind one demand of a bridge select: each selector once, for
// all that have it, and where they are.
package wants

import (
	"slices"

	"hopwire/internal/message"
)

// Selector is a parsed JMS selector as a demand needs it.
type Selector interface {
	Matches(m *message.Message) bool
	Identifiers() []string
}

// peerChanges are what a peer may change in a message.
var peerChanges = []string{"JMSRedelivered", "JMSXDeliveryCount", "JMSXUserID",
	"JMSXGroupFirstForConsumer", "JMSActiveMQBrokerInTime", "JMSActiveMQBrokerOutTime",
	"JMSActiveMQBrokerPath"}

// Judged reports whether the selector says the same of a message here as at the peer.
func Judged(s Selector) bool {
	return !slices.ContainsFunc(s.Identifiers(), func(id string) bool {
		return slices.Contains(peerChanges, id)
	})
}

// choice is one selector, which all members that have it share.
type choice struct {
	text     string
	selector Selector             // nil takes anything
	here     int                  // members on the peer itself
	paths    [][]message.BrokerID // of members on brokers further away
}

func (c *choice) takes(m *message.Message) bool {
	return c.selector == nil || c.selector.Matches(m)
}

// has reports whether some member with the selector is where a path leads, or on the peer itself.
func (c *choice) has(path []message.BrokerID) bool {
	return c.here > 0 || slices.ContainsFunc(c.paths, func(p []message.BrokerID) bool {
		return slices.Equal(p, path)
	})
}

// open reports whether a member can be reached by the message: one that is further away cannot when
// the message was at a broker on the way there, which would have to turn it away.
func (c *choice) open(m *message.Message) bool {
	return c.here > 0 || slices.ContainsFunc(c.paths, func(path []message.BrokerID) bool {
		return !slices.ContainsFunc(path, func(b message.BrokerID) bool {
			return message.Visited(m.BrokerPath, b)
		})
	})
}

// Set is the selectors of a demand's members, in the order in which they came. The text "" is that
// of a member that takes anything.
type Set struct {
	list []*choice
	by   map[string]*choice
}

// Has reports whether a member has the selector, which then need not be parsed.
func (s *Set) Has(text string) bool { return s.by[text] != nil }

// Join adds a member's selector; path is the brokers between it and the peer. It reports whether
// more messages may be wanted now.
func (s *Set) Join(text string, parsed Selector, path []message.BrokerID) (wider bool) {
	c := s.by[text]
	if c == nil {
		c = &choice{text: text, selector: parsed}
		if s.by == nil {
			s.by = map[string]*choice{}
		}
		s.by[text] = c
		s.list = append(s.list, c)
	}
	all := s.by[""]
	wider = !c.has(path) && (all == nil || !all.has(path))
	if len(path) == 0 {
		c.here++
	} else {
		c.paths = append(c.paths, path)
	}
	return wider
}

// Part takes a member's selector out that joined with this path.
func (s *Set) Part(text string, path []message.BrokerID) {
	c := s.by[text]
	if len(path) == 0 {
		c.here--
	} else {
		i := slices.IndexFunc(c.paths, func(p []message.BrokerID) bool {
			return slices.Equal(p, path)
		})
		c.paths = slices.Delete(c.paths, i, i+1)
	}
	if c.here == 0 && len(c.paths) == 0 {
		delete(s.by, text)
		s.list = slices.DeleteFunc(s.list, func(o *choice) bool { return o == c })
	}
}

// Take reports whether any member takes the message.
func (s *Set) Take(m *message.Message) bool {
	return slices.ContainsFunc(s.list, func(c *choice) bool { return c.takes(m) })
}

// Refuse gives the reason why no member takes the message. One that cannot be reached takes none,
// unless messages may go back, or nothing stays where it is refused (back). There is always another
// way, that which made the message come here.
func (s *Set) Refuse(m *message.Message, back bool) message.Reason {
	why := message.SelectorNoMatch
	for _, c := range s.list {
		if !c.takes(m) {
			continue
		}
		if back || c.open(m) {
			return ""
		}
		why = message.ReplayOff
	}
	return why
}

// Texts gives the selectors; none when some member takes anything.
func (s *Set) Texts() []string {
	if s.by[""] != nil {
		return nil
	}
	texts := make([]string, 0, len(s.list))
	for _, c := range s.list {
		texts = append(texts, c.text)
	}
	return texts
}
