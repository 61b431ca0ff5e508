//go:build !linux

package loop

// announce has nothing to show: package transport makes bare system calls on Linux alone.
func announce() {}
