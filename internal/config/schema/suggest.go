package schema

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxSuggestRunes bounds the names that are compared; longer ones get no suggestion.
const maxSuggestRunes = 64

// Suggest returns "; did you mean X?" for the candidate nearest to name, or "" when none is near:
// at most one edit in three characters, or two in short names. When none is, it is the shortest
// that begins with name, or has it as its last word, as userName does user, and brokerName name.
func Suggest(name string, candidates []string) string {
	best, bestDistance := "", min(len(name)-1, max(2, len(name)/3))+1
	if len(name) > maxSuggestRunes {
		return ""
	}
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return "; did you mean " + c + "?"
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		best = longer(name, candidates)
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// leastPart is how many characters a part of a name has that is taken for the name.
const leastPart = 4

// longer returns the shortest candidate that begins with name or ends with it as a word, or "".
func longer(name string, candidates []string) string {
	if len(name) < leastPart {
		return ""
	}
	best := ""
	for _, c := range candidates {
		at := len(c) - len(name)
		if at <= 0 || best != "" && len(c) >= len(best) {
			continue
		}
		word := c[at] >= 'A' && c[at] <= 'Z' || c[at-1] == '.'
		if strings.EqualFold(c[:len(name)], name) || word && strings.EqualFold(c[at:], name) {
			best = c
		}
	}
	return best
}

// Near returns the candidates that are as near to name as Suggest wants, or contain it, each once,
// the nearest first. What both have in common before "://" does not count.
func Near(name string, candidates []string) []string {
	scheme := ""
	if i := strings.Index(name, "://"); i >= 0 {
		scheme = name[:i+3]
	}
	short := strings.ToLower(strings.TrimPrefix(name, scheme))
	if len(short) == 0 || len(short) > maxSuggestRunes {
		return nil
	}
	most := min(len(short)-1, max(2, len(short)/3))
	away := map[string]int{}
	for _, c := range candidates {
		other := strings.ToLower(strings.TrimPrefix(c, scheme))
		if len(other) > 2*maxSuggestRunes {
			continue
		}
		switch d := distance(short, other); {
		case d <= most:
			away[c] = d
		case len(short) > 2 && strings.Contains(other, short):
			away[c] = most + 1
		}
	}
	return slices.SortedFunc(maps.Keys(away), func(a, b string) int {
		return cmp.Or(cmp.Compare(away[a], away[b]), cmp.Compare(a, b))
	})
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that turn
// a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
