package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"hopwire/internal/address"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// policyMap binds <policyMap>; nil is no map.
func (b *builder) policyMap(n *bean) policy.Map {
	var m policy.Map
	if n == nil {
		return m
	}
	seen := make(map[message.Destination]*bean)
	for _, property := range []string{"policyEntries", "entries"} {
		for _, e := range n.many(property) {
			entry := b.policyEntry(e)
			entry.Destination = b.policyKey(e)
			b.unspooled(e, entry)
			for _, d := range entry.Destination.Split() {
				if first := seen[d]; first != nil {
					b.notice(e.pos, Warning, "a second <policyEntry> for %s has no effect: line %d has one",
						d, first.pos.Line)
				} else {
					seen[d] = e
				}
			}
			m.Entries = append(m.Entries, entry)
		}
	}
	if d := n.one("defaultEntry"); d != nil {
		m.Default = b.policyEntry(d)
		b.unspooled(d, m.Default)
	}
	return m
}

// policyKey returns what an entry is for.
func (b *builder) policyKey(n *bean) message.Destination {
	var keys []message.Destination
	for name, kind := range destinationKinds {
		switch name {
		case "queue", "topic":
			if n.text(name) != "" {
				keys = append(keys, message.Destination{Kind: kind, Name: n.text(name)})
			}
		default:
			if n.bool(name) {
				keys = append(keys, message.Destination{Kind: kind, Name: ">"})
			}
		}
	}
	if d := n.one("destination"); d != nil {
		keys = append(keys, b.destination(d).Destination)
	}
	if len(keys) != 1 {
		b.problem(n.pos, "<policyEntry> needs one of queue, topic, tempQueue and tempTopic")
		return message.Destination{}
	}
	return keys[0]
}

// memory binds what a policyEntry says about room.
func (b *builder) memory(n *bean) policy.Memory {
	m := policy.Memory{
		ProducerFlowControl:    n.bool("producerFlowControl"),
		LimitBytes:             n.size("memoryLimit"),
		BlockedProducerWarning: n.millis("blockedProducerWarningInterval"),
		SendFailIfNoSpaceAfter: n.millis("sendFailIfNoSpaceAfterTimeout"),
		CursorHighWaterPercent: n.int("cursorMemoryHighWaterMark"),
		StoreHighWaterPercent:  n.int("storeUsageHighWaterMark"),
		MinimumMessageBytes:    n.size("minimumMessageSize"),
	}
	if n.has("sendFailIfNoSpace") {
		fail := n.bool("sendFailIfNoSpace")
		m.SendFailIfNoSpace = &fail
	}
	return m
}

// unspooled warns of an entry without flow control whose messages are not spooled.
func (b *builder) unspooled(n *bean, e *policy.Entry) {
	if e.Memory.ProducerFlowControl || !n.has("producerFlowControl") {
		return
	}
	vm := func(k policy.CursorKind) bool { return k == policy.CursorVM }
	switch c := e.Cursors; {
	case e.Destination.Kind == message.Queue && !vm(c.Queue),
		e.Destination.IsTopic() && !vm(c.Subscriber) && !vm(c.Durable):
		return
	}
	b.notice(n.at("producerFlowControl"), Warning, "not spooled to disk: with "+
		"producerFlowControl=false non-persistent messages of temporary queues, and of what has a vm "+
		"cursor, stay in memory, and sends wait when the broker's memoryUsage is full")
}

// policyEntry binds the attributes of <policyEntry>.
func (b *builder) policyEntry(n *bean) *policy.Entry {
	e := policy.NewEntry()
	e.Source = n.pos.String()
	e.Memory = b.memory(n)
	e.Dispatch = policy.Dispatch{
		MaxPageSize:           n.int("maxPageSize"),
		UseCache:              n.bool("useCache"),
		Lazy:                  n.bool("lazyDispatch"),
		Optimized:             n.bool("optimizedDispatch"),
		StrictOrder:           n.bool("strictOrderDispatch"),
		UseConsumerPriority:   n.bool("useConsumerPriority"),
		TimeBeforeStart:       n.millis("timeBeforeDispatchStarts"),
		ConsumersBeforeStart:  n.int("consumersBeforeDispatchStarts"),
		AllConsumersExclusive: n.bool("allConsumersExclusiveByDefault"),
		Prioritized:           n.bool("prioritizedMessages"),
	}
	e.Expiry.Period = max(0, n.millis("expireMessagesPeriod"))
	e.Expiry.MaxPageSize = n.int("maxExpirePageSize")
	e.Prefetch = policy.Prefetch{
		Queue:        n.int("queuePrefetch"),
		QueueBrowser: n.int("queueBrowserPrefetch"),
		Topic:        n.int("topicPrefetch"),
		DurableTopic: n.int("durableTopicPrefetch"),
		Extension:    n.bool("usePrefetchExtension"),
	}
	e.GC = policy.GC{Inactive: n.bool("gcInactiveDestinations"),
		WithNetworkConsumers: n.bool("gcWithNetworkConsumers"),
		After:                n.millis("inactiveTimeoutBeforeGC")}
	if n.has("inactiveTimoutBeforeGC") {
		e.GC.After = n.millis("inactiveTimoutBeforeGC")
	}
	e.Advisory = policy.Advisory{
		Consumed:      n.bool("advisoryForConsumed"),
		Delivery:      n.bool("advisoryForDelivery"),
		Dispatched:    n.bool("advisoryForDispatched"),
		Discarding:    n.bool("advisoryForDiscardingMessages"),
		SlowConsumers: n.bool("advisoryForSlowConsumers"),
		FastProducers: n.bool("advisoryForFastProducers"),
		WhenFull:      n.bool("advisoryWhenFull"),
		NoConsumers:   n.bool("sendAdvisoryIfNoConsumers"),
		IncludeBody:   n.bool("includeBodyForAdvisory"),
	}
	b.policyRest(n, e)
	return e
}

// policyRest binds what belongs to no group, and the strategies.
func (b *builder) policyRest(n *bean, e *policy.Entry) {
	e.EnableAudit = n.bool("enableAudit")
	e.MaxProducersToAudit = n.int("maxProducersToAudit")
	e.MaxQueueAuditDepth = n.int("maxQueueAuditDepth")
	e.MaxAuditDepth = n.int("maxAuditDepth")
	e.SendDuplicateFromStoreToDLQ = n.bool("sendDuplicateFromStoreToDLQ")
	e.PersistJMSRedelivered = n.bool("persistJMSRedelivered")
	e.MaxDestinations = n.int("maxDestinations")
	e.MaxBrowsePageSize = n.int("maxBrowsePageSize")
	e.AlwaysRetroactive = n.bool("alwaysRetroactive")
	e.AllowTempDestinationStealing = n.bool("allowTempDestinationStealing")
	e.AdvancedNetworkStatistics = n.bool("advancedNetworkStatisticsEnabled")
	e.AdvancedMessageStatistics = n.bool("advancedMessageStatisticsEnabled")
	e.DispatchPolicy = dispatchPolicy(n.one("dispatchPolicy"))
	e.Recovery = b.recovery(n.one("subscriptionRecoveryPolicy"))
	e.DeadLetter = b.deadLetter(n.one("deadLetterStrategy"))
	e.PendingLimit = pendingLimit(n.one("pendingMessageLimitStrategy"))
	e.Eviction = b.eviction(n.one("messageEvictionStrategy"))
	e.SlowConsumer = slowConsumer(n.one("slowConsumerStrategy"))
	e.Cursors = cursors(n)
	e.Bridge = bridgeFilter(n.one("networkBridgeFilterFactory"))
	e.Groups = b.groups(n)
	e.Headers = headerRules(n.one("messageInterceptorStrategy"))
}

func dispatchPolicy(n *bean) policy.DispatchPolicy {
	if n == nil {
		return policy.NewDispatchPolicy(policy.DispatchSimple)
	}
	p := policy.NewDispatchPolicy(map[string]policy.DispatchKind{
		"roundRobinDispatchPolicy":      policy.DispatchRoundRobin,
		"strictOrderDispatchPolicy":     policy.DispatchStrictOrder,
		"priorityDispatchPolicy":        policy.DispatchPriority,
		"priorityNetworkDispatchPolicy": policy.DispatchPriorityNetwork,
		"clientIdFilterDispatchPolicy":  policy.DispatchClientIDFilter,
	}[n.el.Name])
	if p.Kind == policy.DispatchClientIDFilter {
		p.ClientID, p.Suffix = n.text("ptpClientId"), n.text("ptpSuffix")
	}
	return p
}

func (b *builder) recovery(n *bean) policy.Recovery {
	if n == nil {
		return policy.NewRecovery(policy.RecoverNothing)
	}
	r := policy.NewRecovery(map[string]policy.RecoveryKind{
		"lastImageSubscriptionRecoveryPolicy":       policy.RecoverLastImage,
		"fixedCountSubscriptionRecoveryPolicy":      policy.RecoverFixedCount,
		"fixedSizedSubscriptionRecoveryPolicy":      policy.RecoverFixedSize,
		"timedSubscriptionRecoveryPolicy":           policy.RecoverTimed,
		"retainedMessageSubscriptionRecoveryPolicy": policy.RecoverRetained,
	}[n.el.Name])
	switch r.Kind {
	case policy.RecoverFixedCount:
		r.MaxMessages = n.int("maximumSize")
	case policy.RecoverFixedSize:
		r.MaxBytes, r.SharedBuffer = n.int("maximumSize"), n.bool("useSharedBuffer")
	case policy.RecoverTimed:
		r.Duration = n.millis("recoverDuration")
	case policy.RecoverRetained:
		if inner := n.one("wrapped"); inner != nil {
			w := b.recovery(inner)
			r.Wrapped = &w
		}
	}
	return r
}

func (b *builder) deadLetter(n *bean) policy.DeadLetter {
	l := policy.NewDeadLetter(policy.DeadLetterShared)
	if n == nil {
		return l
	}
	switch n.el.Name {
	case "sharedDeadLetterStrategy":
		if d := n.one("deadLetterQueue"); d != nil {
			l.Queue = b.destination(d).Destination
		} else {
			l.Queue, _ = message.ParseDestination(n.text("deadLetterQueue"), message.Queue)
		}
		if l.Queue.IsComposite() || l.Queue.IsPattern() {
			b.problem(n.at("deadLetterQueue"), "deadLetterQueue of <%s> is %s: dead letters go to one"+
				" queue, without * or > or a list", n.el.Name, l.Queue)
		}
	case "individualDeadLetterStrategy":
		l.Kind = policy.DeadLetterIndividual
		l.QueuePrefix, l.QueueSuffix = n.text("queuePrefix"), n.text("queueSuffix")
		l.TopicPrefix, l.TopicSuffix = n.text("topicPrefix"), n.text("topicSuffix")
		for _, name := range []string{"queuePrefix", "queueSuffix", "topicPrefix", "topicSuffix"} {
			if d := (message.Destination{Kind: message.Queue, Name: n.text(name) + "x"}); d.IsComposite() ||
				d.IsPattern() {
				b.problem(n.at(name), "%s of <%s> is %q: dead letters go to one destination each, without *"+
					" or > or a list", name, n.el.Name, n.text(name))
			}
		}
		l.UseQueueForQueueMessages = n.bool("useQueueForQueueMessages")
		l.UseQueueForTopicMessages = n.bool("useQueueForTopicMessages")
		l.PerDurableSubscriber = n.bool("destinationPerDurableSubscriber")
	default:
		l.Kind = policy.DeadLetterDiscard
	}
	l.ProcessExpired = n.bool("processExpired")
	l.ProcessNonPersistent = n.bool("processNonPersistent")
	l.EnableAudit = n.bool("enableAudit")
	l.MaxProducersToAudit = n.int("maxProducersToAudit")
	l.MaxAuditDepth = n.int("maxAuditDepth")
	l.Expiration = max(0, n.millis("expiration"))
	return l
}

func pendingLimit(n *bean) policy.PendingLimit {
	switch {
	case n == nil:
		return policy.NewPendingLimit(policy.PendingUnlimited)
	case n.el.Name == "constantPendingMessageLimitStrategy":
		return policy.PendingLimit{Kind: policy.PendingConstant, Limit: n.int("limit")}
	}
	return policy.PendingLimit{Kind: policy.PendingPrefetchRate, Multiplier: n.float("multiplier")}
}

func (b *builder) eviction(n *bean) policy.Eviction {
	e := policy.NewEviction(policy.EvictOldest)
	if n == nil {
		return e
	}
	e.ExpiredHighWater = n.int("evictExpiredMessagesHighWatermark")
	switch n.el.Name {
	case "oldestMessageWithLowestPriorityEvictionStrategy":
		e.Kind = policy.EvictLowestPriority
	case "uniquePropertyMessageEvictionStrategy":
		e.Kind, e.Property = policy.EvictUniqueProperty, n.text("propertyName")
		if e.Property == "" {
			b.problem(n.pos, "<%s> without propertyName", n.el.Name)
		}
	}
	return e
}

func slowConsumer(n *bean) policy.SlowConsumer {
	if n == nil {
		return policy.SlowConsumer{}
	}
	s := policy.NewSlowConsumer(policy.AbortSlow)
	s.Name = n.text("name")
	s.MaxSlowCount = n.int("maxSlowCount")
	s.MaxSlowDuration = n.millis("maxSlowDuration")
	s.CheckPeriod = n.millis("checkPeriod")
	s.AbortConnection = n.bool("abortConnection")
	s.IgnoreNetworkConsumers = n.bool("ignoreNetworkConsumers")
	if n.el.Name == "abortSlowAckConsumerStrategy" {
		s.Kind = policy.AbortSlowAck
		s.MaxTimeSinceLastAck = n.millis("maxTimeSinceLastAck")
		s.IgnoreIdleConsumers = n.bool("ignoreIdleConsumers")
	}
	return s
}

func cursors(n *bean) policy.Cursors {
	kind := func(property string) policy.CursorKind {
		c := n.one(property)
		switch {
		case c == nil:
			return policy.CursorDefault
		case strings.HasPrefix(c.el.Name, "vm"):
			return policy.CursorVM
		case strings.HasPrefix(c.el.Name, "file"):
			return policy.CursorFile
		}
		return policy.CursorStore
	}
	out := policy.NewCursors()
	out.Queue = kind("pendingQueuePolicy")
	out.Durable = kind("pendingDurableSubscriberPolicy")
	out.Subscriber = kind("pendingSubscriberPolicy")
	if out.Durable == policy.CursorStore {
		c := n.one("pendingDurableSubscriberPolicy")
		out.ImmediatePriorityDispatch = c.bool("immediatePriorityDispatch")
		out.UseCache = c.bool("useCache")
	}
	return out
}

func bridgeFilter(n *bean) policy.BridgeFilter {
	f := policy.NewBridgeFilter()
	if n == nil || n.el.Name != "conditionalNetworkBridgeFilterFactory" {
		return f
	}
	f.Conditional = true
	f.ReplayWhenNoConsumers = n.bool("replayWhenNoConsumers")
	f.ReplayDelay = n.millis("replayDelay")
	f.RateLimit = n.int("rateLimit")
	f.RateDuration = n.millis("rateDuration")
	f.SelectorAware = n.bool("selectorAware")
	return f
}

// groups binds the group map, an element or a text such as bucket?bucketCount=8&cacheSize=4.
func (b *builder) groups(n *bean) policy.Groups {
	if m := n.one("messageGroupMapFactory"); m != nil {
		switch m.el.Name {
		case "messageGroupHashBucketFactory":
			return policy.Groups{Kind: policy.GroupsBucket, Buckets: m.int("bucketCount"),
				CacheSize: m.int("cacheSize")}
		case "simpleMessageGroupMapFactory":
			return policy.NewGroups(policy.GroupsSimple)
		}
		return policy.Groups{Kind: policy.GroupsCached, CacheSize: m.int("cacheSize")}
	}
	const attribute = "messageGroupMapFactoryType"
	name, query, _ := strings.Cut(n.text(attribute), "?")
	kinds := map[string]policy.GroupsKind{"cached": policy.GroupsCached,
		"bucket": policy.GroupsBucket, "simple": policy.GroupsSimple}
	kind, ok := kinds[name]
	if !ok {
		b.problem(n.at(attribute), "%s: %q is not one of cached, bucket, simple%s", attribute, name,
			b.suggest(name, []string{"cached", "bucket", "simple"}))
	}
	g := policy.NewGroups(kind)
	given, err := address.Options(query)
	if err != nil {
		b.problem(n.at(attribute), "%s: %v", attribute, err)
	}
	options := map[string]*int{}
	if kind != policy.GroupsSimple {
		options["cacheSize"] = &g.CacheSize
	}
	if kind == policy.GroupsBucket {
		options["bucketCount"] = &g.Buckets
	}
	for _, o := range b.once(given, n.at(attribute), attribute) {
		v, err := strconv.ParseInt(o.Value, 10, 32)
		switch to := options[o.Name]; {
		case to == nil:
			b.problem(n.at(attribute), "%s: no option %s on %s%s", attribute, o.Name, name,
				b.suggest(o.Name, []string{"cacheSize", "bucketCount"}))
		case err != nil || v < 1:
			b.problem(n.at(attribute), "%s: %s=%s is not a whole number from 1 to %d", attribute, o.Name,
				o.Value, math.MaxInt32)
		default:
			*to = int(v)
		}
	}
	return g
}

func headerRules(n *bean) []policy.HeaderRule {
	if n == nil {
		return nil
	}
	if n.el.Name == "chainMessageInterceptorStrategy" {
		var out []policy.HeaderRule
		for _, inner := range n.many("messageInterceptorStrategies") {
			out = append(out, headerRules(inner)...)
		}
		return out
	}
	return []policy.HeaderRule{{
		ForceDeliveryMode:      n.bool("forceDeliveryMode"),
		Persistent:             n.bool("persistent"),
		ForceExpiration:        n.bool("forceExpiration"),
		ZeroExpirationOverride: n.millis("zeroExpirationOverride"),
		ExpirationCeiling:      n.millis("expirationCeiling"),
		FutureOnly:             n.bool("futureOnly"),
		ProcessNetworkMessages: n.bool("processNetworkMessages"),
	}}
}

// unswept warns of policies by which unused destinations go, where nobody looks for those.
func (b *builder) unswept(n *bean) {
	if n == nil {
		return
	}
	entries := slices.Concat(n.many("policyEntries"), n.many("entries"))
	if d := n.one("defaultEntry"); d != nil {
		entries = append(entries, d)
	}
	for _, e := range entries {
		if e.bool("gcInactiveDestinations") {
			b.notice(e.at("gcInactiveDestinations"), Warning, "gcInactiveDestinations has no effect"+
				" without schedulePeriodForDestinationPurge on <broker>, the time between sweeps in ms:"+
				" no unused destination is removed")
		}
	}
}
