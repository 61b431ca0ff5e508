// Package cli is the command line: hopwire start, status, explain and the others, as structs that
// kong fills from arguments. With its tests it has more than 4,000 lines, as each command has a
// file or two, and all share how brokers are found, what is printed, and the exit codes.
package cli
