package interop

import (
	"testing"

	"hopwire/test/interop/broker"
)

// pair is who plays the two brokers of a scenario: a forwards to b.
type pair struct{ a, b broker.Kind }

func (p pair) String() string { return p.a.String() + " to " + p.b.String() }

// pairs are the mixtures that every network scenario is played with. The one of two real brokers
// shows that the scenario and the harness are true.
var pairs = []pair{
	{broker.ActiveMQ, broker.ActiveMQ},
	{broker.Hopwire, broker.Hopwire},
	{broker.ActiveMQ, broker.Hopwire},
	{broker.Hopwire, broker.ActiveMQ},
}

// eachPair plays a scenario with every mixture.
func eachPair(t *testing.T, play func(t *testing.T, p pair)) {
	t.Helper()
	for _, p := range pairs {
		t.Run(p.String(), func(t *testing.T) { play(t, p) })
	}
}
