// Package broker runs broker processes for tests: a real ActiveMQ 5.17 or 6.3 or the hopwire
// binary, from the same activemq.xml, so that a scenario can be played with each on each side.
//
//	b := broker.Start(t, broker.ActiveMQ, broker.Options{Name: "b"})
//	a := broker.Start(t, broker.Hopwire, broker.Options{
//		Name:       "a",
//		Connectors: []broker.Connector{{Name: "ab", URI: broker.Static(b)}},
//	})
//
// Everything listens on 127.0.0.1 and keeps its files in the test's temporary folder. A broker is
// killed at the end of its test at the latest; if the test failed, the end of its log is shown.
package broker
