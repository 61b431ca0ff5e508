// Package hopwire runs message brokers inside a Go program: it reads ActiveMQ's activemq.xml and
// joins store, core, listeners and bridges into a running broker.
//
// Embed starts a broker in memory, without file, port or socket, in about a millisecond, so that
// each test may have its own; Load and Parse read a configuration, whose Setup starts any other.
// Broker.Dial is the way in from the same process.
//
// Broker.Status and Broker.Explain tell how a broker stands and why its messages wait, as the
// commands hopwire status and explain print it; Setup.Check and Setup.Notices what is to be known
// of a file.
//
// The command hopwire is a thin shell around this package.
package hopwire
