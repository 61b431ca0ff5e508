package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
)

// Receipts, marks and doubts are kept under a peer's id: it must have one, and not ours.
func TestBrokerWithoutAnIDOrWithOursIsNoPeer(t *testing.T) {
	for _, id := range []message.BrokerID{"", "ID:b"} {
		h := open(t, nil, nil)
		g := &guest{h: h}
		g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: 1}, nil)
		if e := g.do(&message.BrokerInfo{ID: id, Name: "p", NetworkConnection: true}); e == nil {
			t.Errorf("broker id %q is let in as a peer", id)
		}
		if h.b.counts.Reasons[message.LoginRefused] == 0 {
			t.Errorf("broker id %q: the refusal is not counted", id)
		}
		e := g.do(&message.ConnectionInfo{ID: "p", ClientID: "p"})
		if e == nil || len(h.b.connOrder) != 0 {
			t.Errorf("broker id %q: the connection that was to be a peer's is let in", id)
		}
		if h.pass(2 * refusedDelay); g.closed == "" {
			t.Errorf("broker id %q: the connection stays", id)
		}
	}
}

// noSuchUser lets nobody in.
type noSuchUser struct{}

func (noSuchUser) Authenticate(string, string) (message.Principal, error) {
	return message.Principal{}, message.Errorf(message.Denied, "no such user")
}

func TestARefusedBridgeIsToldByItsName(t *testing.T) {
	for properties, want := range map[string]string{
		"duplex=false\nname=up\nprefetchSize=5": "bridge up of shop1 (test): no such user",
		"name=a\\:b":                            "bridge a:b of shop1 (test): no such user",
		"":                                      "bridge of shop1 (test): no such user",
	} {
		h := open(t, nil, func(o *Options) { o.Authenticator = noSuchUser{} })
		h.connect("l", "l", "", &message.BrokerInfo{ID: "ID:shop1", Name: "shop1",
			NetworkConnection: true, NetworkProperties: properties})
		e := h.events[len(h.events)-1]
		for _, x := range h.events {
			if x.Kind == ConnectionRefused {
				e = x
			}
		}
		if e.Text != want {
			t.Errorf("%q: told as %q, want %q", properties, e.Text, want)
		}
	}
}

func TestWhoHasNoNameIsToldSo(t *testing.T) {
	_, change := lawful("boss all >")
	h := open(t, nil, change)
	g := h.connect("g", "g", "", nil)
	g.produce("g", queueNamed("Q"), 1)
	for _, e := range h.events {
		if e.Kind == AccessDenied && !strings.HasSuffix(e.Text, ", which has no user name)") {
			t.Errorf("told as %q", e.Text)
		}
	}
	if h.b.Status().Counts.Reasons[message.AccessDenied] == 0 {
		t.Error("nothing is refused")
	}
}
