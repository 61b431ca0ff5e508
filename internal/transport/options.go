package transport

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
)

// unescape decodes %XX and a plus, which is a blank: ActiveMQ's rule, and package config's.
func unescape(s string) (string, error) { return url.QueryUnescape(s) }

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
		known, ok := o.set(short, value)
		switch {
		case !known && strings.HasPrefix(name, "socket."): // of TLS
		case !known:
			o.Ignored = append(o.Ignored, name)
		case !ok:
			return o, message.Errorf(message.Protocol, "uri %q: option %s=%s is no valid value",
				u, name, value)
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

func (o *Options) set(name, value string) (known, ok bool) {
	switch name {
	case "maximumConnections":
		return true, number(value, &o.MaximumConnections, 0, math.MaxInt32)
	case "connectionTimeout":
		return true, millis(value, &o.ConnectionTimeout)
	case "soTimeout":
		return true, millis(value, &o.SoTimeout)
	case "soWriteTimeout":
		ok := millis(value, &o.StallTimeout)
		if o.StallTimeout <= 0 {
			o.StallTimeout = DefaultStallTimeout
		}
		return true, ok
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
	return harmless[name], true
}

func number(text string, to *int, low, high int) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(low) {
		return false
	}
	*to = int(min(n, int64(high)))
	return true
}

func millis(text string, to *time.Duration) bool {
	var n int
	if !number(text, &n, 0, math.MaxInt32) {
		return false
	}
	*to = time.Duration(n) * time.Millisecond
	return true
}

func boolean(text string, to *bool) bool {
	b, err := strconv.ParseBool(strings.ToLower(text))
	*to = b
	return err == nil
}

// lists are the schemes whose URI is a list in parentheses; its members are tried in turn.
var lists = map[string]bool{"failover": true, "static": true, "masterslave": true, "simple": true}

// Members gives the single URIs that a URI stands for: itself, or the members of a list such as
// failover:(tcp://a:61616,tcp://b:61616)?randomize=false, nested ones included. The options behind
// a list are about retrying, which is the connector's business; those that begin with "nested."
// go to the members.
func Members(text string) ([]string, error) { return members(text, 0) }

func members(text string, depth int) ([]string, error) {
	text = strings.TrimSpace(text)
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !lists[strings.ToLower(scheme)] {
		return []string{text}, nil
	}
	if depth > 4 {
		return nil, message.Errorf(message.Protocol, "uri %.100q: lists nest too deep",
			Shown(text))
	}
	rest = strings.TrimPrefix(rest, "//")
	options := ""
	if strings.HasPrefix(rest, "(") {
		end := strings.LastIndexByte(rest, ')')
		if end < 0 {
			return nil, message.Errorf(message.Protocol, "uri %q: no closing parenthesis",
				Shown(text))
		}
		rest, options = rest[1:end], strings.TrimPrefix(rest[end+1:], "?")
	}
	var out []string
	for _, part := range splitList(rest) {
		ms, err := members(part, depth+1)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			out = append(out, withNested(m, options))
		}
	}
	if len(out) == 0 {
		return nil, message.Errorf(message.NotFound, "uri %q names no broker", Shown(text))
	}
	return out, nil
}

// splitList cuts at commas outside parentheses.
func splitList(text string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			if part := strings.TrimSpace(text[start:i]); part != "" {
				out = append(out, part)
			}
			start = i + 1
		}
	}
	return out
}

func withNested(uri, options string) string {
	for pair := range strings.SplitSeq(options, "&") {
		if nested, ok := strings.CutPrefix(pair, "nested."); ok {
			sep := "?"
			if strings.Contains(uri, "?") {
				sep = "&"
			}
			uri += sep + nested
		}
	}
	return uri
}
