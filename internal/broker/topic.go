package broker

import "hopwire/internal/message"

// publish gives a message to every subscription of a topic.
func (b *Broker) publish(d *destination, m *message.Message) {
	d.counts.Enqueued++
	d.counts.Bytes += m.Size()
	b.counts.Enqueued++
	m = b.remember(d, m)
	taken := len(d.nets) > 0
	for _, s := range d.consumers {
		if s.durable == nil {
			taken = s.publish(d, d.name, m) || taken
		}
	}
	for _, n := range d.nets {
		n.publish(d, m)
	}
	b.tellDelivered(d, m, taken)
}

// publish offers one topic message to the consumer, and reports whether that wants it.
func (s *consumer) publish(d *destination, name message.Destination, m *message.Message) bool {
	if v := s.verdict(m, m.RedeliveryCounter); v.Outcome != message.Deliver {
		if d != nil {
			d.reasons[v.Reason]++
		}
		return false
	}
	if s.backlog.len() == 0 && s.topicRoom() {
		s.slow = false
		s.deliver(d, name, m)
		return true
	}
	if n := s.backlog.len(); n > s.topicMax && s.topicMax > 1 && d != nil {
		s.slows(d)
	}
	s.await(backlogItem{d, name, m})
	if s.backlog.advisories > advisoryBacklogBytes {
		s.shedAdvisories()
	}
	return true
}

// topicRoom reports whether one more topic message can be delivered.
func (s *consumer) topicRoom() bool {
	if s.topicMax == 0 {
		return s.window.Room() > 0
	}
	return s.inFlight+s.window.Apart() < s.topicMax && s.linked()
}

// shedAdvisories makes the backlog small again.
func (s *consumer) shedAdvisories() {
	much := s.backlog.advisories
	if c := s.conn; c.network {
		s.backlog.release()
		s.b.env.Soon(func() {
			c.close("the bridge takes no advisories: too many wait for it; it may begin anew")
		})
		return
	}
	n := int64(len(s.backlog.takeOut(func(it *backlogItem) bool {
		if it.dest != nil || much <= advisoryBacklogBytes/2 {
			return false
		}
		much -= it.m.Size()
		return true
	})))
	s.b.counts.Reasons[message.WindowFull] += n
	s.b.tell(Event{Kind: MessageDropped, Reason: message.WindowFull, Count: n,
		Dest: s.info.Destination, Text: "advisories that " + who(s) + " does not acknowledge"})
}

func (s *consumer) deliver(d *destination, name message.Destination, m *message.Message) {
	if d != nil {
		s.dispatched(d)
	}
	if s.mixed {
		s.window.AddApart(nil, m, name, s.conn.given+1)
	} else {
		if s.inFlight++; s.inFlight == 1 {
			s.lastAck = s.b.beat
		}
		if s.topicMax == 0 {
			s.window.Unpull()
		}
	}
	s.conn.deliver(s, name, m, m.RedeliveryCounter)
	if s.pull != nil {
		s.pull.answered()
	}
	s.b.tellDispatched(d, s.info.ID, m)
}

// drainBacklog delivers what there is room for now.
func (s *consumer) drainBacklog() {
	for s.backlog.ready() > 0 && s.topicRoom() {
		if it := s.backlog.pop(); !s.b.expiredInBacklog(it) {
			s.deliver(it.dest, it.name, it.m)
		} else {
			s.b.tellDiscarded(it.dest, s, it.m)
		}
	}
}

// expiredInBacklog counts a message whose time was over before there was room for it.
func (b *Broker) expiredInBacklog(it backlogItem) bool {
	if !it.m.Expired(b.env.Wall()) {
		return false
	}
	b.counts.Expired++
	if it.dest != nil {
		it.dest.counts.Expired++
		b.drop(it.dest, message.Expired, it.m)
	}
	return true
}

// countAck counts what an acknowledgement makes room for, where no copies are held, and gives how
// many messages are done with.
func (s *consumer) countAck(a *message.MessageAck) int64 {
	if a.Type == message.RedeliveredAck {
		return 0
	}
	n := min(int(a.Count), s.inFlight+s.delivered)
	if n <= 0 {
		n = min(1, s.inFlight+s.delivered)
	}
	if a.Type == message.DeliveredAck {
		n = min(n, s.inFlight)
		s.delivered += n
		s.inFlight -= n
		return 0
	}
	// What was reported as delivered made its room already.
	early := min(n, s.delivered)
	s.delivered -= early
	s.inFlight -= n - early
	s.counts.acked += int64(n)
	return int64(n)
}

// ackTopic takes an acknowledgement of topic messages: it only counts.
func (s *consumer) ackTopic(a *message.MessageAck) {
	n := s.countAck(a)
	if n == 0 {
		s.drainBacklog()
		return
	}
	if d := s.b.dests[a.Destination]; d != nil {
		d.counts.Dequeued += n
		s.b.counts.Dequeued += n
	}
	s.drainBacklog()
	s.b.relieve()
}
