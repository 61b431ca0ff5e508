package cli

import (
	"io"
	"strconv"

	"hopwire/internal/manage"
	"hopwire/internal/terminal"
)

// printRows prints what holds messages. Of more than most that are in the same state only the first
// are shown, which have most messages, and those that something else is known of.
func printRows(out io.Writer, rows []manage.ExplanationRow, most int) {
	type state struct{ reason, releases string }
	alike := map[state]int{}
	of := func(r *manage.ExplanationRow) state { return state{r.Reason, r.Releases} }
	for i := range rows {
		alike[of(&rows[i])]++
	}
	shown := map[state]int{}
	left := map[state]int{}
	var order []state
	for i := range rows {
		r := &rows[i]
		s := of(r)
		if shown[s] >= most && r.Remark == "" && !r.Unknown {
			if left[s] == 0 {
				order = append(order, s)
			}
			left[s]++
			continue
		}
		if shown[s]++; shown[s] == 1 || alike[s] <= most {
			terminal.Fprintf(out, "  %6d  %s%s\n          released by %s\n", r.Count, r.Reason, whose(r),
				r.Releases)
		} else {
			terminal.Fprintf(out, "  %6d  %s%s\n", r.Count, r.Reason, whose(r))
		}
		if r.Remark != "" {
			terminal.Fprintf(out, "          %s\n", r.Remark)
		}
		printOldest(out, r.Count,
			manage.Oldest{SinceMs: r.SinceMs, Example: r.Example, Unknown: r.Unknown})
	}
	for _, s := range order {
		if left[s] > 0 {
			terminal.Fprintf(out, "  and %d more of %d that are %s: hopwire explain --all\n", left[s],
				alike[s], s.reason)
		}
	}
}

// selectorMost is how many characters of a selector a row shows.
const selectorMost = 200

// whose is who a row is about: the subscription, where its client is, and what it selects.
func whose(r *manage.ExplanationRow) string {
	if r.Who == "" {
		return ""
	}
	text := "  (" + r.Who + mark(r.Address != "", " at "+r.Address)
	if r.Selector != "" {
		shown, more := []rune(r.Selector), ""
		if len(shown) > selectorMost {
			shown, more = shown[:selectorMost], "..."
		}
		text += ", selector " + strconv.Quote(string(shown)) + more
	}
	return text + ")"
}

// printOldest tells how long the oldest of some messages has been here, as far as that is known.
func printOldest(out io.Writer, n int64, o manage.Oldest) {
	switch {
	case n == 1 && o.Example != "" && !o.Unknown:
		terminal.Fprintf(out, "          it came %s ago: %s\n", age(o.SinceMs), o.Example)
	case o.Example != "" && o.Unknown:
		terminal.Fprintf(out, "          the oldest that could be read came %s ago: %s\n", age(o.SinceMs),
			o.Example)
	case o.Unknown:
		terminal.Fprintf(out, "          how long they have been here could not be read from the store\n")
	case o.Example != "":
		terminal.Fprintf(out, "          the oldest came %s ago: %s\n", age(o.SinceMs), o.Example)
	case o.SinceMs > 0:
		terminal.Fprintf(out, "          they came more than %s ago\n", age(o.SinceMs))
	}
}
