package sim

import (
	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/store"
)

// Plant is a fault planted in a broker, to see that the checkers find it: what stands between the
// core and its world misbehaves.
type Plant struct {
	Store func(l *Life, s broker.Storage) broker.Storage
	Local func(l *Life, b *broker.Broker) bridge.Local
	Clock func(l *Life, e loop.Env) loop.Env
	// Headers changes what the broker finds at its start.
	Headers func(h []store.Header) []store.Header
	// OneRun has the broker tell its peers the same run after each start.
	OneRun bool
}

// Life is what a planted fault may know of the broker it is in.
type Life struct {
	Node   *Node
	Number int // of the start, from 1
	Post   func(func())
}

// around puts the fault around the core's surroundings; a nil Plant puts nothing there.
func (p *Plant) around(l *life) (broker.Storage, func(*broker.Broker) bridge.Local, loop.Env) {
	var store broker.Storage = l.storage
	local := func(b *broker.Broker) bridge.Local { return b }
	var clock loop.Env = l.env
	if p == nil {
		return store, local, clock
	}
	x := &Life{Node: l.node, Number: l.number, Post: l.env.post}
	if p.Store != nil {
		store = p.Store(x, store)
	}
	if p.Local != nil {
		local = func(b *broker.Broker) bridge.Local { return p.Local(x, b) }
	}
	if p.Clock != nil {
		clock = p.Clock(x, clock)
	}
	return store, local, clock
}
