package schema

import "strings"

// storeElements are the persistence adapters. The store here is another one: their settings for
// files, indexes and threads have nothing to act on.
var storeElements = []*Element{
	{Name: "kahaDB", Doc: "a store on disk", Properties: []Property{
		one("locker", Later, "who may open the store", "shared-file-locker", "database-locker",
			"lease-database-locker", "transact-database-locker"),
		one("scheduledThreadPoolExecutor", Tolerated, ""),
		one("transactionIdTransformer", Tolerated, ""),
		one("usageManager", Tolerated, "", "systemUsage"),
		one("brokerService", Tolerated, ""),
	}, Attributes: append([]Attribute{
		attr("directory", Text, "", Honoured, "folder of the store, in the broker's without"),
		attr("indexDirectory", Text, "", Tolerated, ""),
		attr("purgeRecoveredXATransactionStrategy", Text, "NEVER", Honoured,
			"what becomes of prepared XA transactions at start; NEVER has them wait").
			oneOf("NEVER", "COMMIT", "ROLLBACK"),
		attr("enableJournalDiskSyncs", Bool, "true", Tolerated,
			"confirmed messages are always on the disk"),
		attr("journalDiskSyncStrategy", Text, "ALWAYS", Tolerated, "the same").
			oneOf("ALWAYS", "PERIODIC", "NEVER"),
		attr("journalDiskSyncInterval", Millis, "1000", Tolerated, "of PERIODIC"),
		attr("useLock", Bool, "true", Later, "false: two brokers may open the store"),
		attr("lockKeepAlivePeriod", Millis, "0", Tolerated, ""),
		attr("databaseLockedWaitDelay", Millis, "10000", Tolerated, ""),
		attr("stopOnError", Bool, "false", Tolerated, ""),
		attr("locker", Object, "", Later, ""),
		attr("maxFailoverProducersToTrack", Int, "", Tolerated,
			"of each destination as many as maxProducersToAudit of its policyEntry").from(0),
		attr("failoverProducersAuditDepth", Int, "", Tolerated,
			"maxQueueAuditDepth of the policyEntry").from(0),
		attr("journalMaxFileLength", Size, "", Tolerated, "").intFrom(1),
		attr("journalMaxWriteBatchSize", Size, "", Tolerated, "").intFrom(1),
		attr("indexWriteBatchSize", Int, "", Tolerated, "").from(1),
		attr("indexCacheSize", Int, "", Tolerated, "").from(1),
		attr("maxAsyncJobs", Int, "", Tolerated, "").from(1),
		attr("compactAcksAfterNoGC", Int, "", Tolerated, ""),
		attr("checkpointInterval", Millis, "", Tolerated, ""),
		attr("cleanupInterval", Millis, "", Tolerated, ""),
		attr("indexLFUEvictionFactor", Float, "", Tolerated, ""),
		attr("brokerService", Object, "", Tolerated, ""),
		attr("scheduledThreadPoolExecutor", Object, "", Tolerated, ""),
		attr("transactionIdTransformer", Object, "", Tolerated, ""),
		attr("usageManager", Object, "", Tolerated, ""),
	}, tolerated(Text,
		"brokerName directoryArchive preallocationScope preallocationStrategy dataFileFactory",
		tolerated(Bool,
			"archiveCorruptedIndex archiveDataLogs checkForCorruptJournalFiles "+
				"checksumJournalFiles cleanupOnStop compactAcksIgnoresStoreGrowth "+
				"concurrentStoreAndDispatchQueues concurrentStoreAndDispatchTopics "+
				"enableAckCompaction enableIndexDiskSyncs enableIndexPageCaching "+
				"enableIndexRecoveryFile enableIndexWriteAsync enableSubscriptionStatistics "+
				"forceRecoverIndex ignoreMissingJournalfiles useIndexLFRUEviction", nil))...)},
	{Name: "mKahaDB", Status: Later, Open: true,
		Doc: "several stores; here there is one for all, in that folder",
		Attributes: []Attribute{
			attr("directory", Text, "", Honoured, "folder of the store, in the broker's without"),
		}},
	{Name: "memoryPersistenceAdapter", Doc: "no store", Attributes: tolerated(Text,
		"brokerName directory", tolerated(Bool, "createTransactionStore "+
			"useExternalMessageReferences", nil))},
	{Name: "jdbcPersistenceAdapter", Status: Refused, Open: true,
		Doc: "messages in a database are not supported: use kahaDB"},
	{Name: "journalPersistenceAdapter", Status: Refused, Open: true,
		Doc: "messages in a database are not supported: use kahaDB"},
	{Name: "levelDB", Status: Refused, Open: true, Doc: "gone from ActiveMQ: use kahaDB"},
	{Name: "replicatedLevelDB", Status: Refused, Open: true, Doc: "gone from ActiveMQ: use kahaDB"},
	{Name: "journalPersistenceAdapterFactory", Status: Refused, Open: true,
		Doc: "messages in a database are not supported: use kahaDB"},
	{Name: "journaledJDBC", Status: Refused, Open: true,
		Doc: "messages in a database are not supported: use kahaDB"},
	{Name: "pListStoreImpl", Doc: "a spool", Attributes: append([]Attribute{
		attr("directory", Text, "", Honoured, "the same as tmpDataDirectory, and comes before it"),
		attr("brokerService", Object, "", Tolerated, ""),
		attr("indexDirectory", Text, "", Tolerated, ""),
		attr("cleanupInterval", Millis, "", Tolerated, ""),
		attr("journalMaxFileLength", Size, "", Tolerated, "").intFrom(1),
		attr("journalMaxWriteBatchSize", Size, "", Tolerated, "").intFrom(1),
	}, tolerated(Int, "indexCacheSize indexPageSize indexWriteBatchSize", tolerated(Bool,
		"enableIndexWriteAsync failIfDatabaseIsLocked indexEnablePageCaching lazyInit", nil))...),
		Properties: []Property{one("brokerService", Tolerated, "")}},
	{Name: "shared-file-locker", Status: Tolerated, Doc: "a lock in the store's folder",
		Attributes: []Attribute{
			attr("lockAcquireSleepInterval", Millis, "10000", Tolerated, ""),
			attr("failIfLocked", Bool, "false", Later, "end instead of waiting"),
			attr("name", Text, "", Tolerated, ""),
			attr("directory", Text, "", Tolerated, ""),
		}},
	{Name: "database-locker", Status: Refused, Open: true, Doc: "use shared-file-locker"},
	{Name: "lease-database-locker", Status: Refused, Open: true, Doc: "use shared-file-locker"},
	{Name: "transact-database-locker", Status: Refused, Open: true, Doc: "use shared-file-locker"},
}

// tolerated adds rows for settings without anything to act on; names are separated by spaces.
func tolerated(t Type, names string, to []Attribute) []Attribute {
	for name := range strings.FieldsSeq(names) {
		to = append(to, attr(name, t, "", Tolerated, ""))
	}
	return to
}
