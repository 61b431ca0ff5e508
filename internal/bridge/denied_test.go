package bridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

func notAllowed(topic string) *message.Throwable {
	return &message.Throwable{Class: "java.lang.SecurityException",
		Message: "User b is not authorized to read from: " + topic}
}

// asks gives the command ids with which the bridge asked for the advisories again.
func (w *world) asks() (ids []int32) {
	for _, c := range w.link.take() {
		if info, ok := c.(*message.ConsumerInfo); ok && info.ResponseRequired {
			ids = append(ids, info.CommandID)
		}
	}
	return ids
}

func TestRefusedAdvisoriesAreAskedForAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	filter := "topic://ActiveMQ.Advisory.Consumer.>"
	w.dial.receive(&message.ConnectionError{Exception: notAllowed(filter)})
	w.state(Degraded)
	w.link.take()
	if got := w.c.Status().Unseen; !strings.Contains(got, "User b is not authorized to read from: "+
		filter) {
		t.Errorf("status says %q", got)
	}
	if r, said := w.c.Explain(queue("Q")), w.c.Said(queue("Q")); r != message.DemandUnseen ||
		!strings.Contains(said, "User b") {
		t.Errorf("explained as %s %q", r, said)
	}
	began := w.env.now
	var at []int
	for len(at) < 8 {
		w.env.advance(tick)
		ids := w.asks()
		if len(ids) == 0 {
			continue
		}
		at = append(at, int((w.env.now - began).Seconds()))
		w.dial.receive(&message.Response{Correlation: ids[0], Exception: notAllowed(filter)})
		began = w.env.now
	}
	if !slices.Equal(at, []int{1, 2, 4, 8, 16, 32, 60, 60}) {
		t.Errorf("asked after %v s", at)
	}
	if !slices.Contains(w.c.Status().Counts, Count{message.RemoteDenied, 9}) {
		t.Errorf("counts %v", w.c.Status().Counts)
	}
	w.state(Degraded)
	w.env.advance(time.Minute)
	w.dial.receive(&message.Response{Correlation: w.asks()[0]})
	w.state(Running)
	w.consume(1, "Q")
	w.home.sub(t, "queue://Q")
}

// TestAReadableConnectionTopicIsNoDemandSignal: a user may read of connections, and not of
// consumers.
func TestAReadableConnectionTopicIsNoDemandSignal(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	b := w.c.bridge
	w.dial.receive(&message.ConnectionError{Exception: notAllowed(
		"ActiveMQ.Advisory.Consumer.>,ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")})
	w.dial.receive(&message.MessageDispatch{Consumer: b.probe.id,
		Message: advisoryMessage("Connection", &message.ConnectionInfo{ID: b.remote})})
	w.state(Degraded)
}

// TestARefusedProbeIsNoRefusedDemand: the rights that stock files give a bridge's user are to
// consumers' advisories alone.
func TestARefusedProbeIsNoRefusedDemand(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.dial.receive(&message.ConnectionError{Exception: notAllowed(
		"topic://ActiveMQ.Advisory.Connection")})
	w.env.advance(2 * probeAgain)
	w.state(Running)
}

func TestWhatTheHomeBrokerDeniesIsTriedAgainAndExplained(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.home.refuse = message.Errorf(message.Denied, "User a is not authorized to read from: queue://S")
	w.consume(1, "S")
	if e := w.events[len(w.events)-1]; e.Kind != DemandRefused || e.Reason != message.AccessDenied {
		t.Errorf("event %+v", e)
	}
	if r, said := w.c.Explain(queue("S")), w.c.Said(queue("S")); r != message.AccessDenied ||
		said != w.home.refuse.Error() {
		t.Errorf("explained as %s %q", r, said)
	}
	if !slices.Contains(w.c.Status().Counts, Count{message.AccessDenied, 1}) {
		t.Errorf("counts %v", w.c.Status().Counts)
	}
	w.home.refuse = nil
	w.env.advance(2 * time.Second)
	w.home.sub(t, "queue://S")
	if r := w.c.Explain(queue("S")); r != "" {
		t.Errorf("explained as %s", r)
	}
}
