// Package tidy holds the tree to the rules of the house that a compiler does not know: who may
// import whom, what the core may never touch, how large a file, a function and a package may grow,
// and some words. Its test runs over the whole tree with every `go test ./...`.
//
// A finding is one line: where, which rule, what to do. A new package gets its row in table.go; the
// rest of the rules are in the file named after them.
package tidy
