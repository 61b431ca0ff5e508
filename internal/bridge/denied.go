package bridge

import (
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// denial is the peer's refusal of the consumer that the bridge hears of demand by. It is asked for
// again and again: rights may change without the link ending.
type denial struct {
	on    bool
	wait  time.Duration
	again time.Duration // when it is asked for next
	asked int32         // the command that does; 0 for none
}

// openAdvisories opens the consumer of advisories at the peer.
func (b *Bridge) openAdvisories(ask bool) int32 {
	b.advisories.id = message.ConsumerID{Connection: b.remote, Session: 1, Value: 1}
	if n := b.advisories.opened; n > 0 {
		b.advisories.id.Value += n + 1 // 2 is the probe's
	}
	info := &message.ConsumerInfo{ID: b.advisories.id, Destination: b.opts.advisoryTopic(),
		PrefetchSize: b.opts.advisoryPrefetch(), DispatchAsync: true}
	info.ResponseRequired = ask
	return b.send(info)
}

// mayNotRead takes the refusal of a consumer of advisories. Who is refused acted on our login.
// When it is the probe's alone, demand is seen as far as one can tell: its consumer was asked for
// before, and not refused.
func (b *Bridge) mayNotRead(text string) {
	b.probe.stop()
	if strings.HasSuffix(text, "://"+connectionTopic) {
		b.prove()
		return
	}
	b.count.add(message.RemoteDenied)
	d := &b.denial
	d.on, d.asked = true, 0
	d.wait = min(max(2*d.wait, parkFirst), parkMax)
	d.again = b.home.env.Mono() + d.wait
	b.degrade("the peer does not let this bridge read its advisories, so that no demand is seen: " +
		text)
	b.prove()
}

// askAgain asks for the consumer once more, when it is time.
func (d *denial) askAgain(b *Bridge, now time.Duration) {
	if d.on && d.asked == 0 && now >= d.again && b.phase == running && !b.stopping {
		d.asked = b.openAdvisories(true)
	}
}

// answered takes the answer to that, and reports whether it was one.
func (d *denial) answered(b *Bridge, r *message.Response) bool {
	if d.asked == 0 || r.Correlation != d.asked {
		return false
	}
	if r.Exception != nil {
		b.mayNotRead(r.Exception.Error())
		return true
	}
	*d = denial{}
	b.demandSeen()
	b.startProbe()
	return true
}

// notTaken notes that the home broker does not take a subscription.
func (b *Bridge) notTaken(d *demand, err error, now time.Duration) {
	wait := min(max(2*d.refusal.wait, parkFirst), parkMax)
	d.state, d.refusal = refused, refusal{text: err.Error(), wait: wait, again: now + wait,
		reason: b.demandRefused(d.dest, err)}
}

// said is what the peer or the home broker says that keeps messages of d from crossing; "" for
// nothing.
func (b *Bridge) said(d message.Destination) string {
	if k := b.parked[d]; k != nil {
		return k.text
	}
	for _, x := range b.table.demands {
		if x.state == refused && policy.Covers(x.dest, d) {
			return x.refusal.text
		}
	}
	if text := b.ttlText(d); text != "" {
		return text
	}
	return b.unseen
}

// Said tells in words what Explain tells by a code, where somebody said why; "" else.
func (c *Connector) Said(d message.Destination) string {
	if c.bridge != nil {
		return c.bridge.said(d)
	}
	return c.trouble()
}

// Said tells in words what Explain tells by a code, where somebody said why; "" else.
func (a *Acceptor) Said(d message.Destination) string { return a.bridge.said(d) }
