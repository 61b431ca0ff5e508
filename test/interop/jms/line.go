package jms

import (
	"fmt"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// pairs are the key=value parts of a line.
type pairs map[string]string

// line is one line of the driver's protocol. The sequence number 0 marks an event.
type line struct {
	seq  int64
	word string
	pairs
}

func (l line) String() string {
	keys := make([]string, 0, len(l.pairs))
	for key := range l.pairs {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", l.seq, l.word)
	for _, key := range keys {
		b.WriteString(" " + url.QueryEscape(key) + "=" + url.QueryEscape(l.pairs[key]))
	}
	return b.String()
}

func parse(text string) (line, error) {
	parts := strings.Fields(text)
	if len(parts) < 2 {
		return line{}, fmt.Errorf("driver said %q: want a number and a word", text)
	}
	seq, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return line{}, fmt.Errorf("driver said %q: %w", text, err)
	}
	l := line{seq, parts[1], pairs{}}
	for _, part := range parts[2:] {
		key, value, _ := strings.Cut(part, "=")
		if key, err = url.QueryUnescape(key); err != nil {
			return line{}, fmt.Errorf("driver said %q: %w", text, err)
		}
		if l.pairs[key], err = url.QueryUnescape(value); err != nil {
			return line{}, fmt.Errorf("driver said %q: %w", text, err)
		}
	}
	return l, nil
}

// set adds a pair unless the value is empty.
func (p pairs) set(key, value string) {
	if value != "" {
		p[key] = value
	}
}

func (p pairs) setBool(key string, value bool) {
	if value {
		p[key] = "true"
	}
}

func (p pairs) setInt(key string, value int64) {
	if value != 0 {
		p[key] = strconv.FormatInt(value, 10)
	}
}

func (p pairs) below(prefix string) map[string]string {
	found := map[string]string{}
	for key, value := range p {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			found[rest] = value
		}
	}
	return found
}

func (p pairs) number(key string) int64 {
	n, err := strconv.ParseInt(p[key], 10, 64)
	if err != nil {
		return 0 // absent: the driver writes only whole numbers
	}
	return n
}
