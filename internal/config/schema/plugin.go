package schema

import (
	"slices"
	"strings"
)

// pluginNames are the elements that plugins takes.
var pluginNames = []string{"simpleAuthenticationPlugin", "jaasAuthenticationPlugin",
	"jaasCertificateAuthenticationPlugin", "jaasDualAuthenticationPlugin", "authorizationPlugin",
	"statisticsBrokerPlugin", "timeStampingBrokerPlugin", "loggingBrokerPlugin",
	"discardingDLQBrokerPlugin", "forcePersistencyModeBrokerPlugin", "forcePersistencyModeBroker",
	"traceBrokerPathPlugin", "redeliveryPlugin", "destinationPathSeparatorPlugin",
	"destinationsPlugin", "connectionDotFilePlugin", "destinationDotFilePlugin",
	"virtualSelectorCacheBrokerPlugin", "udpTraceBrokerPlugin", "multicastTraceBrokerPlugin",
	"runtimeConfigurationPlugin", "partitionBrokerPlugin"}

var timeStampingAttributes = []Attribute{
	attr("zeroExpirationOverride", Millis, "0", Astray,
		"messages without an expiration never expire here, and wait for ever"),
	attr("ttlCeiling", Millis, "0", Astray,
		"messages expire when their producer says, however late that is"),
	attr("futureOnly", Bool, "false", Later, ""),
	attr("processNetworkMessages", Bool, "false", Later, ""),
}

const forcesMode = "sets the delivery mode; here the producer's holds: what is not persistent" +
	" ends with the broker"

// pluginElements are the plugins.
var pluginElements = []*Element{
	{Name: "simpleAuthenticationPlugin", Doc: "users in this file", Attributes: []Attribute{
		attr("anonymousAccessAllowed", Bool, "false", Honoured, "let clients in without a name"),
		attr("anonymousUser", Text, "anonymous", Honoured, "as this user"),
		attr("anonymousGroup", Text, "anonymous", Honoured, "in this group"),
		attr("userPasswords", Object, "", Refused, "use users"),
		attr("userGroups", Object, "", Refused, "use users"),
	}, Properties: []Property{
		many("users", Honoured, "the users", "authenticationUser"),
	}},
	{Name: "authenticationUser", Doc: "a user", Attributes: []Attribute{
		attr("username", Text, "", Honoured, ""),
		attr("password", Text, "", Honoured, ""),
		attr("groups", Text, "", Honoured, "by comma"),
	}},
	{Name: "authorizationPlugin", Doc: "who may read, write and create", Properties: []Property{
		one("map", Honoured, "the rights", "authorizationMap", "simpleAuthorizationMap",
			"lDAPAuthorizationMap", "cachedLDAPAuthorizationMap"),
	}},
	{Name: "authorizationMap", Doc: "rights in this file", Attributes: []Attribute{
		attr("groupClass", Text, "", Tolerated, "each entry has its own"),
	}, Properties: []Property{
		many("authorizationEntries", Honoured, "all that take a destination count together",
			"authorizationEntry"),
		one("defaultEntry", Honoured, "counts for every destination, besides",
			"authorizationEntry"),
		one("tempDestinationAuthorizationEntry", Honoured,
			"temporary destinations; without it everybody has all rights to these",
			"tempDestinationAuthorizationEntry"),
	}},
	{Name: "authorizationEntry", Doc: "rights to some destinations",
		Attributes: slices.Concat([]Attribute{
			attr("queue", Text, "", Honoured, "which queues: a name or pattern, several by comma"),
			attr("topic", Text, "", Honoured, "which topics, likewise"),
			attr("tempQueue", Text, "", Refused, "use tempDestinationAuthorizationEntry"),
			attr("tempTopic", Text, "", Refused, "use tempDestinationAuthorizationEntry"),
			attr("destination", Object, "", Refused, "use queue or topic"),
		}, rightAttributes)},
	{Name: "tempDestinationAuthorizationEntry", Doc: "rights to temporary destinations",
		Attributes: rightAttributes},
	{Name: "simpleAuthorizationMap", Status: Restricts, Open: true, Doc: "rights as Java objects"},
	{Name: "lDAPAuthorizationMap", Status: Restricts, Open: true, Doc: "rights by LDAP"},
	{Name: "cachedLDAPAuthorizationMap", Status: Restricts, Open: true, Doc: "rights by LDAP"},
	{Name: "statisticsBrokerPlugin", Doc: "answers questions about counters"},
	{Name: "jaasAuthenticationPlugin", Status: Restricts, Open: true, Doc: "users by JAAS"},
	{Name: "jaasCertificateAuthenticationPlugin", Status: Restricts, Open: true,
		Doc: "users by certificate"},
	{Name: "jaasDualAuthenticationPlugin", Status: Restricts, Open: true,
		Doc: "users by JAAS or certificate"},
	{Name: "timeStampingBrokerPlugin", Status: Later, Doc: "the broker's clock",
		Attributes: timeStampingAttributes},
	{Name: "loggingBrokerPlugin", Status: Later, Open: true, Doc: "logs what happens"},
	{Name: "discardingDLQBrokerPlugin", Status: Astray, Open: true,
		Doc: "drops dead letters; here they go to the dead letter queue of their policy, and stay"},
	{Name: "forcePersistencyModeBrokerPlugin", Status: Astray, Open: true, Doc: forcesMode},
	{Name: "forcePersistencyModeBroker", Status: Astray, Open: true, Doc: forcesMode},
	{Name: "traceBrokerPathPlugin", Status: Later, Open: true, Doc: "the path as a property"},
	{Name: "redeliveryPlugin", Status: Astray, Open: true, Doc: "redelivery by the broker, after a" +
		" delay; here what a consumer gives up goes to the dead letter queue at once"},
	{Name: "destinationPathSeparatorPlugin", Status: Astray, Open: true,
		Doc: "another separator in names; here A/B is a queue of that name, not A.B"},
	{Name: "destinationsPlugin", Status: Later, Open: true, Doc: "keeps the list of destinations"},
	{Name: "connectionDotFilePlugin", Status: Later, Open: true, Doc: "a picture"},
	{Name: "destinationDotFilePlugin", Status: Later, Open: true, Doc: "a picture"},
	{Name: "virtualSelectorCacheBrokerPlugin", Status: Later, Open: true,
		Doc: "selectors of consumers that left"},
	{Name: "udpTraceBrokerPlugin", Status: Later, Open: true, Doc: "sends what happens"},
	{Name: "multicastTraceBrokerPlugin", Status: Later, Open: true, Doc: "sends what happens"},
	{Name: "runtimeConfigurationPlugin", Status: Later, Open: true, Doc: "reads changes of this file"},
	{Name: "partitionBrokerPlugin", Status: Later, Open: true, Doc: "gone from ActiveMQ"},
}

// rightAttributes are who has which right.
var rightAttributes = []Attribute{
	attr("groupClass", Text, "org.apache.activemq.jaas.GroupPrincipal", Honoured,
		"another class has no members: users are in groups alone"),
	attr("read", Text, "", Honoured, "who may consume and browse: groups by comma; * is "+
		"any, and at level 6 a user of none as well"),
	attr("write", Text, "", Honoured, "who may send"),
	attr("admin", Text, "", Honoured, "who may make a destination that is not there, and remove it"),
	attr("readACLs", Object, "", Refused, "use read"),
	attr("writeACLs", Object, "", Refused, "use write"),
	attr("adminACLs", Object, "", Refused, "use admin"),
}

// DecidesAccess reports whether the Java class of a plugin seems to decide about access.
func DecidesAccess(class string) bool {
	class = strings.ToLower(class)
	return slices.ContainsFunc(accessWords, func(w string) bool { return strings.Contains(class, w) })
}

// accessWords are parts of the Java class names of plugins that decide about access.
var accessWords = []string{"shiro", "security", "auth", "jaas"}

// destinationElements name destinations and what stands before them.
var destinationElements = []*Element{
	{Name: "queue", Doc: "a queue", Attributes: destinationAttributes},
	{Name: "topic", Doc: "a topic", Attributes: destinationAttributes},
	{Name: "tempQueue", Doc: "a temporary queue", Attributes: destinationAttributes},
	{Name: "tempTopic", Doc: "a temporary topic", Attributes: destinationAttributes},
	{Name: "virtualDestinationInterceptor", Doc: "virtual destinations", Properties: []Property{
		many("virtualDestinations", Honoured, "the rules", "virtualTopic", "compositeQueue",
			"compositeTopic"),
	}},
	{Name: "virtualTopic", Status: Astray, Doc: "a topic whose subscribers are queues",
		Attributes: virtualTopicAttributes},
	{Name: "compositeQueue", Status: Astray, Doc: "a queue that forwards",
		Attributes: compositeAttributes, Properties: compositeProperties},
	{Name: "compositeTopic", Status: Astray, Doc: "a topic that forwards",
		Attributes: compositeAttributes, Properties: compositeProperties},
	{Name: "filteredDestination", Status: Later,
		Doc: "a target with a selector", Attributes: []Attribute{
			attr("queue", Text, "", Honoured, "a queue"),
			attr("topic", Text, "", Honoured, "a topic"),
			attr("selector", Text, "", Honoured, "which messages"),
			attr("filter", Object, "", Refused, "use selector"),
			attr("destination", Object, "", Refused, "use queue or topic"),
		}},
	{Name: "mirroredQueue", Status: Astray, Doc: "every queue is mirrored to a topic",
		Attributes: []Attribute{
			attr("prefix", Text, "VirtualTopic.Mirror.", Later, ""),
			attr("postfix", Text, "", Later, ""),
			attr("copyMessage", Bool, "true", Tolerated, ""),
		}},
}

var destinationAttributes = []Attribute{
	attr("physicalName", Text, "", Honoured, "its name"),
	attr("name", Text, "", Honoured, "the same"),
	attr("DLQ", Bool, "false", Tolerated, ""),
	attr("properties", Object, "", Tolerated, ""),
	attr("connectionId", Text, "", Tolerated, ""),
	attr("sequenceId", Int, "0", Tolerated, ""),
}

var virtualTopicAttributes = []Attribute{
	attr("name", Text, ">", Honoured, "which topics"),
	attr("prefix", Text, "Consumer.*.", Honoured, "before the name of a queue"),
	attr("postfix", Text, "", Honoured, "after it"),
	attr("selectorAware", Bool, "false", Honoured, "only queues with a consumer that takes it"),
	attr("local", Bool, "false", Honoured, "not for messages of other brokers"),
	attr("concurrentSend", Bool, "false", Tolerated, ""),
	attr("transactedSend", Bool, "false", Tolerated, "copies are always all or nothing"),
	attr("dropOnResourceLimit", Bool, "false", Honoured, "drop a copy, do not wait"),
	attr("setOriginalDestination", Bool, "true", Honoured, ""),
}

var compositeAttributes = []Attribute{
	attr("name", Text, "", Honoured, "its name, also a pattern"),
	attr("forwardOnly", Bool, "true", Honoured, "false: keep a copy"),
	attr("sendWhenNotMatched", Bool, "false", Honoured, "keep a copy when no target took one"),
	attr("concurrentSend", Bool, "false", Tolerated, ""),
	attr("copyMessage", Bool, "true", Tolerated, ""),
}

var compositeProperties = []Property{
	many("forwardTo", Honoured, "the targets", "queue", "topic", "filteredDestination"),
}
