package broker

import (
	"maps"
	"time"

	"hopwire/internal/message"
)

// Status is the broker at one moment, for people and programs that watch it.
type Status struct {
	Name             string
	ID               message.BrokerID
	Connections      int
	Counts           Counts
	MemoryBytes      int64
	MemoryLimitBytes int64
	StoreBytes       int64
	StoreLimitBytes  int64 // 0 is no limit
	StoreFreeBytes   int64 // what its disk has; -1 when nobody knows
	StoreFull        bool
	Persistent       bool // it has a store
	Spool            SpoolStatus
	Destinations     []DestinationStatus
	// Subscriptions are the durable ones, in the order of their making.
	Subscriptions []SubscriptionStatus
	// Transactions are the prepared XA branches, in this order.
	Transactions []TransactionStatus
	// Incoming are the bridges of peers that lead here and not back, in the order of their coming;
	// behind them those that went without a word, in the order of their going.
	Incoming []IncomingStatus
}

// SpoolStatus is the spool at one moment.
type SpoolStatus struct {
	Count, Bytes int64 // messages that have a record in it, in memory or not
	Total        int64 // messages ever spooled
	DiskBytes    int64 // that it takes
	LimitBytes   int64 // 0 is no limit
	Full         bool
}

// SubscriptionStatus is one durable subscription at one moment.
type SubscriptionStatus struct {
	ClientID    string
	Name        string
	Destination message.Destination // what is subscribed to
	Selector    string
	NoLocal     bool
	Consumer    string        // the address of its consumer; "" when it is away
	Since       time.Duration // since when the consumer is there, or away; ago
	Size        int64         // messages: waiting and in flight
	InFlight    int
	Counts      DestinationCounts
	Reasons     map[message.Reason]int64
}

// DestinationStatus is one destination at one moment.
type DestinationStatus struct {
	Name      message.Destination
	Size      int64 // messages: waiting and in flight
	InFlight  int
	Consumers int // clients'
	Networks  int // bridges' subscriptions
	Producers int
	Parked    int // sends that wait for space, or for the word about a temporary destination
	Counts    DestinationCounts
	Reasons   map[message.Reason]int64
	// Waits are the reasons that keep the oldest messages waiting, the most frequent first. Only
	// Status fills them in.
	Waits []message.Reason
}

// Status tells how the broker stands. Slices and maps are the caller's.
func (b *Broker) Status() Status {
	space := b.journal.storage.Space()
	s := Status{Name: b.opt.Name, ID: b.opt.ID, Connections: len(b.connOrder), Counts: b.counts,
		MemoryBytes: b.memory.Used(), MemoryLimitBytes: b.memory.Limit(),
		Persistent: b.opt.Persistent,
		StoreBytes: space.UsedBytes, StoreLimitBytes: b.opt.StoreLimitBytes,
		StoreFreeBytes: space.FreeBytes, StoreFull: space.Full,
		Transactions: b.transactions()}
	s.Counts.Reasons = copyReasons(b.counts.Reasons)
	if x := &b.spool; x.storage != nil {
		s.Spool = SpoolStatus{Count: x.count, Bytes: x.bytes, Total: x.total,
			DiskBytes: x.storage.Space().UsedBytes, LimitBytes: b.opt.TempLimitBytes, Full: x.full()}
	}
	budget := waitsOfAll
	s.Destinations = make([]DestinationStatus, 0, len(b.order))
	for d := range b.named() {
		one := d.status()
		one.Waits = d.waits(b, &budget)
		s.Destinations = append(s.Destinations, one)
	}
	s.Destinations = append(s.Destinations, b.replies.status()...)
	for _, d := range b.durables.list {
		s.Subscriptions = append(s.Subscriptions, d.status())
	}
	s.Incoming = b.incoming()
	return s
}

func (s *subscription) status() SubscriptionStatus {
	out := SubscriptionStatus{ClientID: s.key.clientID, Name: s.key.name,
		Destination: s.dest.name, Selector: s.text, NoLocal: s.noLocal,
		Since: s.b.env.Mono() - s.since, Size: s.dest.queue.Len(),
		InFlight: s.dest.queue.OutCount(), Counts: s.dest.counts,
		Reasons: copyReasons(s.dest.reasons)}
	if s.active != nil {
		out.Consumer = s.active.conn.remote.Address
	}
	return out
}

func (d *destination) status() DestinationStatus {
	s := DestinationStatus{Name: d.name, Consumers: len(d.consumers), Networks: len(d.nets),
		Producers: d.producerCount, Parked: d.parkedCount() + d.loads.sends, Counts: d.counts,
		Reasons: copyReasons(d.reasons)}
	if d.queue != nil {
		s.Size, s.InFlight = d.queue.Len(), d.queue.OutCount()
	}
	return s
}

func copyReasons(m map[message.Reason]int64) map[message.Reason]int64 {
	if len(m) == 0 {
		return nil
	}
	out := make(map[message.Reason]int64, len(m))
	maps.Copy(out, m)
	return out
}
