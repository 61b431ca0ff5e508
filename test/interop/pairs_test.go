package interop

import (
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

// eachKind plays programs with every kind of broker.
func eachKind(t *testing.T, play func(t *testing.T, k broker.Kind)) {
	t.Helper()
	for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire, broker.ActiveMQ6} {
		t.Run(k.String(), func(t *testing.T) { play(t, k) })
	}
}

// mostKinds does the same, with ActiveMQ 6 in long runs alone.
func mostKinds(t *testing.T, play func(t *testing.T, k broker.Kind)) {
	t.Helper()
	eachKind(t, func(t *testing.T, k broker.Kind) {
		if k == broker.ActiveMQ6 {
			need.Soak(t)
		}
		play(t, k)
	})
}

// pair is who plays the two brokers of a scenario: a forwards to b.
type pair struct{ a, b broker.Kind }

func (p pair) String() string { return p.a.String() + " to " + p.b.String() }

// newer reports whether one of them is of ActiveMQ 6.
func (p pair) newer() bool { return p.a == broker.ActiveMQ6 || p.b == broker.ActiveMQ6 }

// compat is the level at which hopwire has the defaults of its peer; 0 without a newer one.
func (p pair) compat() int {
	if p.newer() {
		return 6
	}
	return 0
}

// pairs are the mixtures that every network scenario is played with. The one of two real brokers
// shows that the scenario and the harness are true.
var pairs = []pair{
	{broker.ActiveMQ, broker.ActiveMQ},
	{broker.Hopwire, broker.Hopwire},
	{broker.ActiveMQ, broker.Hopwire},
	{broker.Hopwire, broker.ActiveMQ},
	{broker.ActiveMQ6, broker.Hopwire},
	{broker.Hopwire, broker.ActiveMQ6},
}

// eachPair plays a scenario with every mixture.
func eachPair(t *testing.T, play func(t *testing.T, p pair)) {
	t.Helper()
	for _, p := range pairs {
		t.Run(p.String(), func(t *testing.T) { play(t, p) })
	}
}

// mostPairs does the same, with ActiveMQ 6 in long runs alone.
func mostPairs(t *testing.T, play func(t *testing.T, p pair)) {
	t.Helper()
	eachPair(t, func(t *testing.T, p pair) {
		if p.newer() {
			need.Soak(t)
		}
		play(t, p)
	})
}
