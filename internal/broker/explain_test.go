package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

func TestAPeerIsNamedWithItsIDBehind(t *testing.T) {
	h := open(t, nil, nil)
	if got := h.b.peerText("ID:x"); got != "ID:x" {
		t.Errorf("a peer that is away is %q", got)
	}
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:x", Name: "hub"}, Started: true})
	if got := h.b.peerText("ID:x"); got != "hub (ID:x)" {
		t.Errorf("a peer that is linked is %q", got)
	}
}

func TestTheLimitThatKeepsSendsWaitingIsNamed(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.MemoryLimitBytes = 1 << 20
		e := policy.NewEntry()
		e.Destination, e.Memory.LimitBytes = queueNamed("Q"), 1000
		o.Policies = &policy.Map{Entries: []*policy.Entry{e}}
	})
	d := h.b.destination(queueNamed("other"))
	if got := h.b.memoryReleases(d); !strings.Contains(got, "memoryUsage of the broker (1048576 ") {
		t.Errorf("the broker's limit is full: released by %s", got)
	}
	d = h.b.destination(queueNamed("Q"))
	d.usage.Add(1500)
	got := h.b.memoryReleases(d)
	if !strings.Contains(got, "memoryLimit of its policyEntry (1000 bytes, of which 1500 are taken)") {
		t.Errorf("the policy's limit is full: released by %s", got)
	}
}
