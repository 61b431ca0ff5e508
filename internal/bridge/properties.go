package bridge

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/properties"
)

// Set gives an attribute its value, by its name in activemq.xml. Times are ms; networkTTL sets
// both TTLs, so a later messageTTL or consumerTTL wins. It reports whether it knows the name.
func (o *Options) Set(name, value string) (known bool, err error) {
	if p := o.field(name); p != nil {
		return true, assign(name, value, p)
	}
	switch name {
	case "networkTTL":
		if err = assign(name, value, &o.MessageTTL); err == nil {
			o.ConsumerTTL = o.MessageTTL
		}
		return true, err
	case "inDoubtTimeout":
		if v := strings.TrimSpace(value); v == "never" || v == "-1" {
			o.InDoubtTimeout = NeverTimeout
			return true, nil
		}
		return true, assign(name, value, &o.InDoubtTimeout)
	}
	return false, nil
}

// field gives the place of a plain attribute.
func (o *Options) field(name string) any {
	switch name {
	case "name":
		return &o.Name
	case "duplex":
		return &o.Duplex
	case "staticBridge":
		return &o.StaticBridge
	case "dynamicOnly":
		return &o.DynamicOnly
	case "conduitSubscriptions":
		return &o.ConduitSubscriptions
	case "conduitNetworkQueueSubscriptions":
		return &o.ConduitNetworkQueueSubscriptions
	case "dynamicallyIncludedDestinations":
		return &o.DynamicallyIncluded
	case "staticallyIncludedDestinations":
		return &o.StaticallyIncluded
	case "excludedDestinations":
		return &o.Excluded
	case "destinationFilter":
		return &o.DestinationFilter
	case "bridgeTempDestinations":
		return &o.BridgeTempDestinations
	case "decreaseNetworkConsumerPriority":
		return &o.DecreaseNetworkConsumerPriority
	case "consumerPriorityBase":
		return &o.ConsumerPriorityBase
	case "consumerTTL":
		return &o.ConsumerTTL
	case "messageTTL":
		return &o.MessageTTL
	case "prefetchSize":
		return &o.PrefetchSize
	case "advisoryPrefetchSize":
		return &o.AdvisoryPrefetchSize
	case "advisoryAckPercentage":
		return &o.AdvisoryAckPercentage
	case "alwaysSyncSend":
		return &o.AlwaysSyncSend
	case "suppressDuplicateQueueSubscriptions":
		return &o.SuppressDuplicateQueueSubscriptions
	case "suppressDuplicateTopicSubscriptions":
		return &o.SuppressDuplicateTopicSubscriptions
	case "advisoryForFailedForward":
		return &o.AdvisoryForFailedForward
	case "clientIdToken":
		return &o.ClientIDToken
	}
	return o.ownField(name)
}

// ownField gives the place of attributes that do not travel, and of Hopwire's own.
func (o *Options) ownField(name string) any {
	switch name {
	case "userName":
		return &o.UserName
	case "password":
		return &o.Password
	case "remoteUserName":
		return &o.RemoteUserName
	case "remotePassword":
		return &o.RemotePassword
	case "forwardAhead":
		return &o.ForwardAhead
	case "initialReconnectDelay":
		return &o.InitialReconnectDelay
	case "maxReconnectDelay":
		return &o.MaxReconnectDelay
	case "useExponentialBackOff":
		return &o.UseExponentialBackOff
	case "minConnectTime":
		return &o.MinConnectTime
	}
	return nil
}

func assign(name, value string, p any) error {
	value = strings.TrimSpace(value)
	var err error
	var n int64
	switch p := p.(type) {
	case *string:
		*p = value
	case *bool:
		*p, err = strconv.ParseBool(strings.ToLower(value))
	case *int8:
		n, err = strconv.ParseInt(value, 10, 8)
		*p = int8(n)
	case *int32:
		n, err = strconv.ParseInt(value, 10, 32)
		*p = int32(n)
	case *int:
		n, err = strconv.ParseInt(value, 10, 32)
		*p = int(n)
	case *time.Duration:
		n, err = strconv.ParseInt(value, 10, 40)
		*p = time.Duration(n) * time.Millisecond
	case *[]message.Destination:
		*p = parseList(value)
	}
	if err != nil {
		return message.Errorf(message.Protocol, "%s=%q: %w", name, value, err)
	}
	return nil
}

// parseList reads "[queue://A, topic://B?option]", with or without the brackets.
func parseList(text string) []message.Destination {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
	var out []message.Destination
	for part := range strings.SplitSeq(text, ",") {
		if d, _ := message.ParseDestination(part, message.Queue); d.Name != "" {
			out = append(out, d)
		}
	}
	return out
}

func listText(list []message.Destination) string {
	var parts []string
	for _, d := range list {
		parts = append(parts, d.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// travels are the attributes that the initiator of a bridge tells, as ActiveMQ does. Credentials
// do not travel, nor does networkTTL: both TTLs do. What is the same in each bridge of ours does
// not either: it is the default there.
var travels = []string{"name", "duplex", "staticBridge", "dynamicOnly", "conduitSubscriptions",
	"conduitNetworkQueueSubscriptions", "dynamicallyIncludedDestinations",
	"staticallyIncludedDestinations", "excludedDestinations", "destinationFilter",
	"bridgeTempDestinations", "decreaseNetworkConsumerPriority", "consumerPriorityBase",
	"consumerTTL", "messageTTL", "prefetchSize", "advisoryPrefetchSize",
	"advisoryAckPercentage", "alwaysSyncSend",
	"suppressDuplicateQueueSubscriptions", "suppressDuplicateTopicSubscriptions",
	"advisoryForFailedForward", "clientIdToken", "forwardAhead"}

// properties is the text of BrokerInfo.networkProperties: a Java properties file.
func (o *Options) properties(self message.BrokerInfo) string {
	values := map[string]string{"brokerName": self.Name, "brokerURL": self.URL}
	for _, name := range travels {
		values[name] = valueText(o.field(name))
	}
	for _, name := range []string{"dynamicallyIncludedDestinations",
		"staticallyIncludedDestinations", "excludedDestinations"} {
		if values[name] == "[]" {
			delete(values, name)
		}
	}
	topic := o.advisoryTopic().Name
	values["destinationFilter"], _, _ = strings.Cut(topic, ","+tempQueueTopic)
	values["inDoubtTimeout"] = "never"
	if o.InDoubtTimeout != NeverTimeout {
		values["inDoubtTimeout"] = strconv.FormatInt(o.InDoubtTimeout.Milliseconds(), 10)
	}
	return properties.Encode(values)
}

func valueText(p any) string {
	switch p := p.(type) {
	case *string:
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *int8:
		return strconv.Itoa(int(*p))
	case *int32:
		return strconv.Itoa(int(*p))
	case *int:
		return strconv.Itoa(*p)
	case *[]message.Destination:
		return listText(*p)
	}
	return ""
}

// optionsOf reads the settings that the initiator of a duplex bridge tells. Names that are not
// known, and values that make no sense, leave the default.
func optionsOf(text string) Options {
	o := DefaultOptions(5)
	values := properties.Decode(text)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		before := o
		if _, err := o.Set(name, values[name]); err != nil {
			o = before
		}
	}
	o.UserName, o.Password, o.RemoteUserName, o.RemotePassword = "", "", "", ""
	return o
}
