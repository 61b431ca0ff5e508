// Package interop plays scenarios with real sockets: unmodified JMS clients of both generations,
// real ActiveMQ brokers, and hopwire, in every mixture. Package broker runs the brokers, package
// jms the clients. A test is named after the rule it protects and the number of its scenario.
package interop
