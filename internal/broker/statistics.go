package broker

import (
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/openwire/primitive"
)

// Names of the destinations that the statistics plugin answers, and of the properties that
// requests may carry (ActiveMQ's StatisticsBrokerPlugin).
const (
	statisticsBroker      = "ActiveMQ.Statistics.Broker"
	statisticsDestination = "ActiveMQ.Statistics.Destination"
	statisticsReset       = "ActiveMQ.Statistics.Broker.Reset"
	statisticsEnd         = "ActiveMQ.Statistics.Destination.List.End.With.Null"
)

// answerStatistics answers a request to the statistics plugin and reports whether it was one.
func (b *Broker) answerStatistics(d *destination, m *message.Message) bool {
	if !b.opt.Statistics || m.ReplyTo.IsZero() || !strings.HasPrefix(d.name.Name,
		"ActiveMQ.Statistics.") {
		return false
	}
	name := d.name.Name
	switch {
	case strings.HasPrefix(name, statisticsBroker):
		if _, reset := m.Property(statisticsReset); reset {
			b.counts = Counts{Reasons: map[message.Reason]int64{},
				Connections: b.counts.Connections}
		}
		b.sendStatistics(m, b.brokerStatistics())
	case strings.HasPrefix(name, statisticsDestination+"."):
		b.destinationsStatistics(d, m)
	default:
		return false
	}
	b.dropRequest(d)
	return true
}

// dropRequest removes the destination that a request made, when nobody uses it.
func (b *Broker) dropRequest(d *destination) {
	if len(d.consumers) == 0 && len(d.nets) == 0 && d.producerCount == 0 && d.queue.Len() == 0 {
		b.removeDestination(d, true)
	}
}

// destinationsStatistics answers with one map per destination that the rest of the name matches.
func (b *Broker) destinationsStatistics(d *destination, m *message.Message) {
	pattern := strings.TrimPrefix(d.name.Name, statisticsDestination+".")
	_, end := m.Property(statisticsEnd)
	if cut, ok := strings.CutSuffix(pattern, "."+statisticsEnd); ok {
		pattern, end = cut, true
	}
	want := message.Destination{Kind: d.name.Kind, Name: pattern}
	for _, o := range append([]*destination(nil), b.order...) {
		if o != d && (o.name == want || policy.Matches(want, o.name)) {
			b.sendStatistics(m, b.destinationStatistics(o))
		}
	}
	if end {
		b.sendStatistics(m, nil)
	}
}

// sendStatistics answers a request with a map message.
func (b *Broker) sendStatistics(request *message.Message, body primitive.Map) {
	producer := message.ProducerID{Connection: b.ownConnection()}
	m := &message.Message{
		Body:          message.MapBody,
		ID:            message.MessageID{Producer: producer, Sequence: b.newID()},
		Producer:      producer,
		Destination:   request.ReplyTo,
		Type:          "Advisory",
		CorrelationID: request.CorrelationID,
		Priority:      4,
	}
	if len(body) > 0 {
		raw, err := primitive.AppendMap(nil, body)
		if err != nil {
			b.counts.Reasons[message.FrameTooBig]++
			return
		}
		m.Content = raw
	}
	b.run(&arrival{b: b, m: m, wire: m.Destination, internal: true})
}

func (b *Broker) brokerStatistics() primitive.Map {
	var size, bytes, inflight, producers, consumers, cached int64
	for _, d := range b.order {
		producers += int64(d.producerCount)
		consumers += int64(len(d.consumers) + len(d.nets))
		bytes += d.counts.Bytes
		if d.queue != nil {
			size += d.queue.Len()
			inflight += int64(d.queue.OutCount())
			cached += d.queue.Resident()
		}
	}
	space := b.journal.storage.Space()
	m := primitive.Map{
		{Key: "brokerName", Value: b.opt.Name},
		{Key: "brokerId", Value: string(b.opt.ID)},
		{Key: "size", Value: size},
		{Key: "enqueueCount", Value: b.counts.Enqueued},
		{Key: "dequeueCount", Value: b.counts.Dequeued},
		{Key: "dispatchCount", Value: b.counts.Dispatched},
		{Key: "expiredCount", Value: b.counts.Expired},
		{Key: "inflightCount", Value: inflight},
		{Key: "averageMessageSize", Value: average(bytes, b.counts.Enqueued)},
		{Key: "messagesCached", Value: cached},
		{Key: "memoryPercentUsage", Value: int32(b.memory.Percent())},
		{Key: "memoryUsage", Value: b.memory.Used()},
		{Key: "memoryLimit", Value: b.memory.Limit()},
		{Key: "storePercentUsage", Value: percent(space.UsedBytes, b.opt.StoreLimitBytes)},
		{Key: "storeUsage", Value: space.UsedBytes},
		{Key: "storeLimit", Value: b.opt.StoreLimitBytes},
		{Key: "tempPercentUsage", Value: int32(0)},
		{Key: "tempUsage", Value: int64(0)},
		{Key: "tempLimit", Value: int64(0)},
		{Key: "consumerCount", Value: consumers},
		{Key: "producerCount", Value: producers},
		{Key: "openwire", Value: b.opt.URL},
		{Key: "vm", Value: "vm://" + b.opt.Name},
		{Key: "dataDirectory", Value: b.opt.DataDirectory},
	}
	return append(m, noTimes...)
}

// noTimes are the enqueue times, which are not measured: how long a message waited is told per
// message by explain.
var noTimes = primitive.Map{
	{Key: "averageEnqueueTime", Value: float64(0)},
	{Key: "maxEnqueueTime", Value: float64(0)},
	{Key: "minEnqueueTime", Value: float64(0)},
}

func (b *Broker) destinationStatistics(d *destination) primitive.Map {
	var size, inflight, cached int64
	if d.queue != nil {
		size, inflight = d.queue.Len(), int64(d.queue.OutCount())
		cached = d.queue.Resident()
	}
	m := primitive.Map{
		{Key: "brokerName", Value: b.opt.Name},
		{Key: "destinationName", Value: d.name.String()},
		{Key: "size", Value: size},
		{Key: "enqueueCount", Value: d.counts.Enqueued},
		{Key: "dequeueCount", Value: d.counts.Dequeued},
		{Key: "dispatchCount", Value: d.counts.Dispatched},
		{Key: "expiredCount", Value: d.counts.Expired},
		{Key: "inflightCount", Value: inflight},
		{Key: "messagesCached", Value: cached},
		{Key: "averageMessageSize", Value: average(d.counts.Bytes, d.counts.Enqueued)},
		{Key: "memoryPercentUsage", Value: int32(d.usage.Percent())},
		{Key: "memoryUsage", Value: d.usage.Used()},
		{Key: "memoryLimit", Value: d.usage.Limit()},
		{Key: "consumerCount", Value: int64(len(d.consumers) + len(d.nets))},
		{Key: "producerCount", Value: int64(d.producerCount)},
	}
	return append(m, noTimes...)
}

func average(sum, n int64) int64 {
	if n == 0 {
		return 0
	}
	return sum / n
}

func percent(part, whole int64) int32 {
	if whole == 0 {
		return 0
	}
	return int32(part * 100 / whole)
}
