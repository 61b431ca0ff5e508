// Package wire stands between package openwire and the house: it translates OpenWire structures to
// the nouns of package message and back, and runs the session of one OpenWire connection, for the
// broker's front and for the bridges' links alike.
//
// # Translation
//
// Decoder turns frames into commands, Encoder turns commands into frames; both reuse scratch
// structures, so that a message costs two allocations on its way in (itself, and its bytes in one
// right-sized piece) and none on its way out. Message.Empty keeps what a message.Message cannot
// say by itself (strings that are empty and not null, ids of nulls), so that every message leaves
// as it came, byte for byte. Names are cut at "?", as ActiveMQ does; a consumer's options are kept.
//
// # The session
//
// A Session has two goroutines: one reads, one writes. The reader turns everything that one read of
// the socket gave into one batch for the loop, and may be ahead of the loop by a few batches. What
// the loop sends is collected until the end of the turn; then the Hub wakes the writers that have
// something, each encodes all that waits and flushes once.
//
// Where little goes on, waking goroutines costs more than the work. So a reader runs a batch of few
// commands itself when the loop is at rest, and at the end of a turn with nothing behind it the
// loop writes what little there is itself, as far as the socket takes it without waiting.
//
// # What the hello offers
//
// Both sides of a connection use what both offer (AND). Hopwire offers the loose encoding without
// object cache: it is the cheapest to encode and decode, frames are the same for every receiver,
// and a frame that is skipped cannot put a cache out of step. So that is what every peer gets,
// ActiveMQ and its clients included, until the connector's URI asks for more by
// wireFormat.tightEncodingEnabled=true and wireFormat.cacheEnabled=true; then frames are about 200
// bytes smaller for the price of time, which pays on thin lines. A stack trace is never offered.
// The property HopwireLink tells other Hopwire brokers who they speak to; ActiveMQ ignores it.
package wire
