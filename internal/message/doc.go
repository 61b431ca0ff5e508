// Package message is Hopwire's vocabulary: messages, destinations, ids, broker paths, the
// commands that clients and brokers exchange, reason codes and error kinds. Everything else in
// the house speaks in these nouns; the package itself imports nothing but the standard library
// and the primitive maps of the wire.
//
// Names and meanings are those of OpenWire and ActiveMQ Classic. The wire's own structures live
// in package openwire; package wire translates.
package message
