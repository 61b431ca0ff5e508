package client

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hopwire/openwire"
)

// Destination is a queue or topic, temporary or not.
type Destination = openwire.Destination

// Queue is the queue of a name, which for consumers may be a pattern ("A.*", "A.>") and may be a
// list with commas.
func Queue(name string) *Destination {
	return &Destination{Type: openwire.TypeQueue, PhysicalName: name}
}

// Topic is the topic of a name, which for consumers may be a pattern ("A.*", "A.>") and may be a
// list with commas.
func Topic(name string) *Destination {
	return &Destination{Type: openwire.TypeTopic, PhysicalName: name}
}

type prefix struct {
	prefix string
	kind   byte
}

var prefixes = []prefix{
	{"queue://", openwire.TypeQueue},
	{"topic://", openwire.TypeTopic},
	{"temp-queue://", openwire.TypeTempQueue},
	{"temp-topic://", openwire.TypeTempTopic},
}

// ParseDestination reads queue://, topic://, temp-queue:// or temp-topic:// and a name; without
// such a prefix the name is a queue's. One like them (topic:X, queu://X) is an error. Options after
// '?' stay part of the name; Session.Consumer and Session.Producer read them.
func ParseDestination(text string) (*Destination, error) {
	given := strings.TrimSpace(text)
	kind, name := openwire.TypeQueue, given
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p.prefix); ok {
			kind, name = p.kind, strings.TrimSpace(rest)
			break
		}
	}
	if plain, _, _ := strings.Cut(name, "?"); plain == "" {
		return nil, fmt.Errorf("destination %q: it has no name; write queue://NAME or topic://NAME",
			text)
	}
	if name == given { // it has no prefix
		if err := misspelt(given); err != nil {
			return nil, err
		}
	}
	return &Destination{Type: kind, PhysicalName: name}, nil
}

// scheme is what stands before a name: one letter alone is none, as in X:Y.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z-]+)(://|:|//)`)

// misspelt is the error of a text with a prefix that is none: it would be a queue that is called
// so, which nobody means. Queue makes one.
func misspelt(text string) error {
	parts := scheme.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	kind := strings.ToLower(parts[1])
	known := slices.ContainsFunc(prefixes, func(p prefix) bool { return p.prefix == kind+"://" })
	switch {
	case known:
		return fmt.Errorf("destination %q: write %s://%s", text, kind,
			strings.TrimLeft(strings.TrimPrefix(text, parts[0]), "/ "))
	case parts[2] == "://":
		return fmt.Errorf("destination %s: %s is no kind of destination; write queue://NAME or"+
			" topic://NAME", text, parts[1])
	}
	return nil
}

// FormatDestination is the inverse of ParseDestination, with the prefix always there; "" for nil.
func FormatDestination(d *Destination) string {
	if d == nil {
		return ""
	}
	for _, p := range prefixes {
		if p.kind == d.Type {
			return p.prefix + d.PhysicalName
		}
	}
	return d.PhysicalName
}

func isTopic(d *Destination) bool {
	return d.Type == openwire.TypeTopic || d.Type == openwire.TypeTempTopic
}

// splitOptions cuts the options off a destination's name, as a query.
func splitOptions(d *Destination) (plain *Destination, query string, err error) {
	if d == nil {
		return nil, "", fmt.Errorf("no destination given")
	}
	name, query, _ := strings.Cut(d.PhysicalName, "?")
	if name == "" {
		return nil, "", fmt.Errorf("destination %q: it has no name", d.PhysicalName)
	}
	return &Destination{Type: d.Type, PhysicalName: name}, query, nil
}

// setters are the options that a consumer's destination may carry.
func (o *consumerOptions) setters() map[string]setter {
	return map[string]setter{
		"consumer.prefetchSize": func(value string) error {
			o.prefetchSet = true
			return number32(&o.prefetch)(value)
		},
		"consumer.maximumPendingMessageLimit": number32(&o.info.MaximumPendingMessageLimit),
		"consumer.noLocal":                    truth(&o.info.NoLocal),
		"consumer.dispatchAsync":              truth(&o.info.DispatchAsync),
		"consumer.retroactive":                truth(&o.info.Retroactive),
		"consumer.exclusive":                  truth(&o.info.Exclusive),
		"consumer.selector":                   word(&o.info.Selector),
		"consumer.priority": func(value string) error {
			n, err := whole(value, 8)
			o.info.Priority = int8(n)
			return err
		},
	}
}
