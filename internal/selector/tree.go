package selector

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// node is a part of the tree. eval returns nil for Unknown, a bool, a number (int8 to int64,
// float32, float64, *big.Int), a string, a list or opaque; an error ends the whole evaluation.
type node interface {
	eval(m Fields) (any, error)
	isBoolean() bool // eval returns a bool or nil
}

// value and condition say what kind of node embeds them.
type (
	value     struct{}
	condition struct{}
)

func (value) isBoolean() bool     { return false }
func (condition) isBoolean() bool { return true }

// opaque stands for a field whose type has no operators: it is not null and equals nothing.
type opaque struct{}

// list is what MAKELIST and SPLIT return.
type list []any

type literal struct{ value any }

func (n *literal) isBoolean() bool {
	_, ok := n.value.(bool)
	return ok || n.value == nil
}

func (n *literal) eval(Fields) (any, error) { return n.value, nil }

// String returns the literal as text for error lines.
func (n *literal) String() string {
	switch v := n.value.(type) {
	case nil:
		return "NULL"
	case string:
		return fmt.Sprintf("the string %q", v)
	}
	return fmt.Sprint(n.value)
}

// identifier reads a field; end is where the name ends in the text.
type identifier struct {
	value
	name string
	end  int
}

func (n *identifier) eval(m Fields) (any, error) {
	v := m.Field(n.name)
	switch v.(type) {
	case nil, bool, int8, int16, int32, int64, float32, float64, string:
		return v, nil
	}
	return opaque{}, nil
}

// truth makes a condition of an identifier: anything but the boolean true is False.
type truth struct{ *identifier }

func (truth) isBoolean() bool { return true }

func (n *truth) eval(m Fields) (any, error) {
	v, err := n.identifier.eval(m)
	if v == nil || err != nil {
		return nil, err
	}
	return v == true, nil
}

type not struct{ arg node }

func (not) isBoolean() bool { return true }

func (n *not) eval(m Fields) (any, error) {
	v, err := n.arg.eval(m)
	return flip(v, true), err
}

// flip negates a truth value when negate is set; Unknown stays Unknown.
func flip(v any, negate bool) any {
	if b, ok := v.(bool); ok {
		return b != negate
	}
	return nil
}

// logical is AND (decisive false) or OR (decisive true): the first member with the decisive value
// settles it, else a member that is Unknown makes it Unknown.
type logical struct {
	condition
	decisive bool
	list     []node
}

func (n *logical) eval(m Fields) (any, error) {
	var result any = !n.decisive
	for _, c := range n.list {
		v, err := c.eval(m)
		if err != nil {
			return nil, err
		}
		if v == n.decisive {
			return n.decisive, nil
		}
		if v == nil {
			result = nil
		}
	}
	return result, nil
}

type isNull struct {
	condition
	arg    node
	negate bool
}

func (n *isNull) eval(m Fields) (any, error) {
	v, err := n.arg.eval(m)
	return (v == nil) != n.negate, err
}

// both evaluates two nodes; the right one only when the left one is not null.
func both(m Fields, left, right node) (l, r any, err error) {
	if l, err = left.eval(m); err != nil || l == nil {
		return nil, nil, err
	}
	r, err = right.eval(m)
	return l, r, err
}

// equal is = and <>, with nulls as in ActiveMQ: on the left one is Unknown beside a value, on the
// right it is a value that equals none, and two are equal.
type equal struct {
	condition
	left, right     node
	negate, convert bool
}

func (n *equal) eval(m Fields) (any, error) {
	l, err := n.left.eval(m)
	if err != nil {
		return nil, err
	}
	r, err := n.right.eval(m)
	switch {
	case err != nil || l == nil && r != nil:
		return nil, err
	case l == nil || r == nil:
		return (l == r) != n.negate, nil
	}
	c, ok := compare(l, r, n.convert)
	return (ok && c == 0) != n.negate, nil
}

// order is one of < <= > >=.
type order struct {
	condition
	op          string
	left, right node
	convert     bool
}

func (n *order) eval(m Fields) (any, error) {
	l, r, err := both(m, n.left, n.right)
	if err != nil || l == nil || r == nil {
		return nil, err
	}
	c, ok := compare(l, r, n.convert)
	if !ok {
		return false, nil
	}
	switch n.op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

// in tests a string property; a value that is not a string makes it Unknown, negated or not.
type in struct {
	condition
	arg    *identifier
	set    map[string]bool
	negate bool
}

func (n *in) eval(m Fields) (any, error) {
	v, err := n.arg.eval(m)
	if s, ok := v.(string); ok && err == nil {
		return n.set[s] != n.negate, nil
	}
	return nil, err
}

// like tests a string against a pattern; a value that is not a string is not like anything.
type like struct {
	condition
	arg     node
	pattern []likeElem
	negate  bool
}

func (n *like) eval(m Fields) (any, error) {
	v, err := n.arg.eval(m)
	if v == nil || err != nil {
		return nil, err
	}
	s, ok := v.(string)
	return (ok && matchLike(n.pattern, s)) != n.negate, nil
}

type xpathTest struct {
	test func(Fields) (bool, error)
}

func (*xpathTest) isBoolean() bool { return true }

func (n *xpathTest) eval(m Fields) (any, error) { return n.test(m) }

// negative is the unary minus; a value that is not a number becomes Unknown.
type negative struct{ arg node }

func (negative) isBoolean() bool { return false }

func (n *negative) eval(m Fields) (any, error) {
	v, err := n.arg.eval(m)
	if err != nil {
		return nil, err
	}
	return negate(v)
}

func negate(v any) (any, error) {
	switch v := v.(type) {
	case int8:
		return -int32(v), nil
	case int16:
		return -int32(v), nil
	case int32:
		return -v, nil
	case int64:
		return -v, nil
	case float32:
		return -v, nil
	case float64:
		return -v, nil
	case *big.Int:
		return new(big.Int).Neg(v), nil
	}
	return nil, nil
}

// arithmetic is one of + - * / %; + after a string joins texts.
type arithmetic struct {
	value
	op          byte
	left, right node
}

var errNotNumber = errors.New("arithmetic on a value that is not a number")

func (n *arithmetic) eval(m Fields) (any, error) {
	l, r, err := both(m, n.left, n.right)
	if err != nil || l == nil || r == nil {
		return nil, err
	}
	if s, ok := l.(string); ok && n.op == '+' {
		right := text(r)
		if err := made(len(s) + len(right)); err != nil {
			return nil, err
		}
		return s + right, nil
	}
	lr, rr := rank(l), rank(r)
	switch {
	case lr == 0 || rr == 0:
		return nil, errNotNumber
	case n.op == '/':
		return toFloat(l) / toFloat(r), nil
	case n.op == '%':
		return math.Mod(toFloat(l), toFloat(r)), nil
	case lr >= rankFloat || rr >= rankFloat:
		return combineFloat(n.op, toFloat(l), toFloat(r)), nil
	case lr == rankLong || rr == rankLong:
		return combineInt(n.op, toInt(l), toInt(r)), nil
	}
	return combineInt(n.op, int32(toInt(l)), int32(toInt(r))), nil
}

func combineFloat(op byte, l, r float64) float64 {
	switch op {
	case '+':
		return l + r
	case '-':
		return l - r
	}
	return l * r
}

// combineInt wraps around on overflow, as Java does.
func combineInt[T int32 | int64](op byte, l, r T) any {
	switch op {
	case '+':
		return l + r
	case '-':
		return l - r
	}
	return l * r
}
