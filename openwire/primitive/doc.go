// Package primitive reads and writes the value forms that OpenWire carries inside byte fields:
// modified UTF-8, primitive maps (message properties, map bodies, the hello's options), primitive
// streams, and the message bodies made of them, compressed or not.
//
// It knows nothing of commands or connections and needs only the standard library, so that any
// package holding raw properties or a raw body can look into them without decoding the rest.
// Every reader bounds counts, lengths and nesting by what is left of its input before it
// allocates.
package primitive
