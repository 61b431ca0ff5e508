package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/sim"
)

func (s *script) got(l line) error {
	for _, name := range l.words() {
		x, err := s.consumer(name)
		if err != nil {
			return err
		}
		s.printf("%s", strings.TrimSpace(fmt.Sprintf("%s got %d: %s", name, len(x.got),
			s.named(x.ids()))))
		if x.refused > 0 {
			s.printf("%s had %d replies refused", name, x.refused)
		}
	}
	return nil
}

// each calls f for the applications named, all in the order of their names when none is.
func (s *script) each(l line, f func(name string, x *client)) error {
	names := l.words()
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.clients))
	}
	for _, name := range names {
		x, err := s.consumer(name)
		if err != nil {
			return err
		}
		f(name, x)
	}
	return nil
}

func (s *script) count(l line) error {
	return s.each(l, func(name string, x *client) {
		different := map[message.MessageID]bool{}
		for _, r := range x.got {
			different[r.id] = true
		}
		s.printf("%s got %d, %d different", name, len(x.got), len(different))
	})
}

func (s *script) redelivered(l line) error {
	return s.each(l, func(name string, x *client) {
		var ids []message.MessageID
		for _, r := range x.got {
			if r.redelivered {
				ids = append(ids, r.id)
			}
		}
		s.printf("%s", strings.TrimSpace(fmt.Sprintf("%s got %d redelivered: %s", name, len(ids),
			s.named(ids))))
	})
}

// unique counts what all applications together got.
func (s *script) unique(line) error {
	different, total := map[message.MessageID]bool{}, 0
	for _, x := range s.clients {
		for _, r := range x.got {
			different[r.id] = true
			total++
		}
	}
	s.printf("%d sent, all together got %d, %d different", len(s.numbers), total, len(different))
	return nil
}

// longest tells the most brokers that a message came through.
func (s *script) longest(line) error {
	most := 0
	for _, x := range s.clients {
		for _, r := range x.got {
			most = max(most, r.path)
		}
	}
	s.printf("the longest path has %d brokers", most)
	return nil
}

func (s *script) ordered(l line) error {
	return s.each(l, func(name string, x *client) {
		for i := 1; i < len(x.got); i++ {
			if s.numbers[x.got[i].id] < s.numbers[x.got[i-1].id] {
				s.printf("%s: m%d came after m%d", name, s.numbers[x.got[i].id],
					s.numbers[x.got[i-1].id])
				return
			}
		}
		s.printf("%s: in order", name)
	})
}

// rate tells the most messages that an application got in any window of a length.
func (s *script) rate(l line) error {
	per, err := duration(l.option("per", ""), time.Second)
	if err != nil {
		return err
	}
	return s.each(l, func(name string, x *client) {
		most, from := 0, 0
		for i, r := range x.got {
			for r.at-x.got[from].at >= per {
				from++
			}
			most = max(most, i-from+1)
		}
		s.printf("%s got at most %d in %v", name, most, per)
	})
}

func (s *script) state(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	if !n.Up() {
		s.printf("%s is down", n.Name())
		return nil
	}
	want := destination(l.word(1))
	st := n.Core().Status()
	for _, d := range st.Destinations {
		if d.Name != want {
			continue
		}
		s.printf("size=%d inflight=%d consumers=%d networks=%d enqueued=%d dequeued=%d forwarded=%d"+
			" duplicates=%d parked=%d", d.Size, d.InFlight, d.Consumers, d.Networks,
			d.Counts.Enqueued, d.Counts.Dequeued, d.Counts.Forwarded, d.Counts.Duplicates, d.Parked)
		return nil
	}
	s.printf("no such destination")
	return nil
}

// browse shows what a browser sees beside the size.
func (s *script) browse(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	c := s.w.Client("browser")
	c.Connect(n)
	ids, done := []message.MessageID{}, false
	c.Browse(destination(l.word(1)), func(m *message.Message) {
		if m == nil {
			done = true
			return
		}
		ids = append(ids, m.ID)
	})
	for range 100 {
		if s.w.Run(10 * time.Millisecond); done {
			break
		}
	}
	c.Close()
	s.w.Run(10 * time.Millisecond)
	if !done {
		s.printf("the browse does not end")
	}
	s.printf("%s", strings.TrimSpace(fmt.Sprintf("browsed %d: %s", len(ids), s.named(ids))))
	return nil
}

func (s *script) explain(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	done := false
	n.Core().Explain(destination(l.word(1)), nil, func(e *broker.Explanation) {
		done = true
		if e == nil {
			s.printf("no such queue")
			return
		}
		s.printf("%d messages", e.Status.Size)
		for _, r := range e.Rows {
			s.printf("  %d %s %s: released by %s", r.Count, r.Reason, short(r.Who), r.Releases)
			if r.Remark != "" {
				s.printf("    %s", r.Remark)
			}
		}
		for _, r := range e.Refused {
			s.printf("  refused %d, last %v ago: user %s, who may not %s (%s)", r.Count,
				r.Ago.Round(10*time.Millisecond), r.User, r.What, short(r.Who))
		}
	})
	for range 100 {
		if done {
			break
		}
		s.w.Run(10 * time.Millisecond)
	}
	if !done {
		s.printf("the explanation does not end")
	}
	for _, c := range n.Connectors() {
		if why := c.Explain(destination(l.word(1))); why != "" {
			s.printf("  connector %s: %s%s", c.Status().Name, why, said(c, destination(l.word(1)), why))
		}
	}
	return nil
}

// said is what somebody says about a lack of rights or hops.
func said(c *bridge.Connector, d message.Destination, why message.Reason) string {
	switch why {
	case message.RemoteDenied, message.AccessDenied, message.TTLConsumer:
		return "; " + c.Said(d)
	}
	return ""
}

func short(who string) string { return strings.ReplaceAll(who, "ID:", "") }

// spooled tells how many messages the spool of a broker ever got.
func (s *script) spooled(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	s.printf("%d spooled", n.Spooled())
	return nil
}

func (s *script) links(line) error {
	for _, n := range s.w.Nodes() {
		s.linksOf(n)
	}
	return nil
}

func (s *script) linksOf(n *sim.Node) {
	if !n.Up() {
		return
	}
	for _, c := range n.Connectors() {
		st := c.Status()
		s.printf("%s %s %s forwarded=%d received=%d", n.Name(), st.Name, st.State, st.Forwarded,
			st.Received)
		for _, p := range st.Parked {
			s.printf("  parked %s %s", p.Destination.Name, p.Reason)
		}
		if st.Unseen != "" {
			s.printf("  %s", st.Unseen)
		}
	}
	for _, a := range n.Home().Accepted() {
		st := a.Status()
		s.printf("%s accepted %s %s forwarded=%d received=%d", n.Name(), st.Name, st.State,
			st.Forwarded, st.Received)
	}
}

func (s *script) capturedBetween(l line) error {
	from, to, _ := strings.Cut(l.word(0), "->")
	for _, c := range s.captured {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", c.cmd), "*message.")
		if c.from != from || c.to != to || l.word(1) != "" && kind != l.word(1) {
			continue
		}
		s.printf("%s%s", kind, s.details(c.cmd))
	}
	return nil
}

func (s *script) details(cmd any) string {
	switch c := cmd.(type) {
	case *message.ConsumerInfo:
		return fmt.Sprintf(" %s prefetch=%d", c.Destination, c.PrefetchSize)
	case *message.Message:
		return fmt.Sprintf(" %s %s", c.Destination, s.named([]message.MessageID{c.ID}))
	case *message.ConnectionInfo:
		return " " + c.ClientID
	case *message.ControlCommand:
		head, _, _ := strings.Cut(c.Command, "\n")
		return " " + head
	}
	return ""
}
