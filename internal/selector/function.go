package selector

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// function is one of ActiveMQ's extensions; names are case-sensitive.
type function struct {
	least, most int  // number of arguments
	pattern     int  // index of the argument that is a regular expression, or -1
	boolean     bool // returns a truth value, False when an argument is missing
	eval        func(c *call, args []any) (any, error)
}

// missing is the result when an argument is null: ActiveMQ fails in all functions but the tests.
func (f *function) missing(name string) (any, error) {
	if f.boolean {
		return false, nil
	}
	return nil, fmt.Errorf("%s: an argument is missing from the message", name)
}

// functions is filled in init because the entries refer to call, which refers to the table.
var functions map[string]*function

func init() {
	functions = map[string]*function{
		"REGEX":    {least: 2, most: 2, pattern: 0, boolean: true, eval: evalRegex},
		"INLIST":   {least: 2, most: 2, pattern: -1, boolean: true, eval: evalInList},
		"MAKELIST": {least: 1, most: MaxTextBytes, pattern: -1, eval: evalMakeList},
		"SPLIT":    {least: 2, most: 3, pattern: 1, eval: evalSplit},
		"REPLACE":  {least: 3, most: 3, pattern: 1, eval: evalReplace},
	}
}

// call is a function call; re is its regular expression when that is a literal.
type call struct {
	fn   *function
	name string
	args []node
	re   *regexp.Regexp
}

func (c *call) isBoolean() bool { return c.fn.boolean }

func (c *call) eval(m Fields) (any, error) {
	args := make([]any, len(c.args))
	for i, a := range c.args {
		v, err := a.eval(m)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	if slices.ContainsFunc(args, func(v any) bool { return v == nil }) {
		return c.fn.missing(c.name)
	}
	v, err := c.fn.eval(c, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return v, nil
}

// regexp returns the expression for this call, compiled now when it comes from the message.
func (c *call) regexp(args []any) (*regexp.Regexp, error) {
	if c.re != nil {
		return c.re, nil
	}
	pattern := text(args[c.fn.pattern])
	if len(pattern) > MaxFoundPatternBytes {
		return nil, fmt.Errorf("the pattern in the message has %d bytes, the limit is %d", len(pattern),
			MaxFoundPatternBytes)
	}
	return regexp.Compile(pattern)
}

// made holds the length of a text to its limit.
func made(bytes int) error {
	if bytes > MaxMadeBytes {
		return fmt.Errorf("it would make a text of more than %d bytes", MaxMadeBytes)
	}
	return nil
}

func tooMany(matches int) error {
	if matches > MaxMatches {
		return fmt.Errorf("the pattern is found more than %d times", MaxMatches)
	}
	return nil
}

// call parses the arguments of the function named by id: operators other than unary ones need
// parentheses there.
func (p *parser) call(id token) (node, error) {
	fn := functions[id.text]
	if fn == nil {
		hint := "known are INLIST, MAKELIST, REGEX, REPLACE, SPLIT"
		if up := strings.ToUpper(id.text); functions[up] != nil {
			hint = "did you mean " + up + "?"
		}
		return nil, p.fail(id.pos, "no function %q: %s", id.text, hint)
	}
	c := &call{fn: fn, name: id.text}
	for first := true; first || p.is(","); first = false {
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.unary()
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, n)
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if len(c.args) < fn.least || len(c.args) > fn.most {
		return nil, p.fail(id.pos, "%s takes %d to %d arguments, not %d", id.text, fn.least, fn.most,
			len(c.args))
	}
	if fn.pattern < 0 {
		return c, nil
	}
	if l, ok := c.args[fn.pattern].(*literal); ok {
		re, err := regexp.Compile(text(l.value))
		if err != nil {
			return nil, p.fail(id.pos, "%s: %v", id.text, err)
		}
		c.re = re
	}
	return c, nil
}

// evalRegex looks for the pattern anywhere in the value.
func evalRegex(c *call, args []any) (any, error) {
	re, err := c.regexp(args)
	if err != nil {
		return nil, err
	}
	return re.MatchString(text(args[1])), nil
}

// evalInList compares type and value: the int 5 is not the long 5.
func evalInList(_ *call, args []any) (any, error) {
	l, ok := args[0].(list)
	if !ok {
		return nil, fmt.Errorf("the first argument is not a list")
	}
	return slices.ContainsFunc(l, func(v any) bool { return same(v, args[1]) }), nil
}

func evalMakeList(_ *call, args []any) (any, error) { return list(args), nil }

// evalSplit splits as Java's String.split does: trailing empty parts are dropped unless a limit
// other than 0 is given.
func evalSplit(c *call, args []any) (any, error) {
	limit := 0
	if len(args) == 3 {
		if r := rank(args[2]); r != rankInt && r != rankLong {
			return nil, fmt.Errorf("the limit is not a whole number")
		}
		limit = int(toInt(args[2]))
	}
	re, err := c.regexp(args)
	if err != nil {
		return nil, err
	}
	most := MaxMatches + 1
	if limit > 0 {
		most = min(most, limit)
	}
	parts := re.Split(text(args[0]), most)
	if len(parts) > MaxMatches && most != limit {
		return nil, tooMany(len(parts))
	}
	for limit == 0 && len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	l := make(list, len(parts))
	for i, s := range parts {
		l[i] = s
	}
	return l, nil
}

// evalReplace replaces each match; $1 and ${name} in the replacement are groups.
func evalReplace(c *call, args []any) (any, error) {
	re, err := c.regexp(args)
	if err != nil {
		return nil, err
	}
	template, err := expandTemplate(text(args[2]), re)
	if err != nil {
		return nil, err
	}
	in := text(args[0])
	places := re.FindAllStringSubmatchIndex(in, MaxMatches+1)
	if err := tooMany(len(places)); err != nil {
		return nil, err
	}
	var out []byte
	end := 0
	for _, at := range places {
		out = append(out, in[end:at[0]]...)
		out = re.ExpandString(out, template, in, at)
		end = at[1]
		if err := made(len(out)); err != nil {
			return nil, err
		}
	}
	if err := made(len(out) + len(in) - end); err != nil {
		return nil, err
	}
	return string(append(out, in[end:]...)), nil
}

// expandTemplate rewrites a Java replacement as a Go one: \x is x itself, and $12 is group 12 only
// when there are that many groups, else group 1 followed by a 2.
func expandTemplate(java string, re *regexp.Regexp) (string, error) {
	var b strings.Builder
	for i := 0; i < len(java); i++ {
		switch c := java[i]; {
		case c == '\\' && i+1 < len(java):
			i++
			if java[i] == '$' {
				b.WriteByte('$')
			}
			b.WriteByte(java[i])
		case c == '$' && i+1 < len(java) && java[i+1] == '{':
			end := strings.IndexByte(java[i:], '}')
			if end < 0 {
				return "", fmt.Errorf("replacement with ${ without }")
			}
			b.WriteString(java[i : i+end+1])
			i += end
		case c == '$':
			group, digits := 0, 0
			for i+1 < len(java) && isDigit(rune(java[i+1])) {
				next := group*10 + int(java[i+1]-'0')
				if next > re.NumSubexp() {
					break
				}
				group, digits = next, digits+1
				i++
			}
			if digits == 0 {
				return "", fmt.Errorf("replacement names a group that the pattern lacks")
			}
			b.WriteString("${" + strconv.Itoa(group) + "}")
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
