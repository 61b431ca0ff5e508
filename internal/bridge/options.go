package bridge

import (
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Options are the settings of one network connector, under the names activemq.xml gives them.
// Start from DefaultOptions: several defaults are not zero.
type Options struct {
	// Name is part of client ids, unique per pair of brokers. Default "NC".
	Name string
	// URIs lead to one peer and are tried in turn.
	URIs []string
	// Duplex makes the connection carry the reverse direction, too. Default false.
	Duplex bool
	// StaticBridge asks for no advisories: only the static list. Default false.
	StaticBridge bool
	// DynamicOnly is tolerated; stored durables are never revived before their subscriber is back.
	DynamicOnly bool
	// ConduitSubscriptions folds the remote consumers of a queue into one subscription. Topics
	// are always folded. Default true.
	ConduitSubscriptions bool
	// ConduitNetworkQueueSubscriptions folds queue consumers that are bridges, too. Default false.
	ConduitNetworkQueueSubscriptions bool
	// DynamicallyIncluded limits demand to what overlaps it. Empty means everything.
	DynamicallyIncluded []message.Destination
	// StaticallyIncluded is always subscribed to, as one more consumer each.
	StaticallyIncluded []message.Destination
	// Excluded beats both lists.
	Excluded []message.Destination
	// DestinationFilter is the advisory filter; empty is derived from DynamicallyIncluded.
	DestinationFilter string
	// BridgeTempDestinations takes the peer's temporary destinations along. Default true.
	BridgeTempDestinations bool
	// DecreaseNetworkConsumerPriority lowers demand below local consumers. Default false up to
	// compatibility level 5, true from 6.
	DecreaseNetworkConsumerPriority bool
	// ConsumerPriorityBase is the lowered priority at one hop. Default -5.
	ConsumerPriorityBase int8
	// ConsumerTTL is the number of brokers a subscription may cross; -1 no limit. Default 1.
	ConsumerTTL int32
	// MessageTTL is the number of brokers a message may cross; -1 no limit. Default 1.
	MessageTTL int32
	// PrefetchSize is the window of each demand, in messages. Default 1000, at least 1.
	PrefetchSize int32
	// AdvisoryPrefetchSize is the window of the advisory consumer; 0 is PrefetchSize.
	AdvisoryPrefetchSize int32
	// AdvisoryAckPercentage of the advisory window is acknowledged at once. Default 75, 1 to 100.
	AdvisoryAckPercentage int
	// AlwaysSyncSend asks an answer for non-persistent messages, too. Default true.
	AlwaysSyncSend bool
	// SuppressDuplicateQueueSubscriptions drops demand whose origin consumer another bridge of
	// this broker serves. Default false.
	SuppressDuplicateQueueSubscriptions bool
	// SuppressDuplicateTopicSubscriptions is the same for topics. Default true.
	SuppressDuplicateTopicSubscriptions bool
	// AdvisoryForFailedForward publishes a ForwardFailure advisory for a message that can never
	// cross. Default false.
	AdvisoryForFailedForward bool
	// UserName and Password log in at the peer, unless RemoteUserName is set. Nobody logs in at
	// home: the bridge is part of it.
	UserName, Password             string
	RemoteUserName, RemotePassword string
	// As is the user of the local broker whose rights bound what crosses; nil has them all.
	As *message.Principal
	// ClientIDToken separates the parts of client ids. Default "_".
	ClientIDToken string

	// InDoubtTimeout ends doubts that a Hopwire peer did not resolve; NeverTimeout keeps them for
	// ever. Default 5 min.
	InDoubtTimeout time.Duration
	// ForwardAhead forwards persistent copies before they are durable here. Default false.
	ForwardAhead bool
	// InitialReconnectDelay is the wait after the first failure. Default 1 s.
	InitialReconnectDelay time.Duration
	// MaxReconnectDelay bounds the wait. Default 30 s.
	MaxReconnectDelay time.Duration
	// UseExponentialBackOff doubles the wait at each failure. Default true.
	UseExponentialBackOff bool
	// MinConnectTime is how long a bridge must live to count as success. Default 5 s.
	MinConnectTime time.Duration
}

// NeverTimeout as an InDoubtTimeout holds copies in doubt until the peer has told of them.
const NeverTimeout = network.ForEver

const inDoubtDefault = 5 * time.Minute

// DefaultOptions gives the defaults of a compatibility level: 5 for ActiveMQ up to 5.17, 6 for
// 5.18 and later.
func DefaultOptions(compat int) Options {
	return Options{
		Name:                                "NC",
		ConduitSubscriptions:                true,
		BridgeTempDestinations:              true,
		DecreaseNetworkConsumerPriority:     compat >= 6,
		ConsumerPriorityBase:                -5,
		ConsumerTTL:                         1,
		MessageTTL:                          1,
		PrefetchSize:                        1000,
		AdvisoryAckPercentage:               75,
		AlwaysSyncSend:                      true,
		SuppressDuplicateTopicSubscriptions: true,
		ClientIDToken:                       "_",
		InDoubtTimeout:                      inDoubtDefault,
		InitialReconnectDelay:               time.Second,
		MaxReconnectDelay:                   30 * time.Second,
		UseExponentialBackOff:               true,
		MinConnectTime:                      5 * time.Second,
	}
}

// Validate reports the first setting that cannot work, by its attribute name.
func (o *Options) Validate() error {
	bad := func(name, what string) error {
		return message.Errorf(message.Limit, "networkConnector %q: %s %s", o.Name, name, what)
	}
	switch {
	case o.Name == "":
		return bad("name", "is empty; give each connector its own")
	case o.PrefetchSize < 1:
		return bad("prefetchSize", "must be at least 1")
	case o.AdvisoryPrefetchSize < 0:
		return bad("advisoryPrefetchSize", "must not be negative")
	case o.AdvisoryAckPercentage < 1 || o.AdvisoryAckPercentage > 100:
		return bad("advisoryAckPercentage", "must be 1 to 100")
	case o.ConsumerTTL < -1:
		return bad("consumerTTL", "must be -1 (no limit) or more")
	case o.MessageTTL < -1:
		return bad("messageTTL", "must be -1 (no limit) or more")
	case o.InDoubtTimeout == 0 || o.InDoubtTimeout < NeverTimeout:
		return bad("inDoubtTimeout", "must be a time, or -1 for ever")
	case o.InitialReconnectDelay <= 0:
		return bad("initialReconnectDelay", "must be more than 0")
	case o.MaxReconnectDelay < o.InitialReconnectDelay:
		return bad("maxReconnectDelay", "must not be below initialReconnectDelay")
	}
	for _, d := range o.lists() {
		if d.IsZero() || d.Name == "" {
			return bad("an included or excluded destination", "has no name")
		}
	}
	return nil
}

func (o *Options) lists() []message.Destination {
	var all []message.Destination
	all = append(all, o.DynamicallyIncluded...)
	all = append(all, o.StaticallyIncluded...)
	return append(all, o.Excluded...)
}

// suppresses reports whether demand another bridge serves is dropped for this kind.
func (o *Options) suppresses(d message.Destination) bool {
	if d.IsTopic() {
		return o.SuppressDuplicateTopicSubscriptions
	}
	return o.SuppressDuplicateQueueSubscriptions
}

// priority is the priority of a network subscription whose path, the peer included, is hops long.
func (o *Options) priority(hops int) int8 {
	if !o.DecreaseNetworkConsumerPriority {
		return 0
	}
	p := int(o.ConsumerPriorityBase)
	if hops > 1 {
		p -= hops + 1
	}
	return int8(max(p, -128))
}

const (
	consumerAdvisory = message.AdvisoryPrefix + "Consumer."
	tempQueueTopic   = message.AdvisoryPrefix + "TempQueue"
	tempTopicTopic   = message.AdvisoryPrefix + "TempTopic"
	connectionTopic  = message.AdvisoryPrefix + "Connection"
)

// advisoryTopic is the composite topic that tells a bridge of demand, exactly as ActiveMQ asks
// for it.
func (o *Options) advisoryTopic() message.Destination {
	text := o.DestinationFilter
	if text == "" {
		var parts []string
		for _, d := range o.DynamicallyIncluded {
			if !d.IsTemp() {
				parts = append(parts, consumerAdvisory+d.Kind.String()+"."+d.Name)
			}
		}
		text = strings.Join(parts, ",")
		if text == "" {
			text = consumerAdvisory + ">"
		}
	}
	if !strings.HasPrefix(text, consumerAdvisory) {
		text = consumerAdvisory + text
	}
	if o.BridgeTempDestinations {
		text += "," + tempQueueTopic + "," + tempTopicTopic
	}
	return message.Destination{Kind: message.Topic, Name: text}
}

func (o *Options) advisoryPrefetch() int32 {
	if o.AdvisoryPrefetchSize > 0 {
		return o.AdvisoryPrefetchSize
	}
	return o.PrefetchSize
}

func (o *Options) remoteLogin() (user, password string) {
	if o.RemoteUserName != "" {
		return o.RemoteUserName, o.RemotePassword
	}
	return o.UserName, o.Password
}

// loginCure is what to do about a login that the peer refuses; "" where that is not about the user.
func (o *Options) loginCure(x *message.Throwable) string {
	switch user, _ := o.remoteLogin(); {
	case kindOf(x) != message.Denied:
		return ""
	case user == "":
		return "; give connector " + o.Name + " the userName and password of a user there"
	case o.RemoteUserName != "":
		return "; see remoteUserName and remotePassword of connector " + o.Name
	}
	return "; see userName and password of connector " + o.Name
}
