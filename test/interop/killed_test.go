package interop

import (
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// TestWhatAClientHadBeforeAKillComesAsRedelivered shows both brokers: ActiveMQ needs
// persistJMSRedelivered for it.
func TestWhatAClientHadBeforeAKillComesAsRedelivered(t *testing.T) {
	for _, c := range []struct {
		kind   broker.Kind
		policy string
		told   bool
	}{
		{broker.Hopwire, "", true},
		{broker.ActiveMQ, "", false},
		{broker.ActiveMQ6, "", false},
		{broker.ActiveMQ, `<policyEntry queue=">" persistJMSRedelivered="true"/>`, true},
	} {
		name := c.kind.String()
		if c.policy != "" {
			name += " that persists it"
		}
		t.Run(name, func(t *testing.T) {
			b := broker.Start(t, c.kind, broker.Options{Persistent: true, Policy: c.policy})
			d := jms.Start(t, jms.V5)
			conn := d.Connect(b.URL())
			conn.Send("queue://Q", 4, "m{}")
			s := conn.Session(jms.Individual)
			had := s.Consumer(jms.ConsumerOptions{Dest: "queue://Q", Pull: true}).Receive(4, patience)
			if len(had) != 4 || had[0].Redelivered {
				t.Fatalf("%+v", had)
			}
			b.Kill9()
			b.Restart()
			for _, m := range d.Connect(b.URL()).Consumer("queue://Q").Wait(4, patience) {
				if n := m.Prop("JMSXDeliveryCount"); m.Redelivered != c.told || c.told != (n == "2") {
					t.Errorf("%s: redelivered %v, count %s; want %v", m.Body, m.Redelivered, n, c.told)
				}
			}
		})
	}
}
