package hostile

import (
	"context"
	"fmt"
	"testing"

	"hopwire/test/wait"
)

// TestAHubWhoseDiskABridgeFillsGoesOnByItself fills a hub from an edge, whose sends are many at a
// time and all wait at the hub: neither then nor after a kill does it need anybody's help.
func TestAHubWhoseDiskABridgeFillsGoesOnByItself(t *testing.T) {
	hub := newProcess(t, setup{name: "hub", data: smallDisk(t, 24)})
	edge := newProcess(t, setup{name: "edge", body: fmt.Sprintf(
		`<networkConnectors><networkConnector name="up" uri="static:(%s)">`+
			`<staticallyIncludedDestinations><queue physicalName="FULL"/>`+
			`</staticallyIncludedDestinations></networkConnector></networkConnectors>`, hub.url())})
	ctx, cancel := context.WithCancel(t.Context())
	f := fill(ctx, t, edge.addr(), 0)
	wait.For(t, 3*patience, "sends that wait at the hub", func() (string, bool) {
		q := queue(hub.status(), "FULL")
		return fmt.Sprintf("%+v", q), q.Parked > 500
	})
	cancel()
	<-f.done
	hub.kill()
	mark := hub.log.mark()
	hub.launch()
	hub.awaitLog(mark, "ready\n")

	seen := map[string]bool{}
	take(t, hub.addr(), len(f.keys), seen)
	wait.For(t, patience, "all crossed", func() (string, bool) {
		q := queue(edge.status(), "FULL")
		return fmt.Sprintf("%+v", q), q.Size == 0
	})
	take(t, hub.addr(), int(queue(hub.status(), "FULL").Size), seen) // was not confirmed
	for _, key := range f.keys {
		if !seen[key] {
			t.Errorf("message %s was confirmed and is lost", key)
		}
	}
	t.Logf("%d messages, %d confirmed", len(seen), len(f.keys))
}
