package selector

import (
	"errors"
	"fmt"
	"strings"
)

// Binding powers of the binary operators, low to high.
const (
	powerOr = iota + 1
	powerAnd
	powerEquality
	powerComparison
	powerAdd
	powerMultiply
)

// parser turns tokens into a tree by precedence climbing.
type parser struct {
	text     string
	lex      lexer
	offset   int // characters of a prefix cut off before the lexer's first
	tok      token
	depth    int
	convert  bool // numbers and strings compare after conversion
	xpath    XPath
	ids      []string
	warnings []string
}

func newParser(text string, xpath XPath) *parser {
	p := &parser{text: text, xpath: xpath}
	body := text
	if rest, ok := strings.CutPrefix(body, convertPrefix); ok {
		p.convert, body = true, rest
	}
	p.offset = len(text) - len(body)
	p.lex.src = []rune(body)
	return p
}

// fail returns a SyntaxError at pos, an index into the lexer's characters.
func (p *parser) fail(pos int, format string, args ...any) error {
	msg := strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(fmt.Sprintf(format, args...))
	return &SyntaxError{Text: p.text, Pos: p.offset + pos + 1, Msg: msg}
}

// advance reads the next token into p.tok.
func (p *parser) advance() error {
	t, err := p.lex.next()
	if err != nil {
		if le, ok := errors.AsType[*lexError](err); ok {
			return p.fail(le.pos, "%s", le.msg)
		}
		return err
	}
	p.tok = t
	return nil
}

// is reports whether the current token is the operator or keyword s.
func (p *parser) is(s string) bool {
	return (p.tok.kind == kindOp || p.tok.kind == kindKeyword) && p.tok.text == s
}

// expect moves over the operator or keyword s.
func (p *parser) expect(s string) error {
	if !p.is(s) {
		return p.fail(p.tok.pos, "unexpected %s, expected %q", p.tok, s)
	}
	return p.advance()
}

// stringLiteral moves over a string literal and returns it.
func (p *parser) stringLiteral(after string) (string, error) {
	if p.tok.kind != kindString {
		return "", p.fail(p.tok.pos, "unexpected %s, expected a string in single quotes after %s",
			p.tok, after)
	}
	s := p.tok.value.(string)
	return s, p.advance()
}

// selector parses the whole text.
func (p *parser) selector() (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.expression(powerOr)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != kindEOF {
		return nil, p.fail(p.tok.pos, "unexpected %s, expected an operator or the end", p.tok)
	}
	return p.boolean(n, 0)
}

// boolean returns n as a condition: a condition itself, or an identifier that is true only when
// its value is the boolean true.
func (p *parser) boolean(n node, pos int) (node, error) {
	if n.isBoolean() {
		return n, nil
	}
	if id, ok := n.(*identifier); ok {
		return &truth{id}, nil
	}
	return nil, p.fail(pos, "a condition is needed here, not a value")
}

// power returns the binding power of the current token as a binary operator, or 0.
func (p *parser) power() int {
	if p.tok.kind != kindOp && p.tok.kind != kindKeyword {
		return 0
	}
	switch p.tok.text {
	case "OR":
		return powerOr
	case "AND":
		return powerAnd
	case "=", "<>", "IS":
		return powerEquality
	case "<", "<=", ">", ">=", "LIKE", "BETWEEN", "IN", "NOT":
		return powerComparison
	case "+", "-":
		return powerAdd
	case "*", "/", "%":
		return powerMultiply
	}
	return 0
}

// expression parses operators of at least the binding power least. After one that ends without a
// right side, such as IS NULL or IN (...), none may follow that binds tighter.
func (p *parser) expression(least int) (node, error) {
	start := p.tok.pos
	left, err := p.unary()
	most := powerMultiply
	for chain := 1; err == nil; chain++ {
		power := p.power()
		if power < least || power == 0 || power > most {
			return left, nil
		}
		most = power
		if p.depth+chain > MaxDepth {
			return nil, p.fail(p.tok.pos, "more than %d operators in a chain", MaxDepth)
		}
		switch power {
		case powerOr, powerAnd:
			left, err = p.logic(left, start, power)
			chain = 1
		case powerEquality:
			left, err = p.equality(left)
		case powerComparison:
			left, err = p.comparison(left)
		default:
			left, err = p.arithmetic(left, power)
		}
	}
	return nil, err
}

// logic parses the rest of a chain of ANDs or ORs into one flat node.
func (p *parser) logic(left node, start, power int) (node, error) {
	word := p.tok.text
	first, err := p.boolean(left, start)
	if err != nil {
		return nil, err
	}
	list := []node{first}
	for p.is(word) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		pos := p.tok.pos
		n, err := p.expression(power + 1)
		if err != nil {
			return nil, err
		}
		if n, err = p.boolean(n, pos); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return &logical{decisive: power == powerOr, list: list}, nil
}

// equality parses what follows the left side of =, <>, IS NULL or IS NOT NULL.
func (p *parser) equality(left node) (node, error) {
	op := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if op.text == "IS" {
		negate := p.is("NOT")
		if negate {
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		if err := p.expect("NULL"); err != nil {
			return nil, err
		}
		return &isNull{arg: left, negate: negate}, nil
	}
	right, err := p.expression(powerEquality + 1)
	if err != nil {
		return nil, err
	}
	l, lok := left.(*literal)
	r, rok := right.(*literal)
	if lok && l.value == nil || rok && r.value == nil {
		return nil, p.fail(op.pos, "NULL cannot be compared: write IS NULL or IS NOT NULL")
	}
	if lok && rok && l.isBoolean() && !r.isBoolean() {
		return nil, p.fail(op.pos, "a boolean cannot be compared with another kind of value")
	}
	return &equal{left: left, right: right, negate: op.text == "<>", convert: p.convert}, nil
}

// ordered checks that n can stand beside < or >: a literal must be a number.
func (p *parser) ordered(n node, pos int) error {
	if n.isBoolean() {
		return p.fail(pos, "conditions and booleans have no order")
	}
	if l, ok := n.(*literal); ok {
		if _, isString := l.value.(string); isString || l.value == nil {
			return p.fail(pos, "only numbers have an order, not %s", l)
		}
	}
	return nil
}

// comparison parses what follows the left side of <, LIKE, BETWEEN, IN and their negations.
func (p *parser) comparison(left node) (node, error) {
	op := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	negate := op.text == "NOT"
	if negate {
		op = p.tok
		if !p.is("LIKE") && !p.is("BETWEEN") && !p.is("IN") {
			return nil, p.fail(op.pos, "unexpected %s, expected LIKE, BETWEEN or IN after NOT", op)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	switch op.text {
	case "LIKE":
		return p.like(left, negate)
	case "BETWEEN":
		return p.between(left, op.pos, negate)
	case "IN":
		return p.in(left, op.pos, negate)
	}
	right, err := p.expression(powerComparison + 1)
	if err != nil {
		return nil, err
	}
	return p.order(op.text, left, right, op.pos)
}

// order makes the node for one of < <= > >=.
func (p *parser) order(op string, left, right node, pos int) (node, error) {
	for _, n := range []node{left, right} {
		if err := p.ordered(n, pos); err != nil {
			return nil, err
		}
	}
	return &order{op: op, left: left, right: right, convert: p.convert}, nil
}

func (p *parser) like(left node, negate bool) (node, error) {
	pattern, err := p.stringLiteral("LIKE")
	if err != nil {
		return nil, err
	}
	escape := rune(-1)
	if p.is("ESCAPE") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		pos := p.tok.pos
		s, err := p.stringLiteral("ESCAPE")
		if err != nil {
			return nil, err
		}
		runes := []rune(s)
		if len(runes) != 1 {
			return nil, p.fail(pos, "ESCAPE takes exactly one character")
		}
		escape = runes[0]
	}
	return &like{arg: left, pattern: compileLike(pattern, escape), negate: negate}, nil
}

// between makes "a BETWEEN x AND y" two comparisons; negated they are "a < x OR a > y", which on
// values of other kinds is False, not the opposite of what BETWEEN says.
func (p *parser) between(left node, pos int, negate bool) (node, error) {
	low, err := p.expression(powerComparison + 1)
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	high, err := p.expression(powerComparison + 1)
	if err != nil {
		return nil, err
	}
	lowOp, highOp := ">=", "<="
	if negate {
		lowOp, highOp = "<", ">"
	}
	a, err := p.order(lowOp, left, low, pos)
	if err != nil {
		return nil, err
	}
	b, err := p.order(highOp, left, high, pos)
	if err != nil {
		return nil, err
	}
	return &logical{decisive: negate, list: []node{a, b}}, nil
}

func (p *parser) in(left node, pos int, negate bool) (node, error) {
	id, ok := left.(*identifier)
	if !ok {
		return nil, p.fail(pos, "IN tests a property, not an expression")
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	set := make(map[string]bool)
	for {
		s, err := p.stringLiteral("IN (")
		if err != nil {
			return nil, err
		}
		set[s] = true
		if p.is(")") {
			return &in{arg: id, set: set, negate: negate}, p.advance()
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

// arithmetic parses the right side of + - * / %.
func (p *parser) arithmetic(left node, power int) (node, error) {
	op := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.expression(power + 1)
	if err != nil {
		return nil, err
	}
	if op.text == "-" {
		p.hyphenated(left, right, op)
	}
	return &arithmetic{op: op.text[0], left: left, right: right}, nil
}

// hyphenated warns about "my-prop", which is a subtraction.
func (p *parser) hyphenated(left, right node, op token) {
	l, lok := left.(*identifier)
	r, rok := right.(*identifier)
	if !lok || !rok || l.end != op.pos || r.end-len([]rune(r.name)) != op.end {
		return
	}
	p.warnings = append(p.warnings, fmt.Sprintf("position %d: %s-%s is %s minus %s: a property name "+
		"in a selector cannot contain '-'", p.offset+op.pos+1, l.name, r.name, l.name, r.name))
}
