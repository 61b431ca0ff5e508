package schema

import "strings"

// maxSuggestRunes bounds the names that are compared; longer ones get no suggestion.
const maxSuggestRunes = 64

// Suggest returns "; did you mean X?" for the candidate nearest to name, or "" when none is near:
// at most one edit in three characters, or two in short names.
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
		return ""
	}
	return "; did you mean " + best + "?"
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
