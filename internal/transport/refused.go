package transport

import (
	"errors"
	"net"
	"strings"
	"syscall"
)

// ownMost is how many addresses of this machine are named.
const ownMost = 8

// refused says what can be done about a port that cannot be opened: who has it, or which addresses
// this machine has; "" where nothing is known.
func refused(u URI, err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if who := portHolder(u.Port); who != "" {
			return "; " + who + " has it"
		}
		return "; who has it is told, to root, by: ss -ltnp 'sport = :" + u.Port + "'"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		if own := ownAddresses(); len(own) > 0 {
			return "; the addresses of this machine are " + strings.Join(own, ", ")
		}
	}
	return ""
}

// ownAddresses are those of this machine's interfaces.
func ownAddresses() (own []string) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() && len(own) < ownMost {
			own = append(own, n.IP.String())
		}
	}
	return own
}
