package schema

// networkElements are the network connectors.
var networkElements = []*Element{
	{Name: "networkConnector", Doc: "forwards messages to other brokers",
		Attributes: append([]Attribute{
			attr("uri", Text, "", Honoured, "static:(...), masterslave:(...) or a discovery agent"),
			attr("discoveryURI", Text, "", Honoured, "the same"),
			attr("discoveryAgent", Object, "", Refused, "write the URI into the file"),
		}, connectorAttributes...), Properties: connectorProperties},
	{Name: "multicastNetworkConnector", Status: Later, Open: true,
		Doc: "one bridge over a group transport"},
	{Name: "ldapNetworkConnector", Status: Later, Open: true, Doc: "brokers from a directory"},
}

var connectorProperties = []Property{
	many("dynamicallyIncludedDestinations", Honoured, "only demand for these", destinationNames...),
	many("staticallyIncludedDestinations", Honoured, "these without demand", destinationNames...),
	many("excludedDestinations", Honoured, "never these", destinationNames...),
	many("durableDestinations", Later, "topics whose durables are revived", destinationNames...),
	one("sslContext", Later, "keys and certificates", "sslContext"),
	one("bridgeFactory", Later, "Java code"),
	one("connectionFilter", Later, "Java code"),
	one("brokerService", Tolerated, ""),
}

// connectorAttributes are the settings of every kind of network connector.
var connectorAttributes = []Attribute{
	attr("name", Text, "NC", Honoured, "part of client ids and durable names"),
	attr("localUri", Text, "", Tolerated, "a bridge is always inside its broker"),
	attr("brokerName", Text, "", Tolerated, ""),
	attr("brokerURL", Text, "", Tolerated, ""),
	attr("userName", Text, "", Honoured, "at the peer, unless remoteUserName is set"),
	attr("password", Text, "", Honoured, ""),
	attr("remoteUserName", Text, "", Honoured, "for the remote broker, instead"),
	attr("remotePassword", Text, "", Honoured, ""),
	attr("duplex", Bool, "false", Honoured, "forward both ways over one connection"),
	attr("staticBridge", Bool, "false", Honoured, "only staticallyIncludedDestinations"),
	attr("dynamicOnly", Bool, "false", Tolerated, "revive a durable only for its subscriber"),
	attr("conduitSubscriptions", Bool, "true", Honoured, "one subscription for all consumers"),
	attr("conduitNetworkQueueSubscriptions", Bool, "false", Honoured,
		"also for those that are bridges"),
	attr("destinationFilter", Text, "", Honoured, "which advisories are asked for"),
	attr("useVirtualDestSubs", Bool, "false", Later, "demand from virtual destinations"),
	attr("syncDurableSubs", Bool, "false", Later, "compare durables at start"),
	attr("bridgeTempDestinations", Bool, "true", Honoured, "temporary destinations cross, too"),
	attr("decreaseNetworkConsumerPriority", Bool, "false", Honoured,
		"local consumers first, then near brokers").six("true"),
	attr("consumerPriorityBase", Int, "-5", Honoured, "that lower priority"),
	attr("networkTTL", Int, "1", Honoured, "hops of subscriptions and messages; -1 any"),
	attr("consumerTTL", Int, "1", Honoured, "hops of subscriptions; -1 any"),
	attr("messageTTL", Int, "1", Honoured, "hops of messages; -1 any"),
	attr("prefetchSize", Int, "1000", Honoured, "window of each subscription"),
	attr("advisoryPrefetchSize", Int, "0", Honoured, "window for advisories; 0 prefetchSize"),
	attr("advisoryAckPercentage", Int, "75", Honoured, "part of it that is acked at a time"),
	attr("dispatchAsync", Bool, "true", Tolerated, "there is no other way"),
	attr("alwaysSyncSend", Bool, "true", Honoured, "wait for answers to all messages"),
	attr("suppressDuplicateQueueSubscriptions", Bool, "false", Honoured,
		"one way to a consumer in a ring"),
	attr("suppressDuplicateTopicSubscriptions", Bool, "true", Honoured, "the same for topics"),
	attr("useCompression", Bool, "false", Later, "compress bodies"),
	attr("checkDuplicateMessagesOnDuplex", Bool, "false", Tolerated,
		"drop what arrives twice; receipts do it anyway"),
	attr("advisoryForFailedForward", Bool, "false", Honoured,
		"tell of messages that can never cross"),
	attr("useBrokerNamesAsIdSeed", Bool, "true", Tolerated, "").since(518),
	attr("useBrokerNameAsIdSees", Bool, "true", Tolerated, ""),
	attr("gcDestinationViews", Bool, "true", Tolerated, "views cost nothing"),
	attr("gcSweepTime", Millis, "60000", Tolerated, ""),
	attr("clientIdToken", Text, "_", Honoured, "separator in client ids"),
	attr("autoStart", Bool, "true", Honoured, "false: it stays stopped").since(518),
	attr("inDoubtTimeout", Patience, "300000", Honoured, "Hopwire's own: how long a copy that a "+
		"peer did not answer for waits for it; never, or -1: for ever"),
	attr("forwardAhead", Bool, "false", Honoured, "Hopwire's own: forward persistent messages "+
		"before they are on the disk here"),
	attr("objectName", Text, "", Tolerated, ""),
	attr("connectorURI", Text, "", Tolerated, ""),
	attr("sslContext", Object, "", Later, ""),
	attr("bridgeFactory", Object, "", Later, "Java code"),
	attr("connectionFilter", Object, "", Later, "Java code"),
	attr("brokerService", Object, "", Tolerated, ""),
}

// agentOptions are the options behind the list of a static or masterslave URI.
var agentOptions = []Attribute{
	attr("initialReconnectDelay", Millis, "1000", Honoured, "wait after a failure"),
	attr("maxReconnectDelay", Millis, "30000", Honoured,
		"most wait; at least initialReconnectDelay"),
	attr("useExponentialBackOff", Bool, "true", Honoured, "twice as long each time"),
	attr("backOffMultiplier", Float, "2", Later, "by this factor"),
	attr("maxReconnectAttempts", Int, "0", Later, "then give up; 0 never"),
	attr("minConnectTime", Millis, "5000", Honoured, "a shorter life counts as a failure"),
	attr("group", Text, "", Tolerated, ""),
}

// failoverOptions are the options behind the list of a failover or masterslave URI.
var failoverOptions = []Attribute{
	attr("initialReconnectDelay", Millis, "10", Tolerated, "the connector's back-off is used"),
	attr("maxReconnectDelay", Millis, "30000", Tolerated, ""),
	attr("useExponentialBackOff", Bool, "true", Tolerated, ""),
	attr("backOffMultiplier", Float, "2", Tolerated, ""),
	attr("randomize", Bool, "true", Honoured,
		"the order is by chance, made once at start; false: as written"),
	attr("maxReconnectAttempts", Int, "-1", Tolerated, ""),
	attr("startupMaxReconnectAttempts", Int, "-1", Tolerated, ""),
	attr("timeout", Millis, "-1", Tolerated, ""),
	attr("backup", Bool, "false", Tolerated, ""),
	attr("backupPoolSize", Int, "1", Tolerated, ""),
	attr("priorityBackup", Bool, "false", Later, "go back to the first"),
	attr("priorityURIs", Text, "", Later, ""),
	attr("trackMessages", Bool, "false", Tolerated, ""),
	attr("maxCacheSize", Size, "131072", Tolerated, ""),
	attr("updateURIsSupported", Bool, "true", Later, "follow the peer's cluster updates"),
	attr("rebalanceUpdateURIs", Bool, "true", Tolerated, ""),
	attr("updateURIsURL", Text, "", Later, ""),
	attr("warnAfterReconnectAttempts", Int, "10", Tolerated, ""),
	attr("nested.*", Text, "", Later, "options for every member"),
}
