package broker

import (
	"errors"
	"testing"

	"hopwire/internal/message"
)

// What is refused to a connection that has no part in a branch changes nothing of it, whatever the
// connection asked no answer for. To one that has, the commit would not be what it commits.
func TestARefusedCommandOfSomebodyElseSpoilsNoBranch(t *testing.T) {
	in, out, secret := queueNamed("in"), queueNamed("out"), queueNamed("secret")
	send := func(eve *guest, d message.Destination, n int64) {
		m := eve.mail("e", d, n)
		m.Transaction = xid(1)
		eve.Handle(m)
	}
	for what, refuse := range map[string]func(h *house, eve *guest){
		"a send that eve may not make": func(_ *house, eve *guest) { send(eve, secret, 1) },
		"a send to what has no name":   func(_ *house, eve *guest) { send(eve, queueNamed(""), 1) },
		"a send above the frame limit": func(_ *house, eve *guest) {
			eve.Handle(&message.Oversized{Message: &message.Message{Transaction: xid(1),
				Destination: out}, Cause: errors.New("too large")})
		},
		"an acknowledgement of what it has not": func(_ *house, eve *guest) {
			id := eve.consume("e", in)
			eve.Handle(&message.MessageAck{Consumer: id, Destination: in, HasLast: true,
				Type: message.StandardAck, Transaction: xid(1), Count: 1,
				Last: message.MessageID{Sequence: 77}})
		},
		"a send above the limit": func(h *house, eve *guest) {
			h.b.opt.MaxUncommitted = 1
			send(eve, out, 1)
		},
	} {
		for _, part := range []string{"none", "joined", "sent"} {
			_, change := lawful("amy all >", "eve all in", "eve all out", "eve all more")
			h := open(t, nil, change)
			amy, eve := h.connect("a", "a", "amy", nil), h.connect("e", "e", "eve", nil)
			for n := range int64(2) {
				amy.produce("a", in, n+1)
			}
			amy.walk(xid(1), begin, "ok")
			amy.sendTx(xid(1), out, 11)
			switch part {
			case "joined":
				eve.walk(xid(1), begin, "ok")
			case "sent":
				eve.sendTx(xid(1), queueNamed("more"), 12)
			}
			eve.do(&message.ProducerInfo{ID: message.ProducerID{Connection: "e", Session: 1, Value: 1}})
			refuse(h, eve)
			h.turn()
			got := amy.step(xid(1), commit1)
			if spoiled := got != "ok"; spoiled != (part != "none") {
				t.Errorf("%s, eve's part: %s: the commit is answered with %s", what, part, got)
			}
		}
	}
}
