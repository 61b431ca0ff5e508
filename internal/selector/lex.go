package selector

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// kind is the kind of a token.
type kind uint8

const (
	kindEOF kind = iota
	kindID
	kindKeyword // token.text is the upper-case word
	kindString  // token.value is the string
	kindNumber  // token.value is an int32, int64, *big.Int or float64
	kindOp      // token.text is the operator
)

// token is one lexical element; pos and end are indexes into lexer.src.
type token struct {
	kind     kind
	text     string
	value    any
	pos, end int
}

// String names the token as an error line shows it.
func (t token) String() string {
	if t.kind == kindEOF {
		return "the end"
	}
	return strconv.Quote(t.text)
}

// isReserved holds the words that cannot be identifiers, in any case (JMS 1.1, 3.8.1.1).
var isReserved = map[string]bool{
	"NOT": true, "AND": true, "OR": true, "BETWEEN": true, "LIKE": true, "ESCAPE": true,
	"IN": true, "IS": true, "TRUE": true, "FALSE": true, "NULL": true, "XPATH": true,
	"XQUERY": true,
}

// lexer cuts a selector into tokens. Positions are in characters, so that they mean the same to
// a person and to a Java client.
type lexer struct {
	src []rune
	pos int
}

// lexError carries a position up to the parser, which knows the whole text.
type lexError struct {
	pos int
	msg string
}

func (e *lexError) Error() string { return e.msg }

func isIDStart(r rune) bool {
	return unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Sc, unicode.Pc)
}

func isIDPart(r rune) bool {
	return isIDStart(r) || unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// at returns the character i places ahead, or -1 beyond the end.
func (l *lexer) at(i int) rune {
	if l.pos+i < len(l.src) {
		return l.src[l.pos+i]
	}
	return -1
}

// skipBlank moves over white space, "-- line" and "/* block */" comments.
func (l *lexer) skipBlank() error {
	for {
		switch r := l.at(0); {
		case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f':
			l.pos++
		case r == '-' && l.at(1) == '-':
			for l.at(0) != -1 && l.at(0) != '\n' && l.at(0) != '\r' {
				l.pos++
			}
		case r == '/' && l.at(1) == '*':
			start := l.pos
			l.pos += 2
			for l.at(0) != '*' || l.at(1) != '/' {
				if l.at(0) == -1 {
					return &lexError{start, "comment without its */"}
				}
				l.pos++
			}
			l.pos += 2
		default:
			return nil
		}
	}
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	start := l.pos
	r := l.at(0)
	switch {
	case r == -1:
		return token{kind: kindEOF, pos: start, end: start}, nil
	case r == '\'':
		return l.str()
	case isDigit(r) || r == '.' && isDigit(l.at(1)):
		return l.number()
	case isIDStart(r):
		for isIDPart(l.at(0)) {
			l.pos++
		}
		t := token{kind: kindID, text: string(l.src[start:l.pos]), pos: start, end: l.pos}
		if up := strings.ToUpper(t.text); isReserved[up] {
			t.kind, t.text = kindKeyword, up
		}
		return t, nil
	}
	return l.operator()
}

// operator reads an operator or explains what cannot be one.
func (l *lexer) operator() (token, error) {
	start, r := l.pos, l.at(0)
	width := 1
	switch two := string(r) + string(max(l.at(1), 0)); two {
	case "<>", "<=", ">=":
		width = 2
	case "==":
		return token{}, &lexError{start, `no operator "==": equality is "="`}
	case "!=":
		return token{}, &lexError{start, `no operator "!=": inequality is "<>"`}
	}
	if !strings.ContainsRune("=<>+-*/%(),", r) {
		msg := fmt.Sprintf("unexpected %q", string(r))
		switch r {
		case '"':
			msg += ": strings stand in single quotes, names in none"
		case '.':
			msg += ": names cannot contain '.'"
		}
		return token{}, &lexError{start, msg}
	}
	l.pos += width
	return token{kind: kindOp, text: string(l.src[start:l.pos]), pos: start, end: l.pos}, nil
}

// str reads a string literal; a quote inside it is written twice.
func (l *lexer) str() (token, error) {
	start := l.pos
	var b strings.Builder
	for l.pos++; ; l.pos++ {
		switch r := l.at(0); {
		case r == -1:
			return token{}, &lexError{start, "string without its closing quote"}
		case r == '\'' && l.at(1) == '\'':
			b.WriteByte('\'')
			l.pos++
		case r == '\'':
			l.pos++
			return token{kind: kindString, text: string(l.src[start:l.pos]), value: b.String(),
				pos: start, end: l.pos}, nil
		default:
			b.WriteRune(r)
		}
	}
}

// number reads a decimal, octal (leading 0), hexadecimal (0x) or floating-point literal. A decimal
// may end in L.
func (l *lexer) number() (token, error) {
	start := l.pos
	isFloat, base, digits := false, 10, start
	if l.at(0) == '0' && (l.at(1) == 'x' || l.at(1) == 'X') {
		base, digits = 16, start+2
		l.pos += 2
		for strings.ContainsRune("0123456789abcdefABCDEF", l.at(0)) {
			l.pos++
		}
	} else {
		isFloat = l.decimal()
		if !isFloat && l.src[start] == '0' && l.pos > start+1 {
			base = 8
		}
	}
	text := string(l.src[digits:l.pos])
	if !isFloat && base == 10 && l.src[start] != '0' && (l.at(0) == 'l' || l.at(0) == 'L') {
		l.pos++
	}
	t := token{kind: kindNumber, text: string(l.src[start:l.pos]), pos: start, end: l.pos}
	bad := &lexError{start, fmt.Sprintf("%q is not a number", t.text)}
	if isFloat {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && f == 0 {
			return token{}, bad
		}
		t.value = f
		return t, nil
	}
	n, ok := new(big.Int).SetString(text, base)
	if !ok || base != 10 && !n.IsInt64() {
		return token{}, bad
	}
	t.value = narrow(n)
	return t, nil
}

// decimal moves over digits, fraction and exponent and reports whether there was one of the
// latter two.
func (l *lexer) decimal() (isFloat bool) {
	run := func() {
		for isDigit(l.at(0)) {
			l.pos++
		}
	}
	run()
	if l.at(0) == '.' {
		isFloat = true
		l.pos++
		run()
	}
	if l.at(0) == 'e' || l.at(0) == 'E' {
		i := 1
		if l.at(1) == '+' || l.at(1) == '-' {
			i = 2
		}
		if isDigit(l.at(i)) {
			isFloat = true
			l.pos += i
			run()
		}
	}
	return isFloat
}

// narrow returns n as the smallest of int32, int64 and *big.Int that holds it.
func narrow(n *big.Int) any {
	if !n.IsInt64() {
		return n
	}
	v := n.Int64()
	if v == int64(int32(v)) {
		return int32(v)
	}
	return v
}
