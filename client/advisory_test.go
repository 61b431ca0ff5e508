package client

import (
	"testing"

	"hopwire/openwire"
)

// What a policy asks for is told of temporary destinations under kinds of their own.
func TestAnAdvisoryIsOnTheTopicOfItsDestination(t *testing.T) {
	temp := func(kind byte) *Destination { return &Destination{Type: kind, PhysicalName: "ID:x:1"} }
	for _, c := range []struct {
		advisory Advisory
		of       *Destination
		want     string
	}{
		{AdvisoryConsumer, Queue("A,B"), "Consumer.Queue.A&sbquo;B"},
		{AdvisoryConsumer, temp(openwire.TypeTempTopic), "Consumer.Topic.ID:x:1"},
		{AdvisoryDeadLetter, temp(openwire.TypeTempQueue), "MessageDLQd.Queue.ID:x:1"},
		{AdvisoryExpired, Topic("T"), "Expired.Topic.T"},
		{AdvisoryNoConsumer, temp(openwire.TypeTempQueue), "NoConsumer.Queue.ID:x:1"},
		{AdvisoryDispatched, Queue("Q"), "MessageDispatched.Queue.Q"},
		{AdvisoryDispatched, temp(openwire.TypeTempQueue), "MessageDispatched.TempQueue.ID:x:1"},
		{AdvisoryConsumed, temp(openwire.TypeTempTopic), "MessageConsumed.TempTopic.ID:x:1"},
		{AdvisorySlow, temp(openwire.TypeTempTopic), "SlowConsumer.TempTopic.ID:x:1"},
	} {
		got := c.advisory.For(c.of)
		if got.Type != openwire.TypeTopic || got.PhysicalName != "ActiveMQ.Advisory."+c.want {
			t.Errorf("%s for %v: %s, not %s", c.advisory, c.of, got.PhysicalName, c.want)
		}
	}
}
