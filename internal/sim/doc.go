// Package sim is a simulated world for the core: brokers with their loops, bridges, disks and
// clients under one virtual clock, everything drawn from one seed, so that a run can be repeated
// to the last event.
//
// The core that runs here is the real one: broker.Broker, bridge.Home and the store in memory with
// its crash model. Simulated are time, the order in which things happen, the connections between
// brokers and clients (latency, cuts, clogs), the disks (delay, lost unsynced batches, no room),
// and the applications.
//
// A World is driven by hand by the network scripts (test/network), and by Plan and Run, which draw
// a topology, faults and applications from a seed, let them run, stop the faults, and hold what
// happened to the promises: nothing stuck, nothing lost, nothing twice, no circles, in order.
package sim
