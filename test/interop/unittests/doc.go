// Package unittests runs unit tests of ActiveMQ's own, unmodified and from their sources, against
// a real ActiveMQ and against hopwire: those that only need a connection, and that the real one
// passes.
//
// The sources are not here: $ACTIVEMQ_SOURCES names a checkout of ActiveMQ's tag activemq-5.17.2,
// and without it the test is skipped. Which tests it is about is the list in docs/compatibility.md.
//
// Such a test makes its broker in its own JVM, by new BrokerService() or a vm: address. The folder
// java has a stand-in for that class, which starts nothing, and transports for vm: and tcp: that
// dial the broker of the property hopwire.url instead. What asks the stand-in for more than a place
// to connect to ends with a NoSuchMethodError, and is not of the list.
package unittests
