//go:build !invariants

package disk

// invariants turns on checks that cost a read per write: build with -tags invariants.
const invariants = false
