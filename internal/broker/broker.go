package broker

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/usage"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// Options say what a broker is. The zero value of a field has the default named with it.
type Options struct {
	Name string           // brokerName; default "localhost"
	ID   message.BrokerID // made once and kept; default is made from chance
	URL  string           // where clients reach it, told to clients and peers

	DataDirectory string // told by the statistics plugin

	Persistent bool        // persistent messages go to the store
	Advisories bool        // advisorySupport
	Statistics bool        // statisticsBrokerPlugin
	Policies   *policy.Map // destinationPolicy; nil is none

	MemoryLimitBytes int64 // memoryUsage; 0 is none
	// ResidentBytes is how much memory messages take before durable ones are kept in the store
	// alone, if that is less than the memory limit's share; 0 leaves it to the limit.
	ResidentBytes   int64
	StoreLimitBytes int64 // storeUsage; 0 is none
	// Spool is where messages of queues go that are not persistent while memory is short, up to
	// TempLimitBytes (tempUsage; 0 is no limit); nil keeps them in memory. With a Spool the Storage
	// reads what is spooled beside what is stored (store.Overlay).
	Spool          SpoolStorage
	TempLimitBytes int64

	RejectDurableConsumers bool // rejectDurableConsumers
	// OfflineDurableTimeout removes durable subscriptions whose consumer is away that long
	// (offlineDurableSubscriberTimeout), looked for every OfflineDurableCheck
	// (offlineDurableSubscriberTaskSchedule). One that is not above 0 removes none.
	OfflineDurableTimeout, OfflineDurableCheck time.Duration

	// PurgePeriod is the time between two looks for destinations that nobody uses
	// (schedulePeriodForDestinationPurge), 0 none; PurgeMost how many of them go at most in one
	// (maxPurgedDestinationsPerSweep), 0 any number.
	PurgePeriod time.Duration
	PurgeMost   int

	SendFailIfNoSpace bool // systemUsage sendFailIfNoSpace
	// SendFailIfNoSpaceAfter is sendFailIfNoSpaceAfterTimeout; 0 waits for ever.
	SendFailIfNoSpaceAfter time.Duration

	Authenticator Authenticator // nil lets everybody in
	Authorizer    Authorizer    // nil lets everybody do everything

	MaxUncommitted int // maxUncommittedCount: sends of one transaction; 0 is any number
	// CommitWithoutFailed lets a transaction commit without sends that asked for no answer and were
	// refused (rollbackOnlyOnAsyncException=false); by default it can only roll back.
	CommitWithoutFailed bool

	// Recovered is what becomes of XA branches that were prepared before the broker's start
	// (purgeRecoveredXATransactionStrategy); by default they wait.
	Recovered RecoveredStrategy

	Predeclared []message.Destination // <destinations>
	// Composites are the compositeQueues and compositeTopics of the file, which are not honoured.
	Composites []Composite
	NextDest   store.DestID // what NextDest read from the store; default 0
	// NextSequence is what NextSequence read from the store; default 0.
	NextSequence int64
	// DoubtPatience is what DoubtPatience read from the store; default none.
	DoubtPatience map[message.BrokerID]time.Duration
	// PeersSeen is what PeersSeen read from the store: the day since the epoch; default none.
	PeersSeen map[message.BrokerID]int64

	Observe func(Event) // told of what happens; nil nobody
	// PeerSeen is told when a peer's bridge was let in; nil nobody.
	PeerSeen func(message.BrokerID)
	// PeerAsks is told of all connections that a peer has here, when it asks about copies in doubt;
	// nil nobody. It gives how many links of the peer's stay although they are not among these, since
	// it may not end them.
	PeerAsks func(from network.Asker, links []message.ConnectionID) (left int)
}

func (o Options) withDefaults(env loop.Env) Options {
	if o.Name == "" {
		o.Name = "localhost"
	}
	if o.ID == "" {
		o.ID = message.BrokerID("ID:" + o.Name + "-" + strconv.FormatUint(env.Rand(), 36) + "-0:1")
	}
	if o.Policies == nil {
		o.Policies = &policy.Map{}
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	return o
}

// RecoveredStrategy says what becomes of XA branches that were prepared before the broker's start.
type RecoveredStrategy uint8

// The strategies: the branches wait for their transaction manager, are committed, or rolled back.
const (
	KeepRecovered RecoveredStrategy = iota
	CommitRecovered
	RollbackRecovered
)

// Authenticator tells who a connection is.
type Authenticator interface {
	// Authenticate gives the principal, or an error of kind Denied.
	Authenticate(userName, password string) (message.Principal, error)
}

// Storage is the store as the broker's loop sees it: everything answers later, on the loop. A read
// sees every batch committed before the call.
type Storage interface {
	Commit(b *store.Batch, done func(error))
	Page(r store.PageRequest, done func([]store.Stored, error))
	Receipts(dest store.DestID, done func(store.Receipts, error))
	Expired(after *store.ExpiredRef, before int64, limit int, done func([]store.ExpiredRef, error))
	Space() store.Space
}

// Broker is one broker. All methods run on its loop.
type Broker struct {
	env loop.Env
	opt Options

	steps, transactedSteps []step

	journal  journal
	spool    spool
	memory   *usage.Usage
	eviction eviction

	dests  map[message.Destination]*destination
	order  []*destination // dests in the order of their making
	topics []*destination // those of them that have names and keep messages for durables
	wild   []*consumer    // consumers of patterns, joined by each new matching destination
	// orphans are consumers of destinations that were removed under them: they are on them again
	// when these are made again.
	orphans  map[message.Destination][]*consumer
	nextDest store.DestID
	// firstSeq is where the sequences of a new queue begin: above those of every queue removed, so
	// that what still names a copy of such a queue names none of the new one.
	firstSeq uint64

	connections map[message.ConnectionID]*Connection
	connOrder   []*Connection
	away        []awayBridge // in the order of their going
	clientIDs   map[string]*Connection
	advisories  advisories
	networks    networks
	replies     replies
	awaited     awaited
	denials     denials
	unsupported unsupported
	parked      []*destination // those with parked sends
	reading     []*destination // those whose receipts are being read
	held        []*Connection  // those that are not read
	keptBytes   int64          // of what topics keep for who comes later
	openBytes   int64          // of sends in open transactions
	parkedBytes int64          // of parked sends
	peersBytes  int64          // of them, sum of destinations' peersBytes
	looking     bool           // for room in the store, in a while
	dirty       []*queueHost   // queues to dispatch at the end of the turn

	xa    branches
	begun uint64 // transactions ever

	subscriptions map[subscriptionKey]*subscription
	durables      durables

	sequence int64 // brokerSequenceId of the last message
	logged   int64 // the last sequence in a log
	ids      int64 // running number of our own messages and consumers
	counts   Counts
	beat     time.Duration // the end of the last turn
	stop     *stop         // nil: none is under way
	expiring bool          // a search for expired messages is under way
	sweeping bool          // a look for destinations that nobody uses is under way
	purges   []*purge      // under way
}

// New makes a broker over what the store had at start.
func New(env loop.Env, storage Storage, headers []store.Header, o Options) *Broker {
	o = o.withDefaults(env)
	b := &Broker{
		env:   env,
		opt:   o,
		steps: sendSteps(),

		transactedSteps: transactedSteps(),

		eviction:    newEviction(o.MemoryLimitBytes, o.ResidentBytes),
		memory:      usage.New(nil, o.MemoryLimitBytes),
		dests:       map[message.Destination]*destination{},
		orphans:     map[message.Destination][]*consumer{},
		nextDest:    max(1, o.NextDest),
		sequence:    o.NextSequence,
		connections: map[message.ConnectionID]*Connection{},
		clientIDs:   map[string]*Connection{},

		subscriptions: map[subscriptionKey]*subscription{},
		counts:        Counts{Reasons: map[message.Reason]int64{}},
	}
	if o.Authorizer == nil {
		b.steps = withoutStep(b.steps, authorizeStep)
		b.transactedSteps = withoutStep(b.transactedSteps, authorizeStep)
	}
	b.journal = newJournal(b, storage)
	b.spool = newSpool(b)
	b.durables.naming = map[message.Destination][]*subscription{}
	b.xa.branches = map[message.TransactionID]*transaction{}
	b.advisories.exact = map[string][]*consumer{}
	b.networks.init()
	maps.Copy(b.networks.patience, o.DoubtPatience)
	b.recallPeers()
	b.replies.init()
	b.awaited = awaited{}
	headers = b.newestOf(headers)
	for i := range headers {
		b.restore(&headers[i])
	}
	b.restoreBranches(headers)
	b.makeSubscribed()
	for _, d := range o.Predeclared {
		b.destination(d)
	}
	b.scheduleExpiry()
	b.watchOffline()
	b.watchInactive()
	b.watchSlow()
	return b
}

// Info introduces the broker.
func (b *Broker) Info() message.BrokerInfo {
	return message.BrokerInfo{ID: b.opt.ID, Name: b.opt.Name, URL: b.opt.URL}
}

// EndTurn is called at the end of every turn of the loop: it delivers what can be delivered, hands
// the turn's batches to the store and the spool, and lets parked sends go on.
func (b *Broker) EndTurn() {
	b.beat = b.env.Mono()
	b.unpark()
	b.dispatch()
	b.goOnStopping()
	b.journal.flush()
	b.evict()
	b.spool.flush()
}

// dispatch lets the queues that woke deliver, each once, as long as the turn's slice lasts:
// dispatches that wake each other must not hold the loop, and what is left is done first in the
// next turn.
func (b *Broker) dispatch() {
	if len(b.dirty) == 0 || b.stopping() {
		return
	}
	slice := queue.NewSlice(b.env)
	dirty := b.dirty
	b.dirty = nil
	for len(dirty) > 0 && !slice.Over() {
		h := dirty[0]
		dirty = dirty[1:]
		h.dirty = false
		if !h.dest.gone {
			h.queue.Dispatch(slice)
			h.dest.dispatched()
			h.dest.findSlow()
		}
	}
	b.dirty = slices.Concat(dirty, b.dirty)
	b.unpark()
	if len(b.dirty) > 0 {
		b.env.Soon(func() {})
	}
}

// newID gives a running number for a message, consumer or producer of the broker itself.
func (b *Broker) newID() int64 {
	b.ids++
	return b.ids
}

// ownConnection is the connection id of the broker's own messages.
func (b *Broker) ownConnection() message.ConnectionID {
	return message.ConnectionID(b.opt.ID)
}

var _ network.Candidate = (*candidate)(nil)
