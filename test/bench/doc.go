// Package bench puts the same load on Hopwire and on the real ActiveMQ in turn. The results are Go
// benchmarks with the broker in their name, so that benchstat shows them side by side:
//
//	make bench            one broker, and two with a bridge
//	make bench-backlog    filling, restarting with and draining a backlog
//
// Judge by brokerµs/msg, the CPU that the broker's process uses for each message received; rates
// and saturated latencies also show what else the machine does. p50 and p99 mean something in the
// cases with a rate. ROUNDS=5 repeats everything, the brokers alternating.
package bench
