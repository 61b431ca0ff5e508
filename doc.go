// Package hopwire runs message brokers inside a Go program: it reads ActiveMQ's activemq.xml and
// joins store, core, listeners and bridges into a running broker.
//
// The command hopwire is a thin shell around this package.
package hopwire
