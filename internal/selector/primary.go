package selector

import "math/big"

// unary parses the unary operators, which bind tighter than any binary one, and primaries.
func (p *parser) unary() (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > MaxDepth {
		return nil, p.fail(p.tok.pos, "nested more than %d deep", MaxDepth)
	}
	op := p.tok
	switch {
	case p.is("+"), p.is("-"), p.is("NOT"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		pos := p.tok.pos
		arg, err := p.unary()
		if err != nil {
			return nil, err
		}
		switch op.text {
		case "NOT":
			cond, err := p.boolean(arg, pos)
			if err != nil {
				return nil, err
			}
			return &not{cond}, nil
		case "-":
			return negated(arg), nil
		}
		return arg, nil
	case p.is("XPATH"), p.is("XQUERY"):
		return p.query(op)
	}
	return p.primary()
}

// negated folds the sign into a literal, so that the lowest int64 is one, and is a node otherwise.
func negated(arg node) node {
	if l, ok := arg.(*literal); ok {
		if n, ok := l.value.(*big.Int); ok {
			return &literal{narrow(new(big.Int).Neg(n))}
		}
		if v, err := negate(l.value); err == nil && v != nil {
			return &literal{v}
		}
	}
	return &negative{arg}
}

// query parses XPATH 'x' and XQUERY 'x'.
func (p *parser) query(op token) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	expr, err := p.stringLiteral(op.text)
	if err != nil {
		return nil, err
	}
	if op.text == "XQUERY" {
		p.warnings = append(p.warnings, "XQUERY is never true: no broker evaluates it")
		return &literal{false}, nil
	}
	if p.xpath == nil {
		return nil, p.fail(op.pos, "XPATH is not supported: select on a property instead")
	}
	test, err := p.xpath(expr)
	if err != nil {
		return nil, p.fail(op.end, "XPATH: %v", err)
	}
	return &xpathTest{test}, nil
}

// primary parses a literal, an identifier, a function call or a parenthesised expression.
func (p *parser) primary() (node, error) {
	t := p.tok
	switch {
	case t.kind == kindString, t.kind == kindNumber:
		return &literal{t.value}, p.advance()
	case p.is("TRUE"), p.is("FALSE"):
		return &literal{t.text == "TRUE"}, p.advance()
	case p.is("NULL"):
		return &literal{nil}, p.advance()
	case p.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.expression(powerOr)
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case t.kind == kindID:
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.is("(") {
			return p.call(t)
		}
		p.ids = append(p.ids, t.text)
		return &identifier{name: t.text, end: t.end}, nil
	}
	return nil, p.fail(t.pos, "unexpected %s, expected a value or a condition", t)
}
