package selector

import "unicode/utf8"

// likeElem is an element of a LIKE pattern: a character, or one of the two wildcards.
type likeElem rune

const (
	likeAny likeElem = -1 // any run of characters, also none
	likeOne likeElem = -2 // exactly one character
)

// compileLike reads a pattern. The escape character (-1 for none) makes a following %, _ or escape
// character stand for itself; before anything else it stands for itself.
func compileLike(pattern string, escape rune) []likeElem {
	var elems []likeElem
	src := []rune(pattern)
	for i := 0; i < len(src); i++ {
		r := src[i]
		next := rune(-1)
		if i+1 < len(src) {
			next = src[i+1]
		}
		switch {
		case r == escape && (next == '%' || next == '_' || next == escape):
			elems = append(elems, likeElem(next))
			i++
		case r == escape:
			elems = append(elems, likeElem(r))
		case r == '%':
			elems = append(elems, likeAny)
		case r == '_':
			elems = append(elems, likeOne)
		default:
			elems = append(elems, likeElem(r))
		}
	}
	return elems
}

// matchLike reports whether the whole of s fits the pattern. After a mismatch only the latest %
// takes one character more, so the time is at most len(pattern) times len(s).
func matchLike(pattern []likeElem, s string) bool {
	p, i := 0, 0
	retryP, retryI := -1, 0
	for i < len(s) {
		r, width := utf8.DecodeRuneInString(s[i:])
		switch {
		case p < len(pattern) && pattern[p] == likeAny:
			p++
			retryP, retryI = p, i
		case p < len(pattern) && (pattern[p] == likeOne || pattern[p] == likeElem(r)):
			p++
			i += width
		case retryP >= 0:
			_, width = utf8.DecodeRuneInString(s[retryI:])
			retryI += width
			p, i = retryP, retryI
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == likeAny {
		p++
	}
	return p == len(pattern)
}
