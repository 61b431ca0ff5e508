// Package joram runs the JMS 1.1 conformance tests of the Joram project, unmodified, against a real
// ActiveMQ and against hopwire: what the one passes, the other passes. The client is ActiveMQ's.
package joram
