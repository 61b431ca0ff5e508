package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseSize reads a number of bytes with an optional unit; base 1024, without fractions.
func parseSize(s string) (int64, error) {
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

// parseBool reads true or false, in any case.
func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("neither true nor false")
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(strings.TrimSpace(s), 10, 64) }

// parseMillis reads milliseconds; a number beyond what a time.Duration holds is the longest one.
func parseMillis(s string) (time.Duration, error) {
	n, err := parseInt(s)
	if err != nil {
		return 0, err
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(n, most), -most)) * time.Millisecond, nil
}

func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("not a number")
	}
	return f, nil
}

// check returns why value is not one of a's, or nil.
func (a *Attribute) check(value string) error {
	var err error
	switch a.Type {
	case Bool:
		_, err = parseBool(value)
	case Int, Millis:
		_, err = parseInt(value)
	case Float:
		_, err = parseFloat(value)
	case Size:
		_, err = parseSize(value)
	case Percent:
		if n, perr := parseInt(value); perr != nil || n < 0 || n > 100 {
			err = fmt.Errorf("no percentage")
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", value, a.Type)
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
		suggest(value, a.Choices))
}

// isDefault reports whether value means what a's default means, at any level.
func (a *Attribute) isDefault(value string, compat int) bool {
	def := a.defaultAt(compat)
	if a.Type == Size && def != "" {
		v, _ := parseSize(value)
		d, _ := parseSize(def)
		return v == d
	}
	return strings.EqualFold(strings.TrimSpace(value), def)
}
