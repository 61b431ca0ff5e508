package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number of bytes with an optional unit; base 1024, without fractions.
func ParseSize(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	digits := strings.TrimRight(text, "bkmg ")
	unit, ok := map[string]int64{"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20,
		"mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 {
		return 0, fmt.Errorf("not a size")
	}
	if n > math.MaxInt64/unit {
		return 0, fmt.Errorf("too large a size")
	}
	return n * unit, nil
}

// ParseBool reads true or false, in any case.
func ParseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("neither true nor false")
}

// ParseInt reads a whole number of 64 bits.
func ParseInt(s string) (int64, error) { return strconv.ParseInt(strings.TrimSpace(s), 10, 64) }

// ParseMillis reads milliseconds; a number beyond what a time.Duration holds is the longest one.
func ParseMillis(s string) (time.Duration, error) {
	n, err := ParseInt(s)
	if err != nil {
		return 0, err
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(n, most), -most)) * time.Millisecond, nil
}

// ParsePatience reads milliseconds, at least 1, or never or -1, which give -1 ms.
func ParsePatience(s string) (time.Duration, error) {
	if strings.EqualFold(strings.TrimSpace(s), "never") {
		return -time.Millisecond, nil
	}
	d, err := ParseMillis(s)
	if err == nil && d < time.Millisecond && d != -time.Millisecond {
		err = fmt.Errorf("neither at least 1 nor -1")
	}
	return d, err
}

// ParseFloat reads a decimal number; infinity and NaN are none.
func ParseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("not a number")
	}
	return f, nil
}

// bounds gives the range of a number.
func (a *Attribute) bounds() (least, most int64) {
	switch {
	case a.Least != 0 || a.Most != 0:
		return a.Least, a.Most
	case a.Type == Int:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// bounded reports whether value, which has a's syntax, is in a's range.
func (a *Attribute) bounded(value string) bool {
	var n int64
	switch a.Type {
	case Int, Millis:
		n, _ = ParseInt(value)
	case Size:
		n, _ = ParseSize(value)
	default:
		return true
	}
	least, most := a.bounds()
	return n >= least && n <= most
}

// Syntax is how a message names what a takes: its type, with the range.
func (a *Attribute) Syntax() string {
	least, most := a.bounds()
	text := a.Type.String()
	switch {
	case a.Type != Int && a.Type != Millis && a.Type != Size,
		least == math.MinInt64 && most == math.MaxInt64:
		return text
	case a.Type == Size:
		text += ","
	}
	if most == math.MaxInt64 {
		return fmt.Sprintf("%s from %d", text, least)
	}
	return fmt.Sprintf("%s from %d to %d", text, least, most)
}

// Check returns why value is not one of a's, or nil.
func (a *Attribute) Check(value string) error {
	var err error
	switch a.Type {
	case Bool:
		_, err = ParseBool(value)
	case Int, Millis:
		_, err = ParseInt(value)
	case Patience:
		_, err = ParsePatience(value)
	case Float:
		_, err = ParseFloat(value)
	case Size:
		_, err = ParseSize(value)
	case Percent:
		if n, perr := ParseInt(value); perr != nil || n < 0 || n > 100 {
			err = fmt.Errorf("no percentage")
		}
	}
	if err != nil || !a.bounded(value) {
		return fmt.Errorf("%q is not %s", value, a.Syntax())
	}
	if a.Choices == nil {
		return nil
	}
	for _, c := range a.Choices {
		if strings.EqualFold(c, strings.TrimSpace(value)) {
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s%s", value, strings.Join(a.Choices, ", "),
		Suggest(value, a.Choices))
}

// IsDefault reports whether value means what a's default means, at any level.
func (a *Attribute) IsDefault(value string, compat int) bool {
	def := a.DefaultAt(compat)
	if a.Type == Size && def != "" {
		v, _ := ParseSize(value)
		d, _ := ParseSize(def)
		return v == d
	}
	return strings.EqualFold(strings.TrimSpace(value), def)
}
