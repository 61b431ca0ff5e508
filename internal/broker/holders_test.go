package broker

import (
	"fmt"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/policy"
)

// Of what waits for a consumer of two topics each is told what is its own.
func TestMemoryIsToldByTopic(t *testing.T) {
	h := open(t, nil, nil)
	g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	both, _ := message.ParseDestination("topic://A,topic://B", message.Topic)
	g.window("g", both, 1, "")
	for n := range int64(10) {
		p.Handle(p.big("p", topicNamed("A"), n+1, 20_000, false))
	}
	p.Handle(p.big("p", topicNamed("B"), 11, 20_000, false))
	h.turn()
	for _, name := range []string{"A", "B"} {
		d := h.b.find(topicNamed(name))
		want := fmt.Sprintf("topic://%s (%s, of which %[2]s for ", name, plural.Bytes(d.usage.Used()))
		if got := d.holds(1); d.usage.Used() == 0 || !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Who asks why sends wait for memory is told who has it, at other destinations, too.
func TestWhatHoldsTheMemoryThatSendsWaitForIsNamed(t *testing.T) {
	topic := topicNamed("T")
	for _, c := range []struct {
		holds, to message.Destination
		limit     int64 // of the destination
		want      []string
	}{
		{queueQ, queueNamed("empty"), 0, []string{"held by queue://" + queueQ.Name + " (",
			"of client g at test"}},
		{queueQ, topic, 0, []string{"held by queue://" + queueQ.Name + " ("}},
		{topic, queueNamed("empty"), 0, []string{"held by topic://T (",
			"of client g at test"}},
		{queueQ, queueQ, 1 << 19, []string{"held by queue://" + queueQ.Name + " (",
			"of client g at test"}},
	} {
		h := open(t, nil, func(o *Options) {
			o.MemoryLimitBytes = 1 << 20
			e := policy.NewEntry()
			e.Memory.LimitBytes = c.limit
			o.Policies = &policy.Map{Default: e}
		})
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		prefetch := int32(1000)
		if c.holds.IsTopic() {
			prefetch = 1
		}
		g.window("g", c.holds, prefetch, "")
		n := int64(0)
		for full := false; !full; full = h.b.find(c.holds).parkedCount() > 0 {
			n++
			p.hand(p.big("p", c.holds, n, 20_000, false))
			h.turn()
		}
		other := h.connect("o", "o", "", nil)
		other.hand(other.big("o", c.to, 1, 20_000, false))
		h.turn()
		for _, row := range h.explain(c.to).Rows {
			if row.Reason != message.MemoryFull {
				continue
			}
			for _, want := range c.want {
				if !strings.Contains(row.Remark, want) || strings.Contains(row.Remark, ";") {
					t.Errorf("%s waits for %s: %q, want %q", c.to, c.holds, row.Remark, want)
				}
			}
			c.want = nil
		}
		if c.want != nil {
			t.Errorf("%s does not wait: %+v", c.to, h.explain(c.to).Rows)
		}
	}
}
