package terminal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// fault is an error that quotes a peer.
type fault string

func (f fault) Error() string { return string(f) }

func TestATerminalOnlyShowsWhatIsPrinted(t *testing.T) {
	for text, want := range map[string]string{
		"orders.größe 漢字 👩‍👧 \\n": "orders.größe 漢字 👩‍👧 \\n",
		"\x1b[31mRED\x1b]0;title\a\nqueue://forged\r\t\x7f": `\x1b[31mRED\x1b]0;title\x07` +
			`\nqueue://forged\r\t\x7f`,
		"\u009b31m":                 `\u009b31m`,
		"\u202etxt.exe\u2069\u2028": `\u202etxt.exe\u2069\u2028`,
		"\xff\x9b\xc3":              `\xff\x9b\xc3`,
	} {
		if got := Safe(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestLayoutIsOfTheFormatAlone(t *testing.T) {
	const evil = "a\nb"
	joined := fmt.Errorf("two: %w", errors.Join(fault(evil), fmt.Errorf("x %w", fault("c\x1b"))))
	for _, tt := range []struct {
		want   string
		format string
		args   []any
	}{
		{"a\\nb    |\n", "%-8s|\n", []any{evil}},
		{"[a\\nb]\n", "%v\n", []any{[]string{evil}}},
		{"\"a\\nb\" 5\n", "%s %d\n", []any{`"a` + "\n" + `b"`, 5}},
		{"two: a\\nb\nx c\\x1b\n", "%v\n", []any{joined}},
		{"a\\nb\nc\n", "%s\n", []any{Lines([]string{evil, "c"})}},
		{"a\n  b\\x1b\tc\n", "%s\n", []any{Body("a\r\nb\x1b\tc", "  ")}},
		{"{\"x\":\"\\u009b\\u007f\"}\n", "%s\n", []any{JSON([]byte("{\"x\":\"\u009b\x7f\"}"))}},
	} {
		var b strings.Builder
		if _, err := Fprintf(&b, tt.format, tt.args...); err != nil || b.String() != tt.want {
			t.Errorf("%q prints %q, want %q (%v)", tt.format, b.String(), tt.want, err)
		}
	}
	var b strings.Builder
	if _, err := Fprintln(&b, "hopwire:", joined); err != nil ||
		b.String() != "hopwire: two: a\\nb\nx c\\x1b\n" {
		t.Errorf("a line prints as %q (%v)", b.String(), err)
	}
}
