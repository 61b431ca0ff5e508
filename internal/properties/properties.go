// Package properties reads and writes Java property texts, as ActiveMQ keeps its credentials in and
// as the brokers at the two ends of a bridge tell each other its settings in (BrokerInfo's
// networkProperties).
package properties

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const blanks = " \t\f"

// Encode writes a text with the keys in order, all of it ASCII.
func Encode(values map[string]string) string {
	var b strings.Builder
	b.WriteString("#\n")
	for _, k := range slices.Sorted(maps.Keys(values)) {
		escape(&b, k, true)
		b.WriteByte('=')
		escape(&b, values[k], false)
		b.WriteByte('\n')
	}
	return b.String()
}

func escape(b *strings.Builder, text string, key bool) {
	for i, u := range utf16.Encode([]rune(text)) {
		switch {
		case u == ' ' && (key || i == 0), u == ':', u == '=', u == '#', u == '!', u == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(u))
		case u == '\t':
			b.WriteString(`\t`)
		case u == '\n':
			b.WriteString(`\n`)
		case u == '\r':
			b.WriteString(`\r`)
		case u == '\f':
			b.WriteString(`\f`)
		case u < 0x20 || u > 0x7e:
			const digits = "0123456789ABCDEF"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[u>>shift&15])
			}
		default:
			b.WriteByte(byte(u))
		}
	}
}

// Decode reads a text: comments (# and !), key and value apart by =, : or blanks, lines continued
// by a backslash, \uXXXX and the usual escapes. Text that is not UTF-8 is read as ISO 8859-1. There
// is no text that it refuses; of a key that comes twice the last counts.
func Decode(text string) map[string]string {
	if !utf8.ValidString(text) {
		runes := make([]rune, len(text))
		for i := range len(text) {
			runes[i] = rune(text[i])
		}
		text = string(runes)
	}
	out := map[string]string{}
	for _, line := range logical(text) {
		key, value := split(line)
		out[unescape(key)] = unescape(value)
	}
	return out
}

// logical gives the lines that say something, each joined with those that continue it. An empty
// line ends what it should continue; while nothing of a line is there, empty ones and comments are
// passed over, as between lines.
func logical(text string) []string {
	var out []string
	joined, open := "", false
	for text != "" {
		var line, end string
		line, end, text = natural(text)
		line = strings.TrimLeft(line, blanks)
		if joined == "" && (line == "" || line[0] == '#' || line[0] == '!') {
			open = false
			continue
		}
		if open = continues(line); !open {
			out, joined = append(out, joined+line), ""
			continue
		}
		joined += line[:len(line)-1]
		open = end != "\r\n" // Java finds the end of the text only behind one character
	}
	if joined != "" || open {
		out = append(out, joined)
	}
	return out
}

// natural cuts the first line off a text, and what ends it.
func natural(text string) (line, end, rest string) {
	i := strings.IndexAny(text, "\r\n")
	if i < 0 {
		return text, "", ""
	}
	n := 1
	if strings.HasPrefix(text[i:], "\r\n") {
		n = 2
	}
	return text[:i], text[i : i+n], text[i+n:]
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func split(line string) (key, value string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			rest := strings.TrimLeft(line[i:], blanks)
			if rest != "" && (rest[0] == '=' || rest[0] == ':') {
				rest = strings.TrimLeft(rest[1:], blanks)
			}
			return line[:i], rest
		}
	}
	return line, ""
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var units []uint16
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if r != '\\' || rest == "" {
			units = utf16.AppendRune(units, r)
			continue
		}
		if n, ok := unicodeEscape(rest); ok {
			units, rest = append(units, n), rest[5:]
			continue
		}
		r, size = utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if i := strings.IndexRune("tnrf", r); i >= 0 {
			r = rune("\t\n\r\f"[i])
		}
		units = utf16.AppendRune(units, r)
	}
	return string(utf16.Decode(units))
}

// unicodeEscape reads what follows the backslash of "\u0041".
func unicodeEscape(s string) (unit uint16, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 16)
	return uint16(n), err == nil
}
