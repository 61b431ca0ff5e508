// Package terminal prints for people. Names, texts and errors of others, such as the destinations
// that clients make, may have characters in them that a terminal obeys: colours, a window's title,
// a line of its own. A value stays on its line here, with such characters written out (\x1b, \n,
// \u202e); the layout is that of the format alone.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is what this package has made, lines and all, and what is printed as it is.
type Text string

// Fprintf is that of package fmt, with every value but a Text made safe.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	guard(args)
	return fmt.Fprintf(w, format, args...)
}

// Fprintln is that of package fmt, with every value but a Text made safe.
func Fprintln(w io.Writer, args ...any) (int, error) {
	guard(args)
	return fmt.Fprintln(w, args...)
}

// Lines is several lines, each made safe; "" for none.
func Lines(lines []string) Text {
	safe := make([]string, len(lines))
	for i, l := range lines {
		safe[i] = Safe(l)
	}
	return Text(strings.Join(safe, "\n"))
}

// Body is a text that may have lines and tabs of its own, which stay; indent stands before each
// line but the first.
func Body(text, indent string) Text {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range lines {
		columns := strings.Split(l, "\t")
		for k, c := range columns {
			columns[k] = Safe(c)
		}
		lines[i] = strings.Join(columns, "\t")
	}
	return Text(strings.Join(lines, "\n"+indent))
}

// JSON is a text in JSON, in which the characters that a terminal obeys can only be in strings.
func JSON(text []byte) Text {
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '\n' || !obeyed(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return Text(b.String())
}

// Safe is a text in one line that a terminal only shows.
func Safe(text string) string {
	if strings.IndexFunc(text, obeyed) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case obeyed(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// obeyed reports whether a terminal may do something else with a character than show it: C0 and C1
// controls, line and paragraph separators, and what turns the direction of writing.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r)
}

// guard has values print as safe ones. It puts them into the list that it is given, so that vet
// still sees that the functions above print like those of fmt, and checks their formats.
func guard(args []any) {
	for i, v := range args {
		switch v := v.(type) {
		case Text, guarded, int, int32, int64, uint64, bool, float64:
		case error:
			args[i] = lines(v)
		default:
			args[i] = guarded{v}
		}
	}
}

// guarded is a value that prints in one line.
type guarded struct{ value any }

// Format prints the value by any verb.
func (g guarded) Format(f fmt.State, verb rune) {
	how := fmt.FormatString(f, verb)
	if text, ok := g.value.(string); ok && verb != 'q' {
		fmt.Fprintf(f, how, Safe(text)) // padded as it is shown
		return
	}
	_, _ = io.WriteString(f, Safe(fmt.Sprintf(how, g.value))) // f cannot fail
}

// lines is an error's text. Several errors in one are several lines, which are no part of what any
// of them tells.
func lines(err error) Text {
	text := err.Error()
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range several.Unwrap() {
			all = append(all, e.Error())
		}
		if strings.Join(all, "\n") == text {
			out := make([]string, len(all))
			for i, e := range several.Unwrap() {
				out[i] = string(lines(e))
			}
			return Text(strings.Join(out, "\n"))
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		if before, ok := strings.CutSuffix(text, inner.Error()); ok {
			return Text(Safe(before)) + lines(inner)
		}
	}
	return Text(Safe(text))
}
