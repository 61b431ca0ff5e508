package bridge

import "hopwire/internal/message"

// aborted opens the consumer of advisories anew that the peer has closed as a slow one
// (slowConsumerStrategy): without it no demand would be seen any more. The new one has another id,
// since an ActiveMQ peer ends the old one by its id a second later. It is opened first, so that no
// advisory is missed, and is told of all that is there.
func (b *Bridge) aborted(c *message.ConsumerControl) {
	if !c.Close || c.Consumer != b.advisories.id || b.opts.StaticBridge || b.stopping {
		return
	}
	b.count.add(message.SlowConsumer)
	b.event(Event{Kind: AdvisoriesAborted, Reason: message.SlowConsumer,
		Text: "the peer closed this bridge's consumer of advisories as a slow one; another one is " +
			"opened. A slowConsumerStrategy of the peer is for " + b.opts.advisoryTopic().String() +
			": give it a policyEntry of its own without one"})
	old := b.advisories.id
	b.advisories = advisories{opened: b.advisories.opened + 1}
	b.openAdvisories(false)
	b.send(&message.RemoveInfo{Object: old, LastDelivered: message.LastDeliveredUnset})
}
