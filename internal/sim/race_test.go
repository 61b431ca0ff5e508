//go:build race

package sim

// raced says that the race detector watches: a seed takes ten times as long, and one goroutine a
// world has no races to find.
const raced = true
