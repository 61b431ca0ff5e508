// Package plural puts a number of things, or of bytes, into words.
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

// Bytes is a number of bytes with a unit: 17 B, 1.5 KiB, 716.8 MiB.
func Bytes(n int64) string {
	const units = "KMGT"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, u := float64(n)/(1<<10), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[u])
}
