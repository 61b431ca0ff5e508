// Package openwire is the broker's door for OpenWire: it accepts the connections of one transport
// connector, clients' and peer brokers' alike, and joins each to a broker.Connection. Commands go
// to the broker, deliveries and answers back; the socket, the hello and the codec are package
// wire's.
//
// A peer whose BrokerInfo asks for a duplex bridge keeps its registration in the broker, client id
// and all, but from then on its commands belong to the half of the bridge that Peers made of the
// connection. The end of one is the end of both.
//
// # Messages above the frame limit
//
// A frame above wireFormat.maxFrameSize from a peer that has logged in is read over, not kept. Its
// send is answered by an exception with both sizes, or by a ConnectionError when no answer was
// asked for; a transaction it belongs to can only roll back. So a failover client learns of it
// once, instead of sending it again on every new connection. Where an object cache was agreed the
// connection closes after the answer, as what was skipped may have defined entries. A message that
// got in and cannot get out to a consumer whose own limit is lower is dead-lettered, cause
// included.
package openwire
