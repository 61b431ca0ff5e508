//go:build !linux

package transport

import (
	"net"
	"time"
)

// unanswered is not known here.
func unanswered(net.Conn) (since time.Duration, ok bool) { return 0, false }
