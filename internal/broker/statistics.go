package broker

import (
	"slices"
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// Names of the destinations that the statistics plugin answers, and of the properties that
// requests may carry (ActiveMQ's StatisticsBrokerPlugin).
const (
	statisticsBroker      = "ActiveMQ.Statistics.Broker"
	statisticsDestination = "ActiveMQ.Statistics.Destination"
	statisticsReset       = "ActiveMQ.Statistics.Broker.Reset"
	statisticsEnd         = "ActiveMQ.Statistics.Destination.List.End.With.Null"
)

// isRequest reports whether a message is for the statistics plugin.
func (b *Broker) isRequest(d *destination, m *message.Message) bool {
	return b.opt.Statistics && !m.ReplyTo.IsZero() &&
		(strings.HasPrefix(d.name.Name, statisticsBroker) ||
			strings.HasPrefix(d.name.Name, statisticsDestination+"."))
}

// answerStatistics answers a request to the statistics plugin and reports whether it was one.
func (b *Broker) answerStatistics(d *destination, m *message.Message) bool {
	if !b.isRequest(d, m) {
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
	}
	b.dropRequest(d)
	return true
}

// dropRequest removes the destination that a request made, when nobody uses it.
func (b *Broker) dropRequest(d *destination) {
	if len(d.consumers) == 0 && len(d.nets) == 0 && d.producerCount == 0 &&
		(d.queue == nil || d.queue.Len() == 0) {
		_ = b.removeDestination(d, true) // forced: nothing can forbid it
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
	if !want.IsPattern() && !want.IsComposite() {
		if o := b.find(want); o != nil && o != d {
			b.sendStatistics(m, b.destinationStatistics(o))
		}
		if end {
			b.sendStatistics(m, nil)
		}
		return
	}
	(&listing{b: b, of: d, request: m, want: want, end: end}).goOn()
}

// listingSlice is how many destinations an answer looks at before it lets others have the loop.
const listingSlice = 1000

// listing answers a request for the statistics of a pattern, in slices.
type listing struct {
	b       *Broker
	of      *destination // of the request
	request *message.Message
	want    message.Destination
	end     bool         // says where it ends
	next    store.DestID // goes on at this one
}

func (l *listing) goOn() {
	b := l.b
	i := b.from(l.next)
	for _, o := range slices.Clone(b.order[i:min(i+listingSlice, len(b.order))]) {
		l.next = o.id + 1
		if o != l.of && o.sub == nil && !o.gone && policy.Matches(l.want, o.name) {
			b.sendStatistics(l.request, b.destinationStatistics(o))
		}
	}
	switch {
	case b.stopping():
	case b.from(l.next) < len(b.order):
		b.env.Soon(l.goOn)
	case l.end:
		b.sendStatistics(l.request, nil)
	}
}

// sendStatistics answers a request with a map message.
func (b *Broker) sendStatistics(request *message.Message, body []message.Property) {
	producer := message.ProducerID{Connection: b.ownConnection()}
	m := &message.Message{
		ID:            message.MessageID{Producer: producer, Sequence: b.newID()},
		Producer:      producer,
		Destination:   request.ReplyTo,
		Type:          "Advisory",
		CorrelationID: request.CorrelationID,
		Priority:      4,
	}
	if err := m.SetMap(body); err != nil {
		b.counts.Reasons[message.FrameTooBig]++
		return
	}
	b.run(&arrival{b: b, m: m, wire: m.Destination, internal: true})
}

func (b *Broker) brokerStatistics() []message.Property {
	var size, bytes, inflight, producers, consumers, cached int64
	for d := range b.named() {
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
	var temp int64
	if b.spool.storage != nil {
		temp = b.spool.storage.Space().UsedBytes
	}
	m := []message.Property{
		{Name: "brokerName", Value: b.opt.Name},
		{Name: "brokerId", Value: string(b.opt.ID)},
		{Name: "size", Value: size},
		{Name: "enqueueCount", Value: b.counts.Enqueued},
		{Name: "dequeueCount", Value: b.counts.Dequeued},
		{Name: "dispatchCount", Value: b.counts.Dispatched},
		{Name: "expiredCount", Value: b.counts.Expired},
		{Name: "inflightCount", Value: inflight},
		{Name: "averageMessageSize", Value: average(bytes, b.counts.Enqueued)},
		{Name: "messagesCached", Value: cached},
		{Name: "memoryPercentUsage", Value: int32(b.memory.Percent())},
		{Name: "memoryUsage", Value: b.memory.Used()},
		{Name: "memoryLimit", Value: b.memory.Limit()},
		{Name: "storePercentUsage", Value: percent(space.UsedBytes, b.opt.StoreLimitBytes)},
		{Name: "storeUsage", Value: space.UsedBytes},
		{Name: "storeLimit", Value: b.opt.StoreLimitBytes},
		{Name: "tempPercentUsage", Value: percent(temp, b.opt.TempLimitBytes)},
		{Name: "tempUsage", Value: temp},
		{Name: "tempLimit", Value: b.opt.TempLimitBytes},
		{Name: "consumerCount", Value: consumers},
		{Name: "producerCount", Value: producers},
		{Name: "openwire", Value: b.opt.URL},
		{Name: "vm", Value: "vm://" + b.opt.Name},
		{Name: "dataDirectory", Value: b.opt.DataDirectory},
	}
	return append(m, noTimes...)
}

// noTimes are the enqueue times, which are not measured: how long a message waited is told per
// message by explain.
var noTimes = []message.Property{
	{Name: "averageEnqueueTime", Value: float64(0)},
	{Name: "maxEnqueueTime", Value: float64(0)},
	{Name: "minEnqueueTime", Value: float64(0)},
}

func (b *Broker) destinationStatistics(d *destination) []message.Property {
	var size, inflight, cached int64
	if d.queue != nil {
		size, inflight = d.queue.Len(), int64(d.queue.OutCount())
		cached = d.queue.Resident()
	}
	m := []message.Property{
		{Name: "brokerName", Value: b.opt.Name},
		{Name: "destinationName", Value: d.name.String()},
		{Name: "size", Value: size},
		{Name: "enqueueCount", Value: d.counts.Enqueued},
		{Name: "dequeueCount", Value: d.counts.Dequeued},
		{Name: "dispatchCount", Value: d.counts.Dispatched},
		{Name: "expiredCount", Value: d.counts.Expired},
		{Name: "inflightCount", Value: inflight},
		{Name: "messagesCached", Value: cached},
		{Name: "averageMessageSize", Value: average(d.counts.Bytes, d.counts.Enqueued)},
		{Name: "memoryPercentUsage", Value: int32(d.usage.Percent())},
		{Name: "memoryUsage", Value: d.usage.Used()},
		{Name: "memoryLimit", Value: d.usage.Limit()},
		{Name: "consumerCount", Value: int64(len(d.consumers) + len(d.nets))},
		{Name: "producerCount", Value: int64(d.producerCount)},
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
