package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestLinkStealing(t *testing.T) {
	h := open(t, nil, nil)
	a := h.subscribe("a", "s", "T", nil)
	h.pass(90 * time.Second)
	second := func(user string, steal bool) (*guest, *message.Throwable) {
		g := &guest{h: h}
		g.Connection = h.b.Connect(g, Remote{Address: "other", LinkStealing: steal}, nil)
		e := g.do(&message.ConnectionInfo{ID: "a2", ClientID: "a", UserName: user})
		return g, e
	}
	for _, c := range []struct {
		user  string
		steal bool
	}{{"", false}, {"mallory", true}} {
		if _, e := second(c.user, c.steal); e == nil || e.Class !=
			"javax.jms.InvalidClientIDException" || e.Message != "Broker: b - Client: a already"+
			" connected from test, last heard of 1m30s ago" || a.gone {
			t.Errorf("%+v: %v", c, e)
		}
	}
	g, e := second("", true)
	if e != nil || !a.gone {
		t.Fatalf("not stolen: %v", e)
	}
	g.do(&message.SessionInfo{ID: message.SessionID{Connection: "a2", Value: 1}})
	r := &reader{guest: g}
	if e := r.subscribe("s", "T", nil); e != nil {
		t.Error(e)
	}
}
