package message

import (
	"cmp"
	"strings"
)

// Kind is the kind of a destination.
type Kind uint8

// The kinds of destinations, in the order of their OpenWire type bytes 100 to 103.
const (
	Queue Kind = iota + 1
	Topic
	TempQueue
	TempTopic
)

// Destination is a named place messages go to. The zero value means "none". Equality is kind and
// name; options after "?" in a name are not part of it (Options of ParseDestination).
type Destination struct {
	Kind Kind
	Name string
}

// Prefixes of the text forms.
var kindPrefix = [...]string{Queue: "queue://", Topic: "topic://",
	TempQueue: "temp-queue://", TempTopic: "temp-topic://"}

var kindName = [...]string{0: "none", Queue: "Queue", Topic: "Topic",
	TempQueue: "TempQueue", TempTopic: "TempTopic"}

// String is the kind's name in advisory topics: Queue, Topic, TempQueue, TempTopic.
func (k Kind) String() string { return kindName[k] }

// IsZero reports whether no destination is named.
func (d Destination) IsZero() bool { return d.Kind == 0 }

// IsQueue reports whether one consumer gets each message: a queue or a temporary queue.
func (d Destination) IsQueue() bool { return d.Kind == Queue || d.Kind == TempQueue }

// IsTopic reports whether every subscriber gets each message.
func (d Destination) IsTopic() bool { return d.Kind == Topic || d.Kind == TempTopic }

// IsTemp reports whether the destination lives as long as the connection that made it.
func (d Destination) IsTemp() bool { return d.Kind == TempQueue || d.Kind == TempTopic }

// String is the qualified name: queue://NAME, topic://NAME, temp-queue://NAME, temp-topic://NAME.
func (d Destination) String() string {
	if d.Kind == 0 {
		return ""
	}
	return kindPrefix[d.Kind] + d.Name
}

// IsPattern reports whether the name has a wildcard element: "*" or ">". A composite is none.
func (d Destination) IsPattern() bool {
	if d.IsComposite() || !strings.ContainsAny(d.Name, "*>") {
		return false
	}
	for e := range strings.SplitSeq(d.Name, ".") {
		if e == "*" || e == ">" {
			return true
		}
	}
	return false
}

// IsComposite reports whether the name lists several destinations, separated by commas.
func (d Destination) IsComposite() bool { return strings.Contains(d.Name, ",") }

// Split gives the members of a composite in the order written, duplicates removed, each with its
// own kind when it has a prefix. A plain destination is its only member. Empty parts are skipped.
func (d Destination) Split() []Destination {
	if !d.IsComposite() {
		return []Destination{d}
	}
	var out []Destination
	seen := map[Destination]bool{}
	for part := range strings.SplitSeq(d.Name, ",") {
		m := qualified(strings.TrimSpace(part), d.Kind)
		if m.Name == "" || seen[m] {
			continue
		}
		seen[m] = true
		out = append(out, m)
	}
	return out
}

// TempOwner is the connection that made the temporary destination: its name up to the last colon.
func (d Destination) TempOwner() ConnectionID {
	i := strings.LastIndexByte(d.Name, ':')
	if !d.IsTemp() || i < 0 {
		return ""
	}
	return ConnectionID(d.Name[:i])
}

// ParseDestination reads a text form, with or without prefix; def is the kind without one.
// options is what follows the first "?", not decoded.
func ParseDestination(text string, def Kind) (d Destination, options string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, '?'); i >= 0 {
		text, options = text[:i], text[i+1:]
	}
	return qualified(text, def), options
}

func qualified(text string, def Kind) Destination {
	for k := Queue; k <= TempTopic; k++ {
		if rest, ok := strings.CutPrefix(text, kindPrefix[k]); ok {
			return Destination{k, strings.TrimSpace(rest)}
		}
	}
	return Destination{def, text}
}

// AdvisoryPrefix begins the name of every advisory topic.
const AdvisoryPrefix = "ActiveMQ.Advisory."

// Compare orders destinations by kind and name.
func (d Destination) Compare(o Destination) int {
	return cmp.Or(cmp.Compare(d.Kind, o.Kind), cmp.Compare(d.Name, o.Name))
}

// IsAdvisory reports whether the destination is an advisory topic or a composite of such.
func (d Destination) IsAdvisory() bool {
	return d.Kind == Topic && strings.HasPrefix(d.Name, AdvisoryPrefix)
}
