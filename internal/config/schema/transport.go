package schema

import (
	"math"
	"slices"
)

// transportElements are the connectors that accept connections.
var transportElements = []*Element{
	{Name: "transportConnector", Doc: "accepts clients and brokers", Attributes: []Attribute{
		attr("uri", Text, "", Honoured, "scheme, address and options"),
		attr("name", Text, "", Honoured, "the URI without"),
		attr("discoveryUri", Text, "", Later, "announce the connector"),
		attr("discoveryAgent", Object, "", Later, ""),
		attr("enableStatusMonitor", Bool, "false", Tolerated, ""),
		attr("disableAsyncDispatch", Bool, "false", Tolerated, ""),
		attr("updateClusterClients", Bool, "false", Later, "tell clients of brokers that come"),
		attr("rebalanceClusterClients", Bool, "false", Later, "and make them move"),
		attr("updateClusterClientsOnRemove", Bool, "false", Later, "of brokers that go, too"),
		attr("updateClusterFilter", Text, "", Later, "patterns of broker names, by comma"),
		attr("allowLinkStealing", Bool, "false", Honoured,
			"a client may connect again; its old connection ends, if its user is the same"),
		attr("auditNetworkProducers", Bool, "false", Tolerated,
			"an audit per producer; receipts do more"),
		attr("maximumProducersAllowedPerConnection", Int, "2147483647", Later, ""),
		attr("maximumConsumersAllowedPerConnection", Int, "2147483647", Later, ""),
		attr("warnOnRemoteClose", Bool, "false", Tolerated, ""),
		attr("displayStackTrace", Bool, "false", Tolerated, ""),
		attr("autoStart", Bool, "true", Honoured, "false: the port is not opened").since(600),
		attr("messageAuthorizationPolicy", Object, "", Restricts, "decides for each message"),
		attr("taskRunnerFactory", Object, "", Tolerated, ""),
		attr("publishedAddressPolicy", Object, "", Refused, "write it into the file"),
		attr("brokerInfo", Object, "", Tolerated, ""),
		attr("brokerService", Object, "", Tolerated, ""),
		attr("server", Object, "", Later, ""),
	}, Properties: []Property{
		one("publishedAddressPolicy", Later, "which address clients are told",
			"publishedAddressPolicy"),
		one("messageAuthorizationPolicy", Restricts, "decides for each message"),
		one("taskRunnerFactory", Tolerated, "", "taskRunnerFactory"),
	}},
	{Name: "publishedAddressPolicy", Status: Later, Doc: "which address clients are told",
		Attributes: []Attribute{
			attr("publishedHostStrategy", Text, "DEFAULT", Honoured, "what the host is").
				oneOf("DEFAULT", "IPADDRESS", "HOSTNAME", "FQDN"),
			attr("clusterClientUriQuery", Text, "", Honoured, "options behind the address"),
			attr("portMapping", Text, "", Later, ""),
			attr("hostMapping", Text, "", Later, ""),
		}},
}

// Scheme is what a transport URI may begin with.
type Scheme struct {
	Name   string
	Status Status
	Doc    string
	// Bind and Dial say whether it accepts connections and makes them.
	Bind, Dial bool
}

// Schemes returns every known scheme of a transport. The result must not be changed.
func Schemes() []Scheme { return schemes }

var schemes = []Scheme{
	{"tcp", Honoured, "OpenWire", true, true},
	{"nio", Honoured, "OpenWire; the same as tcp", true, true},
	{"auto", Later, "finds out the protocol", true, true},
	{"auto+nio", Later, "finds out the protocol", true, true},
	{"ssl", Later, "OpenWire over TLS", true, true},
	{"nio+ssl", Later, "OpenWire over TLS", true, true},
	{"auto+ssl", Later, "finds out the protocol, over TLS", true, true},
	{"auto+nio+ssl", Later, "finds out the protocol, over TLS", true, true},
	{"stomp", Later, "STOMP", true, false},
	{"stomp+nio", Later, "STOMP", true, false},
	{"stomp+ssl", Later, "STOMP over TLS", true, false},
	{"stomp+nio+ssl", Later, "STOMP over TLS", true, false},
	{"mqtt", Later, "MQTT", true, false},
	{"mqtt+nio", Later, "MQTT", true, false},
	{"mqtt+ssl", Later, "MQTT over TLS", true, false},
	{"mqtt+nio+ssl", Later, "MQTT over TLS", true, false},
	{"amqp", Later, "AMQP", true, false},
	{"amqp+nio", Later, "AMQP", true, false},
	{"amqp+ssl", Later, "AMQP over TLS", true, false},
	{"amqp+nio+ssl", Later, "AMQP over TLS", true, false},
	{"amqp+ws", Later, "AMQP over WebSocket", true, false},
	{"amqp+wss", Later, "AMQP over WebSocket and TLS", true, false},
	{"ws", Later, "STOMP and MQTT over WebSocket", true, false},
	{"wss", Later, "STOMP and MQTT over WebSocket and TLS", true, false},
	{"http", Later, "OpenWire as XML over HTTP", true, true},
	{"https", Later, "OpenWire as XML over HTTPS", true, true},
	{"vm", Tolerated, "inside a Java program", true, true},
	{"udp", Later, "OpenWire over UDP", true, true},
	{"multicast", Later, "OpenWire over multicast", true, true},
	{"peer", Later, "embedded brokers", true, true},
}

// SchemeNamed returns the scheme, or nil when there is none of that name.
func SchemeNamed(name string) *Scheme {
	for i := range schemes {
		if schemes[i].Name == name {
			return &schemes[i]
		}
	}
	return nil
}

// socketOptions are options of one connection: with the prefix "transport." on a listener, without
// on the URI of a peer.
var socketOptions = []Attribute{
	attr("soTimeout", Millis, "0", Honoured,
		"end a connection that is silent that long").intFrom(0),
	attr("soWriteTimeout", Millis, "0", Honoured,
		"end a connection that takes nothing that long; 0 five minutes").intFrom(0),
	attr("keepAlive", Bool, "false", Honoured, "TCP keep-alive"),
	attr("tcpNoDelay", Bool, "true", Honoured, ""),
	attr("soLinger", Int, "-1", Honoured, "seconds; -1 as the system does").from(-1),
	attr("socketBufferSize", Size, "0", Honoured,
		"0 as the system does; ActiveMQ's default is 65536").intFrom(0),
	attr("ioBufferSize", Size, "8192", Tolerated, ""),
	attr("trafficClass", Int, "0", Tolerated, ""),
	attr("diffServ", Text, "", Tolerated, ""),
	attr("typeOfService", Text, "", Tolerated, ""),
	attr("trace", Bool, "false", Later, "log every command"),
	attr("useInactivityMonitor", Bool, "true", Honoured, "end silent connections"),
	attr("useKeepAlive", Bool, "true", Honoured, "send keep-alives"),
	attr("closeAsync", Bool, "true", Tolerated, ""),
	attr("useLocalHost", Bool, "false", Tolerated, ""),
	attr("connectionTimeout", Millis, "30000", Honoured,
		"most time to connect, then for the hello, then to log in").intFrom(0),
	attr("daemon", Bool, "false", Tolerated, ""),
	attr("stackSize", Size, "0", Tolerated, ""),
	attr("logWriterName", Text, "default", Tolerated, ""),
	attr("dynamicManagement", Bool, "false", Tolerated, ""),
	attr("startLogging", Bool, "true", Tolerated, ""),
	attr("jmxPort", Int, "1099", Tolerated, ""),
}

// inactivityOptions may stand without the prefix wireFormat., too.
var inactivityOptions = []Attribute{
	attr("maxInactivityDuration", Millis, "30000", Honoured,
		"as wireFormat.maxInactivityDuration").intFrom(math.MinInt32),
	attr("maxInactivityDurationInitalDelay", Millis, "10000", Honoured,
		"as wireFormat.maxInactivityDurationInitalDelay").intFrom(0),
}

// tlsOptions restrict who connects; they mean nothing to transports without TLS.
var tlsOptions = []Attribute{
	attr("needClientAuth", Bool, "false", Restricts, "only clients with a certificate"),
	attr("wantClientAuth", Bool, "false", Later, "ask for a certificate"),
	attr("enabledCipherSuites", Text, "", Later, ""),
	attr("enabledProtocols", Text, "", Later, ""),
	attr("verifyHostName", Bool, "true", Later, ""),
	attr("useInactivityMonitor", Bool, "true", Honoured, ""),
}

// protocolOptions are options of protocols other than OpenWire.
var protocolOptions = []Attribute{
	attr("defaultHeartBeat", Text, "0,0", Later, "STOMP"),
	attr("hbGracePeriodMultiplier", Float, "1.0", Later, "STOMP"),
	attr("defaultKeepAlive", Millis, "0", Later, "MQTT"),
	attr("publishDollarTopics", Bool, "false", Later, "MQTT"),
	attr("subscriptionStrategy", Text, "mqtt-default-subscriptions", Later, "MQTT"),
	attr("activeMQSubscriptionPrefetch", Int, "0", Later, "MQTT"),
	attr("transformer", Text, "native", Later, "AMQP").oneOf("jms", "native", "raw"),
	attr("producerCredit", Int, "1000", Later, "AMQP"),
	attr("idleTimeout", Millis, "30000", Later, "AMQP"),
	attr("maxFrameSize", Size, "0", Later, ""),
}

var wireFormatOptions = []Attribute{
	attr("version", Int, "12", Honoured, "highest OpenWire version offered").within(1, 12),
	attr("stackTraceEnabled", Bool, "true", Tolerated, "there are no Java stacks"),
	attr("tcpNoDelayEnabled", Bool, "true", Honoured, "what the hello says of it"),
	attr("cacheEnabled", Bool, "false", Honoured,
		"names are sent once, if the peer offers it, too; "+
			"ActiveMQ's default is true"),
	attr("cacheSize", Int, "1024", Honoured, "so many; 0, or at least 100").within(0, 32767),
	attr("tightEncodingEnabled", Bool, "false", Honoured, "short encoding, if the peer offers it, "+
		"too; ActiveMQ's default is true"),
	attr("sizePrefixDisabled", Bool, "false", Refused, "frames need their size"),
	attr("maxInactivityDuration", Millis, "30000", Honoured,
		"end silent connections; 0 or less never").intFrom(math.MinInt32),
	attr("maxInactivityDurationInitalDelay", Millis, "10000", Honoured,
		"the first look").intFrom(0),
	attr("maxFrameSize", Size, "104857600", Honoured,
		"most bytes of a frame; ActiveMQ has no limit "+
			"unless its file sets this one; no limit is maxFrameSizeEnabled=false").from(1),
	attr("maxFrameSizeEnabled", Bool, "true", Honoured, "false: no limit"),
	attr("host", Text, "", Honoured, "the name the peer is told it was reached by"),
	attr("providerName", Text, "", Tolerated, ""),
	attr("providerVersion", Text, "", Tolerated, ""),
	attr("platformDetails", Text, "", Tolerated, ""),
	attr("includePlatformDetails", Bool, "false", Tolerated, ""),
	attr("maxDataLength", Size, "104857600", Later, "STOMP"),
	attr("connectionAttemptTimeout", Millis, "30000", Later, "STOMP"),
	attr("connectAttemptTimeout", Millis, "30000", Later, "MQTT, AMQP"),
	attr("maxAmqpFrameSize", Size, "131072", Later, "AMQP"),
	attr("allowNonSaslConnections", Bool, "false", Later, "AMQP"),
	attr("transformer", Text, "native", Later, "AMQP"),
	attr("default.*", Text, "", Later, "OpenWire on auto"),
	attr("stomp.*", Text, "", Later, "STOMP on auto"),
	attr("mqtt.*", Text, "", Later, "MQTT on auto"),
	attr("amqp.*", Text, "", Later, "AMQP on auto"),
}

// uriOptions are the options of URIs by where they stand; "x.*" takes any name behind "x.".
var uriOptions = []*Element{
	{Name: "server", Doc: "of a listener", Attributes: append([]Attribute{
		attr("maximumConnections", Int, "2147483647", Honoured, "most connections").from(0),
		attr("backlog", Int, "5000", Tolerated, ""),
		attr("soTimeout", Millis, "0", Honoured,
			"end a connection that is silent that long").intFrom(0),
		attr("socketBufferSize", Size, "0", Honoured,
			"0 as the system does; ActiveMQ's default is 65536").intFrom(0),
		attr("connectionTimeout", Millis, "30000", Honoured,
			"most time for the hello, then to log in").intFrom(0),
		attr("useQueueForAccept", Bool, "true", Tolerated, ""),
		attr("minmumWireFormatVersion", Int, "0", Honoured, "refuse older clients").within(0, 12),
		attr("trace", Bool, "false", Later, "log every command"),
		attr("allowLinkStealing", Bool, "false", Honoured,
			"a client may connect again; its old connection ends, if its user is the same"),
		attr("daemon", Bool, "false", Tolerated, ""),
		attr("stackSize", Size, "0", Tolerated, ""),
		attr("needClientAuth", Bool, "false", Restricts, "only clients with a certificate"),
		attr("wantClientAuth", Bool, "false", Later, ""),
		attr("protocols", Text, "", Later, "of auto"),
		attr("http.*", Text, "", Tolerated, ""),
		attr("jetty.*", Text, "", Tolerated, ""),
	}, inactivityOptions...)},
	{Name: "client", Doc: "of a peer's URI", Attributes: slices.Concat([]Attribute{
		attr("minReconnectDelay", Millis, "0", Tolerated, ""),
		attr("socket.*", Text, "", Later, "TLS"),
	}, inactivityOptions, socketOptions, tlsOptions[1:5])},
	{Name: "transport.", Doc: "of a listener's connections", Attributes: slices.Concat([]Attribute{
		attr("maxInactivityDuration", Millis, "30000", Tolerated,
			"use wireFormat.maxInactivityDuration").intFrom(0),
	}, socketOptions, tlsOptions[:5], protocolOptions)},
	{Name: "wireFormat.", Doc: "of the protocol", Attributes: wireFormatOptions},
	{Name: "auto.", Status: Later, Doc: "of protocol detection", Attributes: []Attribute{
		attr("protocols", Text, "", Later, "which are accepted"),
		attr("protocolDetectionTimeOut", Millis, "30000", Later, ""),
		attr("maxConnectionThreadPoolSize", Int, "2147483647", Tolerated, ""),
	}},
	{Name: "static", Doc: "of static:(...)", Attributes: agentOptions},
	{Name: "failover", Doc: "of failover:(...) and masterslave:(...)", Attributes: failoverOptions},
	{Name: "multicast", Status: Later, Doc: "of multicast://", Attributes: append([]Attribute{
		attr("keepAliveInterval", Millis, "500", Later, ""),
		attr("timeToLive", Int, "1", Later, ""),
		attr("loopBackMode", Bool, "false", Later, ""),
		attr("discovered.*", Text, "", Later, ""),
	}, allLater(agentOptions)...)},
}

// allLater gives attributes as they are where nothing of their element is honoured.
func allLater(list []Attribute) []Attribute {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Status == Honoured {
			out[i].Status = Later
		}
	}
	return out
}

// OptionsAt returns the options that stand at a place, which must be one that URIOptions names.
func OptionsAt(place string) *Element {
	for _, e := range uriOptions {
		if e.Name == place {
			return e
		}
	}
	panic("no URI options are called " + place)
}
