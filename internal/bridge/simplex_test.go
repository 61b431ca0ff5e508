package bridge

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

// The commands of a one-way bridge to a real broker, as captured from ActiveMQ 5.17.2, with the
// probe for the demand signal behind them.
func TestSimplexConversationIsThatOfActiveMQ(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	same(t, "set-up", shorts(w.link.take()), []string{
		"1 BrokerInfo netA network=true duplex=false",
		"2 ConnectionInfo nc1_netA_outbound master=true manageable=false",
		"3 SessionInfo 1",
		"4 ProducerInfo 1:1 ",
		"5 ConsumerInfo 1:1 topic://ActiveMQ.Advisory.Consumer.>," +
			"ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic prefetch=1000 async=true",
		"6 ConsumerInfo 1:2 topic://ActiveMQ.Advisory.Connection prefetch=1000 async=true",
	})
	w.consume(1, "NET.Q")
	w.state(Running)
	w.deliver("queue://NET.Q", 11, text("NET.Q", 1))
	w.deliver("queue://NET.Q", 12, text("NET.Q", 2))
	same(t, "forwards", shorts(w.link.take()), []string{
		"7 RemoveInfo 2",
		"8 Message queue://NET.Q 1 path=[ID:netA] producer=1:1 ask",
		"9 Message queue://NET.Q 2 path=[ID:netA] producer=1:1 ask",
	})
	w.dial.receive(&message.Response{Correlation: 8})
	w.dial.receive(&message.Response{Correlation: 9})
	w.env.settle()
	w.unconsume(1)
	same(t, "home", w.home.take(), []string{
		"peer netB started=true",
		"subscribe queue://NET.Q",
		"acked queue://NET.Q 11 12",
		"unsubscribe queue://NET.Q",
	})
	w.env.advance(2 * time.Second)
	same(t, "idle ack", shorts(w.link.take()), []string{
		"10 MessageAck 1:1 type=2 count=2 first=false"})
}

func TestReconnectRebuildsDemandFromAdvisories(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.deliver("queue://Q", 5, text("Q", 1))
	w.home.take()
	w.env.advance(10 * time.Second)
	w.dial.down(message.Errorf(message.Unavailable, "reset"))
	w.state(Backoff)
	same(t, "home", w.home.take(), []string{
		"redelivered queue://Q 5", "unsubscribe queue://Q", "peer netB started=false"})
	w.env.advance(time.Second)
	w.state(Connecting)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.deliver("queue://Q", 5, text("Q", 1))
	same(t, "home", w.home.take(), []string{"peer netB started=true", "subscribe queue://Q"})
}
