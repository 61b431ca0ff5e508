package cli

import (
	"fmt"
	"testing"
	"time"

	"hopwire/test/interop/broker"
)

func TestABrokerThatHangsIsNamedAndTheOthersAreAsked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	hub := broker.Start(t, broker.Hopwire, broker.Options{Name: "hub"})
	shop := broker.Start(t, broker.Hopwire, broker.Options{Name: "shop"})
	expect(t, exitDone, `sent 2 messages`, "producer", "--brokerUrl", shop.URL(), "--messageCount",
		"2", "Q")
	hub.Pause()
	defer hub.Resume()
	hangs := fmt.Sprintf(`broker hub pid %d does not answer`, hub.PID())
	began := time.Now()
	expect(t, exitUnavailable, `^broker shop .*queue://Q +2 .*`+hangs, "status")
	expect(t, exitUnavailable, `^broker shop  queue://Q: 2 messages.*`+hangs, "explain", "Q")
	expect(t, exitUnavailable, `^hopwire: `+hangs, "stop", "-b", "hub")
	expect(t, exitUsage, `brokers of 2 processes are running \(hub, shop\)`, "stop")
	expect(t, exitDone, `^broker shop stopped\n$`, "stop", "-b", "shop")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestSeveralBrokersCanBeNamed(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range []string{"a", "b", "c"} {
		broker.Start(t, broker.Hopwire, broker.Options{Name: name})
	}
	expect(t, exitDone, `^broker a .*^broker c `, "status", "-b", "a", "-b", "c")
	expect(t, exitUnavailable, `no broker named d`, "status", "-b", "a", "-b", "d")
}
