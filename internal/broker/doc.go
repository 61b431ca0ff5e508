// Package broker is one broker's core: connections and their sessions, the steps of a send,
// queues and topics, acknowledgements, transactions, dead letters, advisories, and what its
// bridges ask of it. It does no I/O: commands come in as values, answers and deliveries go out
// through Outbox, and what must be durable goes to a Storage that answers later.
//
// Everything runs on one loop. State machines with a life of their own are in the packages below
// this one (queue, window, audit, usage); this package joins them. It has more than 4,000 lines
// because what crosses destinations (transactions, composites, advisories, memory, demand) has one
// owner; cutting it would turn plain calls into interfaces.
package broker
