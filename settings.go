package hopwire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/security"
	"hopwire/internal/store/disk"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

// Memory that messages may take when the configuration gives a share of the Java heap or nothing:
// ActiveMQ's usual heap of 1 GiB stands for it, within a quarter of the machine's memory.
const (
	nominalHeapBytes = 1 << 30
	memoryShare      = 4
	frameShare       = 4
	// restBytes is what else a broker may take: 512 MiB of sends that wait, 64 MiB on their way to
	// the store, its tables and cache.
	restBytes         = 768 << 20
	fallbackDiskBytes = 100 << 30
	// residentBytes is what messages take before durable ones that wait are in the store alone: a
	// page is read back faster than it is consumed.
	residentBytes = 64 << 20
)

// brokerOptions gives the core's options for a broker of a configuration.
func brokerOptions(c *config.Broker, id message.BrokerID, url string) broker.Options {
	o := broker.Options{
		Name:              c.Name,
		ID:                id,
		URL:               url,
		DataDirectory:     c.Persistence.Directory,
		Persistent:        !c.Persistence.Memory,
		Advisories:        c.AdvisorySupport,
		Statistics:        c.Statistics,
		Policies:          &c.Policy,
		MemoryLimitBytes:  limit(c.Usage.Memory, nominalHeap()),
		ResidentBytes:     residentBytes,
		StoreLimitBytes:   storeLimit(c),
		TempLimitBytes:    tempLimit(c),
		SendFailIfNoSpace: c.Usage.FailIfNoSpace,
		Predeclared:       c.Destinations,
		Composites:        composites(c),

		MaxUncommitted:      c.MaxUncommitted,
		CommitWithoutFailed: c.CommitWithoutFailed,

		RejectDurableConsumers: c.RejectDurableConsumers,
		OfflineDurableTimeout:  c.OfflineDurableTimeout,
		OfflineDurableCheck:    c.OfflineDurableCheck,

		PurgePeriod: c.PurgePeriod,
		PurgeMost:   c.PurgeMost,
	}
	switch c.Persistence.PurgeRecoveredXA {
	case "COMMIT":
		o.Recovered = broker.CommitRecovered
	case "ROLLBACK":
		o.Recovered = broker.RollbackRecovered
	}
	if c.Usage.FailAfter > 0 {
		o.SendFailIfNoSpaceAfter = c.Usage.FailAfter
	}
	return o
}

// composites are the core's of a configuration.
func composites(c *config.Broker) (out []broker.Composite) {
	for _, v := range c.Composites {
		var targets []string
		for _, t := range v.Targets {
			targets = append(targets, t.String())
		}
		out = append(out, broker.Composite{Name: v.Destination,
			Targets: cmp.Or(strings.Join(targets, ", "), "other destinations")})
	}
	return out
}

// frameMemory is what large frames may take while they are read: a share of the memory limit.
func frameMemory(memoryLimit int64) int64 { return cmp.Or(memoryLimit, nominalHeap()) / frameShare }

// MemoryBytes is about what the broker takes of memory at its limits, garbage not counted:
// memoryUsage, frames that are read, and restBytes. It is 0 when memoryUsage has no limit.
func (s *Setup) MemoryBytes() int64 {
	n := limit(s.config.Broker().Usage.Memory, nominalHeap())
	if n == 0 {
		return 0
	}
	return n + frameMemory(n) + restBytes
}

// newHub makes the hub of a broker, with its bound of large frames.
func newHub(l *loop.Loop, o broker.Options) *wire.Hub {
	h := wire.NewHub(l)
	h.LimitFrames(frameMemory(o.MemoryLimitBytes))
	return h
}

// edgeReasons are what befell large frames that were read, and connections that were too many.
func (b *Broker) edgeReasons(f wire.Frames) map[message.Reason]int64 {
	refused := int64(0)
	for _, l := range b.listeners {
		refused += l.Refused()
	}
	return map[message.Reason]int64{message.FrameMemory: f.Waited, message.FrameSlow: f.Slow,
		message.ConnectionLimit: refused}
}

// tableFiles is how many tables a store may have open, and the spool as many, of what listeners
// leave of the limit of open files, which the brokers of a process share; 0 is the store's own
// default.
func (s *Setup) tableFiles() int {
	return tablesOf(transport.OpenFileLimit(), len(s.beside))
}

// tablesLeast is how many tables a store may have open whatever the limit is.
const tablesLeast = 16

func tablesOf(limit uint64, brokers int) int {
	files := transport.ReservedFiles(limit) * 3 / 8
	if files == 0 {
		return 0
	}
	return int(max(min(files/uint64(max(1, brokers)), 1000), tablesLeast))
}

// tooMany tells when more connections are allowed than the limit of open files leaves room for; ""
// when there are none, or the file does not say.
func tooMany(c *config.Broker, limit uint64) string {
	all := uint64(0)
	for _, t := range opened(c) {
		u, err := transport.ParseURI(t.URI.Text())
		if err != nil {
			return ""
		}
		o, err := transport.ParseOptions(u)
		if err != nil || o.MaximumConnections == 0 || o.MaximumConnections == math.MaxInt32 {
			return ""
		}
		all += uint64(o.MaximumConnections)
	}
	room := limit - transport.ReservedFiles(limit)
	if limit == 0 || all <= room {
		return ""
	}
	return fmt.Sprintf("the connectors may have %d connections in all (maximumConnections), and the"+
		" limit of open files (%d) leaves room for %d at most, since the store and bridges need some;"+
		" those beyond are refused: raise the limit (ulimit -n, LimitNOFILE)", all, limit, room)
}

func nominalHeap() int64 {
	if m := machineMemory(); m > 0 {
		return min(nominalHeapBytes, m/memoryShare)
	}
	return nominalHeapBytes
}

// machineMemory is the memory of the machine in bytes, 0 when it cannot be told.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// storeLimit is how many bytes the store may take, 0 for any number.
func storeLimit(c *config.Broker) int64 {
	l := c.Usage.Store
	if l.Percent == 0 || l.Total > 0 || c.Persistence.Memory {
		return limit(l, fallbackDiskBytes)
	}
	return limit(l, cmp.Or(disk.Capacity(c.Persistence.Directory), fallbackDiskBytes))
}

// tempLimit is how many bytes the spool may take of its disk, 0 for any number.
func tempLimit(c *config.Broker) int64 {
	l := c.Usage.Temp
	if l.Percent == 0 || l.Total > 0 || c.Persistence.Memory {
		return limit(l, fallbackDiskBytes)
	}
	return limit(l, cmp.Or(disk.Capacity(c.Persistence.SpoolDirectory), fallbackDiskBytes))
}

// Limits are what a broker's messages may take of memory and disks, in bytes; 0 is no limit.
type Limits struct {
	MemoryBytes int64
	OfHeap      int   // percent of HeapBytes that MemoryBytes is; 0 when the file says bytes
	HeapBytes   int64 // what stands for the Java heap here
	Stored      bool  // there are a store and a spool
	StoreBytes  int64
	TempBytes   int64
	// StoreFree and TempFree are what the disks have left, where that is less than the limit; else 0.
	// What the broker has there already comes to that.
	StoreFree, TempFree int64
}

// Limits are those that the broker will have, as systemUsage says.
func (s *Setup) Limits() Limits {
	c := s.config.Broker()
	l := Limits{MemoryBytes: limit(c.Usage.Memory, nominalHeap()), OfHeap: c.Usage.Memory.Percent,
		Stored: !c.Persistence.Memory}
	if l.OfHeap > 0 {
		l.HeapBytes = nominalHeap()
	}
	if l.Stored {
		l.StoreBytes, l.TempBytes = storeLimit(c), tempLimit(c)
		l.StoreFree = less(disk.Free(c.Persistence.Directory), l.StoreBytes)
		l.TempFree = less(disk.Free(c.Persistence.SpoolDirectory), l.TempBytes)
	}
	return l
}

// less is n if that is less than a limit, and 0 if not.
func less(n, limit int64) int64 {
	if n < limit {
		return n
	}
	return 0
}

func limit(l config.Limit, whole int64) int64 {
	if l.Percent > 0 {
		return cmp.Or(l.Total, whole) / 100 * int64(l.Percent)
	}
	return l.Bytes
}

// connectorOptions gives the options of one bridge of a networkConnector. A connector with several
// peers makes a bridge for each; they share the name, as ActiveMQ's do.
func connectorOptions(n *config.Network, link config.Link, compat int) bridge.Options {
	o := bridge.DefaultOptions(compat)
	o.Name = n.Name
	for _, p := range link.Peers {
		o.URIs = append(o.URIs, p.URI.Text())
	}
	o.Duplex, o.StaticBridge, o.DynamicOnly = n.Duplex, n.StaticBridge, n.DynamicOnly
	o.ConduitSubscriptions = n.ConduitSubscriptions
	o.ConduitNetworkQueueSubscriptions = n.ConduitNetworkQueueSubscriptions
	o.DynamicallyIncluded = destinations(n.Dynamic)
	o.StaticallyIncluded = destinations(n.Static)
	o.Excluded = destinations(n.Excluded)
	o.DestinationFilter = n.DestinationFilter
	o.BridgeTempDestinations = n.BridgeTempDestinations
	o.DecreaseNetworkConsumerPriority = n.DecreaseConsumerPriority
	o.ConsumerPriorityBase = int8(n.ConsumerPriorityBase)
	o.ConsumerTTL, o.MessageTTL = int32(n.ConsumerTTL), int32(n.MessageTTL)
	o.PrefetchSize = int32(n.Prefetch)
	o.AdvisoryPrefetchSize = int32(n.AdvisoryPrefetch)
	o.AdvisoryAckPercentage = n.AdvisoryAckPct
	o.AlwaysSyncSend = n.AlwaysSyncSend
	o.SuppressDuplicateQueueSubscriptions = n.SuppressDuplicateQueues
	o.SuppressDuplicateTopicSubscriptions = n.SuppressDuplicateTopics
	o.UserName, o.Password = n.UserName, n.Password
	o.RemoteUserName, o.RemotePassword = n.RemoteUserName, n.RemotePassword
	if n.ClientIDToken != "" {
		o.ClientIDToken = n.ClientIDToken
	}
	o.InitialReconnectDelay = n.BackOff.Initial
	o.MaxReconnectDelay = n.BackOff.Max
	o.UseExponentialBackOff = n.BackOff.Exponential
	o.MinConnectTime = n.BackOff.MinConnectTime
	o.AdvisoryForFailedForward = n.AdvisoryForFailed
	o.InDoubtTimeout = n.InDoubtTimeout
	if n.InDoubtTimeout < 0 {
		o.InDoubtTimeout = bridge.NeverTimeout
	}
	o.ForwardAhead = n.ForwardAhead
	return o
}

// inTurn gives the order in which a link's addresses are tried.
func inTurn(l config.Link, uris []string) []string {
	if l.Randomize {
		rand.Shuffle(len(uris), func(i, j int) { uris[i], uris[j] = uris[j], uris[i] })
	}
	return uris
}

// check reports what a broker of this configuration could not be started with, a line each: what
// the parts of the house refuse is a mistake of the file.
func check(c *config.Broker, compat int) error {
	var errs []error
	for _, t := range c.Transports {
		if err := checkURI(t.URI); err != nil {
			errs = append(errs, fmt.Errorf("%s: connector %s: %w", t.Pos, t.Name, err))
		}
	}
	for _, n := range c.Networks {
		for _, l := range n.Links {
			o := connectorOptions(n, l, compat)
			if err := o.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", n.Pos, err))
			}
			for _, p := range l.Peers {
				if err := checkURI(p.URI); err != nil {
					errs = append(errs, fmt.Errorf("%s: networkConnector %s: %w", n.Pos, n.Name, err))
				}
			}
		}
	}
	if c.Auth != nil {
		if _, err := authenticator(c.Auth); err != nil {
			errs = append(errs, fmt.Errorf("%s: simpleAuthenticationPlugin: %w", c.Pos, err))
		}
	}
	return errors.Join(errs...)
}

func checkURI(u *config.URI) error {
	t, err := transport.ParseURI(u.Text())
	if err != nil {
		return err
	}
	o, err := transport.ParseOptions(t)
	if err != nil {
		return err
	}
	_, err = wire.OfferOf(o.WireFormat)
	return err
}

// authenticator is the broker's for a simpleAuthenticationPlugin.
func authenticator(a *config.SimpleAuth) (broker.Authenticator, error) {
	o := security.SimpleOptions{AnonymousAccessAllowed: a.Anonymous,
		AnonymousUser: a.AnonymousUser, AnonymousGroup: a.AnonymousGroup}
	for _, u := range a.Users {
		o.Users = append(o.Users, security.User{Name: u.Name, Password: u.Password,
			Groups: u.Groups})
	}
	return security.NewSimple(o)
}

func destinations(list []config.NetworkDestination) []message.Destination {
	return config.Patterns(list)
}

// newBrokerID makes an id in ActiveMQ's form, ID:host-port-time-seq; it is kept in the store.
func newBrokerID(name string, now time.Time) message.BrokerID {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return message.BrokerID("ID:" + host + "-" + name + "-" +
		strconv.FormatInt(now.UnixMilli(), 10) + "-0:1")
}
