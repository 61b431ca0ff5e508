package client

import (
	"strings"

	"hopwire/openwire"
)

// Advisory is what advisory topics are about. Brokers tell there what happens to them; consume from
// the topic and look at Message.Structure and the properties (consumerCount, producerCount,
// originBrokerName ...).
type Advisory string

// The advisories about a broker as a whole, see Topic.
const (
	AdvisoryConnection    Advisory = "Connection"    // ConnectionInfo, RemoveInfo
	AdvisoryQueue         Advisory = "Queue"         // DestinationInfo
	AdvisoryTopic         Advisory = "Topic"         // DestinationInfo
	AdvisoryTempQueue     Advisory = "TempQueue"     // DestinationInfo
	AdvisoryTempTopic     Advisory = "TempTopic"     // DestinationInfo
	AdvisoryMasterBroker  Advisory = "MasterBroker"  // BrokerInfo
	AdvisoryNetworkBridge Advisory = "NetworkBridge" // BrokerInfo
)

// The advisories about a destination, see For. All but the first two carry the message concerned,
// and need an option of the broker's policy.
const (
	AdvisoryConsumer   Advisory = "Consumer" // ConsumerInfo, RemoveInfo
	AdvisoryProducer   Advisory = "Producer" // ProducerInfo, RemoveInfo
	AdvisoryExpired    Advisory = "Expired"
	AdvisoryNoConsumer Advisory = "NoConsumer"
	AdvisorySlow       Advisory = "SlowConsumer"
	AdvisoryFast       Advisory = "FastProducer"
	AdvisoryDiscarded  Advisory = "MessageDiscarded"
	AdvisoryDelivered  Advisory = "MessageDelivered"
	AdvisoryConsumed   Advisory = "MessageConsumed"
	AdvisoryDispatched Advisory = "MessageDispatched"
	AdvisoryDeadLetter Advisory = "MessageDLQd"
	AdvisoryFull       Advisory = "FULL"
)

const advisoryPrefix = "ActiveMQ.Advisory."

// Topic is the topic of an advisory about the broker.
func (a Advisory) Topic() *Destination { return Topic(advisoryPrefix + string(a)) }

// For is the topic of an advisory about one destination, or about all that a pattern fits.
func (a Advisory) For(d *Destination) *Destination {
	family := ".Queue."
	if isTopic(d) {
		family = ".Topic."
	}
	switch temp := d.Type == openwire.TypeTempQueue || d.Type == openwire.TypeTempTopic; a {
	case AdvisoryConsumer, AdvisoryProducer, AdvisoryExpired, AdvisoryNoConsumer, AdvisoryDeadLetter:
	default:
		if temp {
			family = ".Temp" + family[1:]
		}
	}
	name := strings.ReplaceAll(d.PhysicalName, ",", "&sbquo;")
	return Topic(advisoryPrefix + string(a) + family + name)
}

// IsAdvisory tells whether a destination is an advisory topic.
func IsAdvisory(d *Destination) bool {
	return d != nil && d.Type == openwire.TypeTopic &&
		strings.HasPrefix(d.PhysicalName, advisoryPrefix)
}
