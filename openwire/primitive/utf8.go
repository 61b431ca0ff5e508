package primitive

import (
	"errors"
	"unicode/utf8"
)

var errUTF8 = errors.New("malformed modified UTF-8")

// ASCII reports whether every byte of s is in 1..7F, so that its modified UTF-8 form is s itself.
func ASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i]-1 >= 0x7f {
			return false
		}
	}
	return true
}

// asciiBytes is ASCII for a byte slice; NUL is allowed, as both forms read it as U+0000.
func asciiBytes(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// UTF8 turns modified UTF-8 (Java's DataOutput.writeUTF form) into a Go string. A surrogate pair
// becomes one four-byte character; an unpaired surrogate is kept as its own three bytes, which is
// not valid UTF-8 but survives AppendModified unchanged. Four-byte sequences and broken
// continuations are errors.
func UTF8(b []byte) (string, error) {
	if asciiBytes(b) {
		return string(b), nil
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		unit, n := modifiedUnit(b[i:])
		if n == 0 {
			return "", errUTF8
		}
		i += n
		if unit >= 0xd800 && unit < 0xdc00 {
			if low, n := modifiedUnit(b[i:]); n == 3 && low >= 0xdc00 && low < 0xe000 {
				out = utf8.AppendRune(out, 0x10000+((unit-0xd800)<<10)+(low-0xdc00))
				i += n
				continue
			}
		}
		out = appendUnit(out, unit)
	}
	return string(out), nil
}

// modifiedUnit reads one UTF-16 code unit; n is 0 when the bytes are malformed or missing.
func modifiedUnit(b []byte) (unit rune, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch c := b[0]; {
	case c < 0x80:
		return rune(c), 1
	case c>>5 == 6:
		if len(b) < 2 || b[1]>>6 != 2 {
			return 0, 0
		}
		return rune(c&0x1f)<<6 | rune(b[1]&0x3f), 2
	case c>>4 == 14:
		if len(b) < 3 || b[1]>>6 != 2 || b[2]>>6 != 2 {
			return 0, 0
		}
		return rune(c&0x0f)<<12 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	return 0, 0
}

// appendUnit writes one code unit in UTF-8, surrogates as three bytes of their own.
func appendUnit(out []byte, unit rune) []byte {
	if unit >= 0xd800 && unit < 0xe000 {
		return append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
	}
	return utf8.AppendRune(out, unit)
}

// rune3 decodes the next character of s, also a surrogate in three bytes; a byte that starts no
// character is U+FFFD of length 1.
func rune3(s string) (r rune, n int) {
	r, n = utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && len(s) >= 3 &&
		s[0] == 0xed && s[1]>>5 == 5 && s[2]>>6 == 2 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return r, n
}

// ModifiedLen is the number of bytes of s in modified UTF-8.
func ModifiedLen(s string) int {
	total := 0
	for len(s) > 0 {
		if c := s[0]; c < 0x80 {
			total++
			if c == 0 {
				total++
			}
			s = s[1:]
			continue
		}
		r, n := rune3(s)
		switch {
		case r < 0x800:
			total += 2
		case r < 0x10000:
			total += 3
		default:
			total += 6
		}
		s = s[n:]
	}
	return total
}

// AppendModified appends s in modified UTF-8: NUL as C0 80, characters above U+FFFF as two
// surrogates of three bytes each. Bytes of s that are no UTF-8 become U+FFFD.
func AppendModified(dst []byte, s string) []byte {
	if ASCII(s) {
		return append(dst, s...)
	}
	for len(s) > 0 {
		r, n := rune3(s)
		s = s[n:]
		switch {
		case r == 0:
			dst = append(dst, 0xc0, 0x80)
		case r < 0x80:
			dst = append(dst, byte(r))
		case r < 0x800:
			dst = append(dst, 0xc0|byte(r>>6), 0x80|byte(r)&0x3f)
		case r < 0x10000:
			dst = appendSurrogate(dst, r)
		default:
			r -= 0x10000
			dst = appendSurrogate(dst, 0xd800+(r>>10))
			dst = appendSurrogate(dst, 0xdc00+(r&0x3ff))
		}
	}
	return dst
}

// appendSurrogate writes any code unit from U+0800 up in its three-byte form.
func appendSurrogate(dst []byte, unit rune) []byte {
	return append(dst, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
}

// units is the length of s in UTF-16 code units, Java's String.length.
func units(s string) int {
	total := 0
	for len(s) > 0 {
		r, n := rune3(s)
		total++
		if r > 0xffff {
			total++
		}
		s = s[n:]
	}
	return total
}
