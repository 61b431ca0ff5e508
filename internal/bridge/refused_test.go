package bridge

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestRefusedSubscriptionIsTriedAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.home.refuse = message.Errorf(message.Limit, "no")
	w.consume(1, "Q")
	w.demands()
	if got := w.c.Explain(queue("Q")); got != message.DemandRefused {
		t.Errorf("explained by %s", got)
	}
	want := []Count{{message.DemandRefused, 1}}
	if got := w.c.Status().Counts; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if e := w.events[len(w.events)-1]; e.Kind != DemandRefused || e.Text != "no" ||
		e.Reason != message.DemandRefused {
		t.Errorf("told %+v", e)
	}
	if d := w.c.Status().Demands; len(d) != 1 || d[0].State != "refused" || d[0].Failed != "no" ||
		d[0].Reason != message.DemandRefused {
		t.Errorf("its status is %+v", d)
	}
	w.home.refuse = nil
	w.env.advance(3 * time.Second)
	w.demands("queue://Q")
	if d := w.c.Status().Demands; len(d) != 1 || d[0].State != "active" || d[0].Reason != "" {
		t.Errorf("once it is taken its status is %+v", d)
	}
}
