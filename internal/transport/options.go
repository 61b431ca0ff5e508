package transport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
)

// ParseOptions reads a URI's options. Options of an accepted socket may carry ActiveMQ's prefix
// "transport."; "socket." means the same on the side that dials. Names that change nothing here,
// such as backlog (the system's limit counts) and thread settings, are accepted; other unknown
// ones are listed in Ignored. A value of the wrong form is an error.
func ParseOptions(u URI) (Options, error) {
	o := DefaultOptions()
	for name, value := range u.Options {
		if wire, ok := strings.CutPrefix(name, "wireFormat."); ok {
			o.WireFormat[wire] = value
			continue
		}
		if inactivity[name] {
			// ActiveMQ lets a server's own options of these names set the hello's.
			if _, set := u.Options["wireFormat."+name]; !set {
				o.WireFormat[name] = value
			}
			continue
		}
		short := strings.TrimPrefix(strings.TrimPrefix(name, "transport."), "socket.")
		known, allowed := o.set(short, value)
		switch {
		case !known && strings.HasPrefix(name, "socket."): // of TLS
		case !known:
			o.Ignored = append(o.Ignored, name)
		case allowed != "":
			return o, message.Errorf(message.Protocol, "uri %q: option %s: %q is not %s", u, name, value,
				allowed)
		}
	}
	slices.Sort(o.Ignored)
	return o, nil
}

var inactivity = map[string]bool{
	"maxInactivityDuration":            true,
	"maxInactivityDurationInitalDelay": true, "minmumWireFormatVersion": true,
}

// harmless are options of ActiveMQ that steer what does not exist here.
var harmless = map[string]bool{
	"backlog": true, "useQueueForAccept": true, "trace": true,
	"daemon": true, "stackSize": true, "ioBufferSize": true, "closeAsync": true,
	"trafficClass": true, "diffServ": true, "typeOfService": true, "dynamicManagement": true,
	"startLogging": true, "useLocalHost": true, "allowLinkStealing": true, "name": true,
	"logWriterName": true, "jmxPort": true, "minimumThreads": true, "randomize": true,
	"minReconnectDelay": true, "http.": true, "jetty.": true,
	// Of TLS, which tcp does not have; package config says so at start.
	"wantClientAuth": true, "enabledCipherSuites": true, "enabledProtocols": true,
	"verifyHostName": true,
}

// set gives an option its value, or says what it takes; allowed is "" when it took this one.
func (o *Options) set(name, value string) (known bool, allowed string) {
	switch name {
	case "maximumConnections":
		return true, number(value, &o.MaximumConnections, 0, math.MaxInt32)
	case "connectionTimeout":
		return true, millis(value, &o.ConnectionTimeout)
	case "soTimeout":
		return true, millis(value, &o.SoTimeout)
	case "soWriteTimeout":
		allowed = millis(value, &o.StallTimeout)
		if o.StallTimeout <= 0 {
			o.StallTimeout = DefaultStallTimeout
		}
		return true, allowed
	case "soLinger":
		return true, number(value, &o.SoLinger, -1, math.MaxInt16)
	case "socketBufferSize":
		return true, number(value, &o.SocketBufferBytes, 0, math.MaxInt32)
	case "tcpNoDelay":
		return true, boolean(value, &o.TCPNoDelay)
	case "keepAlive":
		return true, boolean(value, &o.KeepAlive)
	case "useInactivityMonitor":
		return true, boolean(value, &o.InactivityMonitor)
	case "useKeepAlive":
		return true, boolean(value, &o.SendKeepAlive)
	}
	if prefix, _, ok := strings.Cut(name, "."); ok {
		name = prefix + "."
	}
	return harmless[name], ""
}

// number reads a number, or says which it may be; one above high is high.
func number(text string, to *int, low, high int) (allowed string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(low) {
		return fmt.Sprintf("a whole number from %d to %d", low, high)
	}
	*to = int(min(n, int64(high)))
	return ""
}

func millis(text string, to *time.Duration) (allowed string) {
	var n int
	if allowed = number(text, &n, 0, math.MaxInt32); allowed == "" {
		*to = time.Duration(n) * time.Millisecond
	}
	return allowed
}

func boolean(text string, to *bool) (allowed string) {
	b, err := strconv.ParseBool(strings.ToLower(text))
	*to = b
	if err != nil {
		return "true or false"
	}
	return ""
}
