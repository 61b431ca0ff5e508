// Package bridge is the network of brokers: connectors, handshakes, demand, loop and TTL tests,
// replay, receipts' other half, in-doubt copies, and the forwarding pipeline, as state machines
// without I/O. A bridge sees its home broker only through Local and its peer through Link.
package bridge
