// Package joram runs the JMS 1.1 conformance tests of the Joram project, unmodified, with the client
// of ActiveMQ against a real ActiveMQ and against hopwire: what the real one passes, hopwire passes.
package joram
