// Package load drives a broker over raw OpenWire sockets with as little work for each message as
// possible, 0.5 to 3 µs, so that the broker is what is measured. It writes and reads only the few
// commands it needs, in version 12, loose and without cache, and does not use package openwire: a
// measurement should not depend on what it measures.
//
// Judge by the broker's CPU per message: rates move with what else the machine does. Saturated runs
// (InFlight) give rates and CPU, their latencies mean nothing; latency comes from runs with a Rate,
// whose stamps are the scheduled times of sending.
package load
