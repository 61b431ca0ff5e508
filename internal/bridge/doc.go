// Package bridge is the network of brokers: connectors, handshakes, demand, loop and TTL tests,
// replay, in-doubt copies and the forwarding pipeline, as state machines without I/O. A bridge
// sees its home broker only through Local and its peer through Link.
//
// Home is what the bridges of one broker share. A Connector dials one peer, and again after every
// failure, until it is stopped; an Acceptor is the half of a duplex bridge at the broker that was
// called. Both own a Bridge, which is one link: it introduces itself in the order of commands that
// ActiveMQ has, asks a Hopwire peer about copies that an earlier link left in doubt, and then
// opens a network subscription for each demand in its table. A demand is subscription, filter and
// sink in one: the home broker asks its verdict for each copy and delivers what may cross, and the
// peer's answers settle it, those of one turn together. The package has more than 4,000 lines, as
// all of these work on the state of one link.
//
// The wire facts are those of OpenWire as spoken by ActiveMQ Classic 5.17 and 6; N- and B-numbers
// in test names are scenarios of the project's catalogue.
package bridge
