package message

import "time"

// Outcome is what a verdict decides for one copy and one subscription.
type Outcome uint8

// The outcomes.
const (
	Deliver Outcome = iota
	Refuse          // not now, or not to this subscription; Wake says when to look again
	Discard         // topics only: never to this subscription; counted
)

// Wake says what makes a refusal worth another look.
type Wake uint8

// The wakes.
const (
	WakeNever     Wake = iota // holds until the copy is requeued or subscription or policy change
	WakeConsumers             // when the consumers of this destination change
	WakeAt                    // at Verdict.At
	WakeEvent                 // the refuser itself calls the wake (gates only)
)

// Verdict is the decision for one copy and one subscription at one moment. The zero Verdict
// delivers.
type Verdict struct {
	Outcome Outcome
	Wake    Wake
	Reason  Reason
	At      time.Duration // on the loop's monotonic clock, for WakeAt
}

// Refused makes a refusal that holds until something about the pair changes.
func Refused(r Reason) Verdict { return Verdict{Outcome: Refuse, Reason: r} }

// RefusedUntil makes a refusal that is looked at again at a time of the monotonic clock.
func RefusedUntil(r Reason, at time.Duration) Verdict {
	return Verdict{Outcome: Refuse, Wake: WakeAt, Reason: r, At: at}
}

// CopyRef names one copy of a message in one broker: its destination and its place there. It names
// no other later, also not after a restart, unless the queue was removed before that and made anew.
type CopyRef struct {
	Destination Destination
	Seq         uint64
}
