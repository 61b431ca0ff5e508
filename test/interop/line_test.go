package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/need"
	"hopwire/test/wait"
)

// lines are who plays a, b and c of a line, and where what nobody takes is left.
var lines = []struct {
	brokers [3]broker.Kind
	stays   int // index of the broker, when bridges fold
}{
	{[3]broker.Kind{broker.Hopwire, broker.Hopwire, broker.Hopwire}, 0},
	{[3]broker.Kind{broker.Hopwire, broker.Hopwire, broker.ActiveMQ}, 0},
	{[3]broker.Kind{broker.ActiveMQ, broker.Hopwire, broker.Hopwire}, 1},
	{[3]broker.Kind{broker.Hopwire, broker.ActiveMQ, broker.Hopwire}, 2},
	{[3]broker.Kind{broker.Hopwire, broker.Hopwire, broker.ActiveMQ6}, 0},
	{[3]broker.Kind{broker.ActiveMQ6, broker.Hopwire, broker.Hopwire}, 1},
	{[3]broker.Kind{broker.Hopwire, broker.ActiveMQ6, broker.Hopwire}, 2},
}

// TestSelectorsAtTheEndOfALine has consumers with selectors come and go two brokers away from the
// producer. What they take arrives in every mixture.
func TestSelectorsAtTheEndOfALine(t *testing.T) {
	for _, l := range lines {
		for _, conduit := range []bool{true, false} {
			t.Run(fmt.Sprint(l.brokers, " conduit ", conduit), func(t *testing.T) {
				if slices.Contains(l.brokers[:], broker.ActiveMQ6) &&
					(l.brokers[1] != broker.ActiveMQ6 || !conduit) {
					need.Soak(t)
				}
				var on [3]*broker.Broker
				for i := 2; i >= 0; i-- {
					o := broker.Options{Name: string(rune('a' + i)), Persistent: true}
					if i < 2 {
						o.Connectors = []broker.Connector{{Name: "on", URI: broker.Static(on[i+1]) + quick,
							Attributes: fmt.Sprintf(`networkTTL="3" conduitSubscriptions="%v"`, conduit)}}
					}
					on[i] = broker.Start(t, l.brokers[i], o)
				}
				stays := l.stays
				if !conduit {
					stays = 0 // each consumer has its own subscription, with its selector
				}
				selecting(t, on, stays)
			})
		}
	}
}

func selecting(t *testing.T, on [3]*broker.Broker, stays int) {
	const queue, each = "Q.SELECT", 20
	d := jms.Start(t, jms.V5)
	end := d.Connect(on[2].URL())
	producer := d.Connect(on[0].URL()).Session(jms.Auto)
	send := func(color string) {
		producer.Send(jms.SendOptions{Dest: "queue://" + queue, N: each,
			Props: map[string]string{"color": "string:" + color}})
	}
	takes := func(color string) *jms.Consumer {
		return end.Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: "queue://" + queue,
			Selector: "color='" + color + "'"})
	}
	red := takes("red")
	on[0].WaitConsumers(queue, 1, patience)
	send("red")
	red.Wait(each, patience)
	blue := takes("blue")
	send("blue")
	send("grey")
	send("red")
	blue.Wait(each, patience)
	red.Wait(2*each, patience)
	must(t, blue.Close())
	send("red")
	red.Wait(3*each, patience)
	grey := takes("green") // nobody takes grey: it stays where it is
	grey.Silent(time.Second)
	wait.For(t, patience, "what nobody takes stays", func() (string, bool) {
		s := on[stays].Queue(queue)
		return fmt.Sprintf("%+v", s), s.Size == each
	})
}
