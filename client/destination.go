package client

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
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

var prefixes = []struct {
	prefix string
	kind   byte
}{
	{"queue://", openwire.TypeQueue},
	{"topic://", openwire.TypeTopic},
	{"temp-queue://", openwire.TypeTempQueue},
	{"temp-topic://", openwire.TypeTempTopic},
}

// ParseDestination reads queue://, topic://, temp-queue:// or temp-topic:// and a name; without
// such a prefix the name is a queue's. Options after '?' stay part of the name; Session.Consumer
// and Session.Producer read them.
func ParseDestination(text string) (*Destination, error) {
	kind, name := openwire.TypeQueue, strings.TrimSpace(text)
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
	return &Destination{Type: kind, PhysicalName: name}, nil
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

// splitOptions cuts the options off a destination's name.
func splitOptions(d *Destination) (*Destination, url.Values, error) {
	if d == nil {
		return nil, nil, fmt.Errorf("no destination given")
	}
	name, query, found := strings.Cut(d.PhysicalName, "?")
	if name == "" {
		return nil, nil, fmt.Errorf("destination %q: it has no name", d.PhysicalName)
	}
	if !found {
		return d, nil, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, nil, fmt.Errorf("destination %s: %w", FormatDestination(d), err)
	}
	return &Destination{Type: d.Type, PhysicalName: name}, values, nil
}

// sortedKeys gives errors a fixed order.
func sortedKeys(values url.Values) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// set applies one consumer.* option of a destination to a ConsumerInfo.
func (o *consumerOptions) set(key, value string) error {
	var err error
	number := func(bits int) int64 {
		var n int64
		n, err = strconv.ParseInt(value, 10, bits)
		return n
	}
	truth := func() bool {
		var b bool
		b, err = strconv.ParseBool(value)
		return b
	}
	switch key {
	case "prefetchSize":
		o.prefetch, o.prefetchSet = int32(number(32)), true
	case "maximumPendingMessageLimit":
		o.info.MaximumPendingMessageLimit = int32(number(32))
	case "noLocal":
		o.info.NoLocal = truth()
	case "dispatchAsync":
		o.info.DispatchAsync = truth()
	case "retroactive":
		o.info.Retroactive = truth()
	case "exclusive":
		o.info.Exclusive = truth()
	case "selector":
		o.info.Selector = value
	case "priority":
		o.info.Priority = int8(number(8))
	default:
		return fmt.Errorf("unknown option consumer.%s", key)
	}
	if err != nil {
		return fmt.Errorf("option consumer.%s=%q: %w", key, value, err)
	}
	return nil
}
