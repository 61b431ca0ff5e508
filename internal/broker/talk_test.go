package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// heardTalk gives what the guest was told, by kind.
func (g *guest) heardTalk(kind network.TalkKind) (out []network.Talk) {
	for _, s := range g.sent {
		if c, ok := s.(*message.ControlCommand); ok {
			if t, err := network.ParseTalk(c.Command); err == nil && t.Kind == kind {
				out = append(out, t)
			}
		}
	}
	return out
}

func TestAPeerIsToldLaterOfWhatWaitsForTheDiskAndAtOnceOfTheRest(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	x := h.connect("x", "x", "", peerNamed("x", "10"))
	x.produce("x", q, 1)
	x.late(x.mail("x", q, 2)) // is held: the disk is full
	key := func(n int64) network.DoubtKey {
		m := x.mail("x", q, n)
		return network.DoubtKey{Destination: q, Key: message.Receipt(m, q, m.BrokerPath, h.b.opt.ID)}
	}
	ask := func(id uint64, seen bool, keys ...network.DoubtKey) {
		x.do(&message.ControlCommand{Command: network.Talk{Kind: network.Ask, ID: id, Keys: keys,
			Seen: seen}.Encode()})
	}
	ask(1, true, key(1), key(9))
	if got := x.heardTalk(network.Known); len(got) != 1 || !got[0].Known[0] || got[0].Known[1] {
		t.Fatalf("told %+v", got)
	}
	ask(2, true, key(1), key(2))
	ask(3, false, key(2)) // does not read it
	h.pass(3*network.LaterEvery + time.Second)
	later := x.heardTalk(network.Later)
	if len(later) != 3 || later[2].ID != 2 || len(x.heardTalk(network.Known)) != 1 {
		t.Fatalf("told %+v, %+v", x.heardTalk(network.Known), later)
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if got := x.heardTalk(network.Known); len(got) != 3 || !got[1].Known[1] {
		t.Errorf("told %+v", got)
	}
	h.pass(time.Minute)
	if len(x.heardTalk(network.Later)) != 3 {
		t.Error("it is told of an answer that was given")
	}
}
