// Package openwire is the OpenWire codec, versions 1 to 12, tight and loose, with the object
// cache.
//
// The structures and the order of their fields come from spec/commands.json: `go generate` writes
// for each structure one Go struct, one encode and one decode function that name its fields in
// wire order with their version conditions. Both encodings share them; a handful of hand-written
// primitives on Encoder and Decoder (flag, int32, string, nested object ...) know how a value
// looks in the loose or the tight form. The tight form has its booleans in front of the data;
// Encoder fills the two side by side in one walk and joins them at the end.
//
// A connection begins with two hellos (WireFormatInfo), see DecodeHello and Negotiate. The Format
// that comes out makes one Encoder and one Decoder, each with the object cache of its direction;
// neither may be shared between goroutines without a lock.
//
// Null and empty: a nil slice or pointer is null. The string "" is null on the wire, unless its
// bit in the structure's Empty field is set.
//
// What a Decoder returns may share ids, destinations, transaction ids and slices of broker ids
// with earlier results: they are immutable.
package openwire

//go:generate go run ./internal/gen/cmd
