package broker

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// candidate is a copy as a bridge's filter sees it.
type candidate struct {
	b          *Broker
	dest       *destination
	m          *message.Message
	redelivery int32
	arrived    time.Duration
	now        time.Duration
}

// Message implements network.Candidate.
func (k *candidate) Message() *message.Message { return k.m }

// Redelivery implements network.Candidate.
func (k *candidate) Redelivery() int32 { return k.redelivery }

// Arrived implements network.Candidate.
func (k *candidate) Arrived() time.Duration { return k.arrived }

// Now implements network.Candidate.
func (k *candidate) Now() time.Duration { return k.now }

// Wall implements network.Candidate.
func (k *candidate) Wall() int64 { return k.b.env.Wall() }

// Replay implements network.Candidate.
func (k *candidate) Replay() network.Replay { return replayOf(k.dest.policy) }

// LocalConsumer implements network.Candidate.
func (k *candidate) LocalConsumer(matching bool) bool {
	for _, s := range k.dest.consumers {
		if !matching || s.verdict(k.m, k.redelivery).Outcome == message.Deliver {
			return true
		}
	}
	return false
}
