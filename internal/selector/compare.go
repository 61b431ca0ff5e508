package selector

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Ranks of numbers from narrow to wide; comparisons widen to the higher rank of the two. A number
// beyond int64 compares only with its like.
const (
	rankInt = iota + 1
	rankLong
	rankBig
	rankFloat
	rankDouble
)

// rank returns the rank of a number, or 0 for other values.
func rank(v any) int {
	switch v.(type) {
	case int8, int16, int32:
		return rankInt
	case int64:
		return rankLong
	case *big.Int:
		return rankBig
	case float32:
		return rankFloat
	case float64:
		return rankDouble
	}
	return 0
}

// toInt returns an integer of rank up to rankBig; a big one keeps its low 64 bits.
func toInt(v any) int64 {
	switch v := v.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	case *big.Int:
		return new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64)).Int64()
	}
	return 0
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case float32:
		return float64(v)
	case float64:
		return v
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	}
	return float64(toInt(v))
}

// compare orders two values that are not null; ok is false when they cannot be compared, being of
// different kinds. With convert a string beside a number or boolean is read as one.
func compare(l, r any, convert bool) (order int, ok bool) {
	if convert {
		l, r = converted(l, r), converted(r, l)
	}
	switch l := l.(type) {
	case string:
		r, ok := r.(string)
		return cmp.Compare(l, r), ok
	case bool:
		r, ok := r.(bool)
		switch {
		case l == r:
			return 0, ok
		case r:
			return -1, ok
		}
		return 1, ok
	}
	return compareNumbers(l, r)
}

func compareNumbers(l, r any) (order int, ok bool) {
	lr, rr := rank(l), rank(r)
	switch wide := max(lr, rr); {
	case lr == 0 || rr == 0:
		return 0, false
	case lr == rankBig || rr == rankBig:
		if lr != rr {
			return 0, false
		}
		return l.(*big.Int).Cmp(r.(*big.Int)), true
	case wide == rankFloat:
		return cmp.Compare(float32(toFloat(l)), float32(toFloat(r))), true
	case wide == rankDouble:
		return cmp.Compare(toFloat(l), toFloat(r)), true
	}
	return cmp.Compare(toInt(l), toInt(r)), true
}

// converted returns v as a value of the kind of other, when v is a string that reads as one.
func converted(v, other any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	switch o := other.(type) {
	case bool:
		return strings.EqualFold(s, "true")
	case float32, float64:
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			if _, single := o.(float32); single {
				return float32(f)
			}
			return f
		}
	case int8, int16, int32, int64:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	}
	return v
}

// same reports whether two values have one type and are equal, which is what INLIST asks.
func same(l, r any) bool {
	if _, ok := l.(list); ok {
		return false
	}
	return l == r
}

// text returns a value as Java's string conversion writes it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case *big.Int:
		return v.String()
	case float32:
		return floatText(float64(v), 32)
	case float64:
		return floatText(v, 64)
	case list:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case nil:
		return "null"
	}
	if rank(v) == 0 {
		return ""
	}
	return strconv.FormatInt(toInt(v), 10)
}

// floatText writes f with at least one digit after the point, and with an exponent from 1E7 and
// below 1E-3.
func floatText(f float64, bits int) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case a == 0 || 1e-3 <= a && a < 1e7:
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, bits), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exp)
	return mantissa + "E" + strconv.Itoa(n)
}
