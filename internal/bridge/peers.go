package bridge

import (
	"strings"

	"hopwire/internal/message"
)

// ParsePeers reads a connector's uri: the peers it names, each with the URIs that are tried in
// turn for it. static: and simple: name one peer per member; masterslave: and failover: name one
// peer with several places, the first tried first. A plain transport URI is one peer. Options of
// the lists ("?maxReconnectDelay=…") are given back undecoded.
func ParsePeers(uri string) (peers [][]string, options string, err error) {
	uri = strings.TrimSpace(uri)
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || rest == "" {
		return nil, "", message.Errorf(message.Protocol,
			"networkConnector uri %q: write static:(tcp://host:61616)", uri)
	}
	switch scheme {
	case "static", "simple":
		list, options, err := members(uri, rest)
		for _, m := range list {
			inner, _, err := ParsePeers(m)
			if err != nil {
				return nil, "", err
			}
			peers = append(peers, inner...)
		}
		return peers, options, err
	case "masterslave", "failover":
		list, options, err := members(uri, rest)
		if err == nil && scheme == "masterslave" && len(list) < 2 {
			err = message.Errorf(message.Protocol,
				"networkConnector uri %q: masterslave needs two or more URIs", uri)
		}
		return [][]string{list}, options, err
	}
	if !strings.HasPrefix(rest, "//") {
		return nil, "", message.Errorf(message.Protocol,
			"networkConnector uri %q: scheme %q is none of static, masterslave, failover, or a "+
				"transport", uri, scheme)
	}
	return [][]string{{uri}}, "", nil
}

// members splits "(a,b)?options" or "a,b"; commas inside brackets do not split.
func members(uri, rest string) (list []string, options string, err error) {
	rest = strings.TrimPrefix(rest, "//")
	if strings.HasPrefix(rest, "(") {
		end := closing(rest)
		if end < 0 {
			return nil, "", message.Errorf(message.Protocol,
				"networkConnector uri %q: a bracket is not closed", uri)
		}
		options = strings.TrimPrefix(rest[end+1:], "?")
		rest = rest[1:end]
	}
	depth, from := 0, 0
	for i := 0; i <= len(rest); i++ {
		switch {
		case i == len(rest) || rest[i] == ',' && depth == 0:
			if m := strings.TrimSpace(rest[from:i]); m != "" {
				list = append(list, m)
			}
			from = i + 1
		case rest[i] == '(':
			depth++
		case rest[i] == ')':
			depth--
		}
	}
	if len(list) == 0 {
		err = message.Errorf(message.Protocol, "networkConnector uri %q: names no broker", uri)
	}
	return list, options, err
}

// closing finds the bracket that closes the first one; -1 if there is none.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
