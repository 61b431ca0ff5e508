package network

import (
	"slices"
	"strconv"
	"strings"

	"hopwire/internal/message"
)

// SelectorsProperty is the property of a consumer advisory that tells a Hopwire peer's bridge what
// stands behind a network subscription: the text of Selectors. ActiveMQ does not read it.
const SelectorsProperty = "hopwireSelectors"

// Limits of Selectors. Beyond them a subscription says that it takes anything, as without them.
const (
	MaxSelectors      = 1000
	maxSelectorsBytes = 64 << 10
)

// Selectors is a set of JMS selectors, as text: each in quotes, one a line. A message is wanted
// when one of them takes it. The empty text is no set: every message is wanted.
type Selectors string

// JoinSelectors makes a set of texts, in any order; "" when they are too many for one.
func JoinSelectors(texts []string) Selectors {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	if len(texts) > MaxSelectors {
		return ""
	}
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.QuoteToASCII(t))
		if b.Len() > maxSelectorsBytes {
			return ""
		}
	}
	return Selectors(b.String())
}

// Properties are what an advisory tells of the set.
func (s Selectors) Properties() []message.Property {
	if s == "" {
		return nil
	}
	return []message.Property{{Name: SelectorsProperty, Value: string(s)}}
}

// Split gives the texts of the set, none for no set. An error of kind message.Protocol tells what
// is wrong with it.
func (s Selectors) Split() ([]string, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > maxSelectorsBytes || strings.Count(string(s), "\n") >= MaxSelectors {
		return nil, message.Errorf(message.Protocol, "%s: %d bytes in %d lines, more than %d or %d",
			SelectorsProperty, len(s), strings.Count(string(s), "\n")+1, maxSelectorsBytes,
			MaxSelectors)
	}
	var out []string
	for line := range strings.SplitSeq(string(s), "\n") {
		t, err := strconv.Unquote(line)
		if err != nil {
			return nil, message.Errorf(message.Protocol, "%s: line %.40q", SelectorsProperty, line)
		}
		out = append(out, t)
	}
	return out, nil
}
