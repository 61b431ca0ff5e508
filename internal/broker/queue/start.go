package queue

import (
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// startWait is how long the consumers that are waited for have when no time is set.
const startWait = time.Second

// start holds the first dispatch of a queue back until enough consumers are there, or for a time
// (consumersBeforeDispatchStarts, timeBeforeDispatchStarts). It begins anew when the last consumer
// is gone.
type start struct {
	consumers int
	time      time.Duration
	begun     bool // a consumer came
	over      bool
	timer     loop.Timer
}

// arrived counts a new consumer.
func (q *Queue) arrived() {
	s := &q.start
	if s.over || s.consumers <= 0 && s.time <= 0 {
		return
	}
	if len(q.slots) >= s.consumers && s.consumers > 0 {
		q.begin()
		return
	}
	if s.begun {
		return
	}
	s.begun = true
	wait := s.time
	if wait <= 0 {
		wait = startWait
	}
	s.timer = q.env.After(wait, q.begin)
}

// begin lets everybody look.
func (q *Queue) begin() {
	if q.start.timer != nil {
		q.start.timer.Stop()
		q.start.timer = nil
	}
	q.start.over = true
	for _, s := range q.slots {
		s.Ready()
	}
}

// left counts a consumer that is gone.
func (q *Queue) left() {
	if len(q.slots) > 0 {
		return
	}
	if q.start.timer != nil {
		q.start.timer.Stop()
	}
	q.start = start{consumers: q.start.consumers, time: q.start.time}
}

// waits refuses everybody before the start.
func (s *start) waits() message.Verdict {
	if s.over || s.consumers <= 0 && s.time <= 0 {
		return message.Verdict{}
	}
	return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
		Reason: message.NotStarted}
}
