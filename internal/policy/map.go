package policy

import (
	"strings"

	"hopwire/internal/message"
)

// Map picks the one entry that applies to a destination: entries are never merged. The zero value
// has no entries; Entries and Default must not change after the first Find of a running broker.
type Map struct {
	Entries []*Entry
	Default *Entry // nil: the built-in defaults
}

// unconfigured is what a destination gets that no entry names.
var unconfigured = newUnconfigured()

// newUnconfigured returns ActiveMQ's destination defaults, which are not those of an empty entry:
// audits are smaller, browsers see everything and consumers keep the prefetch they ask for.
func newUnconfigured() *Entry {
	e := NewEntry()
	e.Configured = false
	e.MaxProducersToAudit = 1024
	e.MaxAuditDepth = 2048
	e.MaxQueueAuditDepth = 2048
	e.MaxBrowsePageSize = 0
	return e
}

// Unconfigured returns the entry for destinations without any; it must not be changed.
func Unconfigured() *Entry { return unconfigured }

// Find returns the entry for d, never nil. An exact name beats patterns, a pattern that another
// one covers beats it, unrelated patterns go by name order and the first of two equal ones stays.
// Without a match the default applies, without that the built-in entry (Configured is false).
func (m *Map) Find(d message.Destination) *Entry {
	var best *Entry
	var bestKey message.Destination
	for _, e := range m.Entries {
		for _, key := range e.Destination.Split() {
			if Matches(key, d) && (best == nil || moreSpecific(key, bestKey)) {
				best, bestKey = e, key
			}
		}
	}
	switch {
	case best != nil:
		return best
	case m.Default != nil:
		return m.Default
	}
	return unconfigured
}

// moreSpecific reports whether a, of two patterns that take one name, comes before b.
func moreSpecific(a, b message.Destination) bool {
	if a.IsPattern() != b.IsPattern() {
		return b.IsPattern()
	}
	below, above := Covers(b, a), Covers(a, b)
	if below != above {
		return below
	}
	return strings.Compare(a.Name, b.Name) < 0
}
