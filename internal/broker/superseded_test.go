package broker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hopwire/internal/broker/usage"
	"hopwire/internal/message"
)

// outdated is what superseded gives, found by a look at all: which messages go, by their places.
func outdated(q *backlog) (out []int64) {
	newest := map[any]*message.Message{}
	front := q.items.all()[:min(q.items.len(), evictLooks)]
	value := func(m *message.Message) any { return message.View{Message: m}.Field("k") }
	for _, it := range front {
		if it.dest == nil || value(it.m) == nil {
			continue
		}
		if m := newest[value(it.m)]; m == nil || it.m.Timestamp > m.Timestamp {
			newest[value(it.m)] = it.m
		}
	}
	for _, it := range front {
		if it.dest != nil && len(newest) > 0 && newest[value(it.m)] != it.m {
			out = append(out, it.m.BrokerSequence)
		}
	}
	return out
}

// Each look finds what a look at everything would, whatever came and went since the one before.
func TestALookAtWhatIsNewFindsAllThatIsSuperseded(t *testing.T) {
	h := open(t, nil, nil)
	memory := h.b.memory
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		d := &destination{usage: usage.New(memory, 0)}
		q, known, next := backlog{b: h.b}, values{}, int64(0)
		most, step := 5+rnd.IntN(100), 10
		if seed%30 == 0 {
			most, step = evictLooks+500, 900
		}
		kinds := 1 + rnd.IntN(most)*(1+rnd.IntN(20))
		for range 100 {
			for range rnd.IntN(step) {
				next++
				m := &message.Message{BrokerSequence: next, Timestamp: next - rnd.Int64N(300)}
				it := backlogItem{d, topicNamed("t"), m}
				switch k := rnd.IntN(kinds + kinds/4 + 1); {
				case rnd.IntN(20) == 0:
					it.dest = nil
				case k < kinds:
					if err := m.SetProperties(message.Property{Name: "k", Value: int32(k)}); err != nil {
						t.Fatal(err)
					}
				}
				q.push(it)
			}
			for n := rnd.IntN(step); n > 0 && q.len() > 0; n-- {
				q.pop()
			}
			if rnd.IntN(10) == 0 {
				q.takeOut(func(*backlogItem) bool { return rnd.IntN(3) == 0 })
			}
			if q.messages <= most {
				continue
			}
			want, before := outdated(&q), q.len()
			var got []int64
			for _, it := range q.superseded(&known, "k") {
				got = append(got, it.m.BrokerSequence)
			}
			slices.Sort(got)
			if fmt.Sprint(got) != fmt.Sprint(want) || q.len() != before-len(want) ||
				len(known.newest) > 3*evictLooks {
				t.Fatalf("seed %d: of %d go %v, want %v; %d values are known", seed, before, got, want,
					len(known.newest))
			}
		}
		if q.release(); memory.Used() != 0 || d.usage.Used() != 0 {
			t.Fatalf("seed %d: %d bytes stay charged", seed, memory.Used())
		}
	}
}
