// Package joram runs the JMS 1.1 conformance tests of the Joram project, unmodified,
// with ActiveMQ's client against a real ActiveMQ and against hopwire: what the one passes, the other passes.
package joram
