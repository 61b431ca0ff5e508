// Package hostile holds a broker to its promises while everything around it is bad: strangers on
// the port, lying lengths, clients that vanish or never read, too few files, too little memory,
// kill -9, a full disk, peers that stop half-way through a handshake. Most tests run the real
// binary, built once per run; those that count goroutines run a broker inside the test. All of it
// is on loopback.
//
// The tests print what they measured; run them with -v to read the figures. With BACKLOG=n, as
// `make bench-backlog` sets it, one fills a queue with n messages of 1 KiB; without it that test
// is skipped.
package hostile
