package bridge

import (
	"fmt"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// refusalsKept bounds the remote consumers remembered as refused.
const refusalsKept = 10_000

// refusedKey is a remote consumer that makes no demand here: its id, or a durable subscription,
// which outlives ids.
type refusedKey struct {
	id                message.ConsumerID
	clientID, durable string
}

// refusals are the remote consumers that consumerTTL keeps away, for explanations alone. They go
// with the consumer, and with the link.
type refusals struct {
	of       map[refusedKey][]message.Destination
	at       map[message.Destination]map[refusedKey]int // how many brokers away each is
	patterns []message.Destination                      // of those in at
}

func newRefusals() refusals {
	return refusals{of: map[refusedKey][]message.Destination{},
		at: map[message.Destination]map[refusedKey]int{}}
}

func keyOf(c *message.ConsumerInfo) refusedKey {
	if c.SubscriptionName != "" {
		return refusedKey{clientID: c.ClientID, durable: c.SubscriptionName}
	}
	return refusedKey{id: c.ID}
}

// add remembers a consumer that is too far away on the destinations given.
func (r *refusals) add(c *message.ConsumerInfo, dests []message.Destination) {
	k := keyOf(c)
	r.remove(k)
	if len(r.of) >= refusalsKept || len(dests) == 0 {
		return
	}
	r.of[k] = dests
	for _, d := range dests {
		if r.at[d] == nil {
			r.at[d] = map[refusedKey]int{}
			if d.IsPattern() {
				r.patterns = append(r.patterns, d)
			}
		}
		r.at[d][k] = len(c.BrokerPath) + 1
	}
}

func (r *refusals) remove(k refusedKey) {
	for _, d := range r.of[k] {
		if delete(r.at[d], k); len(r.at[d]) == 0 {
			delete(r.at, d)
			r.patterns = slices.DeleteFunc(r.patterns, func(x message.Destination) bool {
				return x == d
			})
		}
	}
	delete(r.of, k)
}

// nearest tells how many brokers a subscription to d would have to cross; 0 when none was refused.
func (r *refusals) nearest(d message.Destination) (hops int) {
	look := func(at message.Destination) {
		for _, n := range r.at[at] {
			if hops == 0 || n < hops {
				hops = n
			}
		}
	}
	look(d)
	for _, p := range r.patterns {
		if p != d && policy.Covers(p, d) {
			look(p)
		}
	}
	return hops
}

// tooFar remembers a consumer that was refused since consumerTTL is used up. One that is behind
// this broker itself, and that the peer tells back, no higher limit would let by; nor one that the
// lists leave out.
func (t *table) tooFar(c *message.ConsumerInfo) {
	if message.Visited(c.BrokerPath, t.self) {
		return
	}
	var dests []message.Destination
	for _, part := range c.Destination.Split() {
		if _, refusal := t.rules.permit(part); refusal == "" && !slices.Contains(dests, part) {
			dests = append(dests, part)
		}
	}
	t.refusals.add(c, dests)
}

// ttlText tells what would let demand for d by that consumerTTL keeps away; "" for none.
func (b *Bridge) ttlText(d message.Destination) string {
	hops := b.table.refusals.nearest(d)
	if hops == 0 {
		return ""
	}
	return fmt.Sprintf("a consumer is %d brokers away, and consumerTTL of connector %s is %d;"+
		" networkTTL=\"%[1]d\" (consumerTTL and messageTTL) on each connector of the way lets"+
		" it by", hops, b.opts.Name, b.opts.ConsumerTTL)
}
