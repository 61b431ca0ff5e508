// Package jms drives an unmodified JMS client from a Go test: a JVM that runs the original client
// library of ActiveMQ, of the javax generation (V5) or of the jakarta generation (V6), and does
// what it is told line by line.
//
//	d := jms.Start(t, jms.V5)
//	conn := d.Connect("tcp://127.0.0.1:61616")
//	c := conn.Consumer("queue://Q?consumer.prefetchSize=1")
//	conn.Send("queue://Q", 30, "m{}")
//	c.Wait(30, 10*time.Second)
//
// Methods without an error result end the test when they fail, so they belong into the test's own
// goroutine; those with one may be called from any. What a test opened is closed at its end.
package jms
