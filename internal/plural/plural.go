// Package plural puts a number of things into words.
package plural

import (
	"fmt"
	"strings"
)

// Number is what counts things.
type Number interface{ ~int | ~int32 | ~int64 }

// Of is a number of things: 1 message, 2 messages, 3 copies.
func Of[N Number](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Form is the form of a word that goes with a number of things.
func Form[N Number](n N, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
