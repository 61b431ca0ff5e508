package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"hopwire/internal/address"
	"hopwire/internal/properties"
)

// Limits on placeholders.
const (
	maxPlaceholderDepth = 16
	maxValueBytes       = 64 << 10
)

// defaultPasswordEnv is the variable that ActiveMQ's scripts keep the encryption password in.
const defaultPasswordEnv = "ACTIVEMQ_ENCRYPTION_PASSWORD"

// resolver replaces ${name} and ${name:default}.
type resolver struct {
	opts          *Options
	active        bool             // the file has a placeholder bean
	systemFirst   bool             // definitions beat property files
	keepUnknown   bool             // unknown names stay as they are
	skipMissing   bool             // property files may be missing
	named         map[string]*node // what stands in the file beside the broker
	notices       []Notice
	used          map[*node]bool // beans whose properties placeholders have
	files         map[string]string
	read          []string // property files, for messages
	builtin       map[string]string
	algorithm     string
	passwordEnv   string
	fixedPassword string
	asked         map[string]bool // names that placeholders have
	usedBase      bool            // a value has the base that was guessed
	noBeanTold    bool            // the missing placeholder bean was reported: once is enough
}

// newResolver reads what the placeholder beans of the file say.
func newResolver(root *node, opts *Options) (*resolver, error) {
	r := &resolver{opts: opts, files: make(map[string]string), asked: make(map[string]bool),
		builtin: opts.paths(root.pos.File), named: namedBeans(root), used: make(map[*node]bool),
		algorithm: pbeAlgorithm, passwordEnv: defaultPasswordEnv}
	var beans []*node
	for _, n := range root.children {
		class := n.get("class")
		switch {
		case n.isSpring("bean") && isPlaceholderClass(class):
			beans = append(beans, n)
		case n.name == "property-placeholder":
			beans = append(beans, n)
		case n.isSpring("bean") && strings.Contains(class, "jasypt"):
			r.encryption(n)
		}
	}
	r.active = len(beans) > 0
	for _, n := range beans {
		if err := r.bean(n, len(beans) > 1); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func isPlaceholderClass(class string) bool {
	return strings.HasSuffix(class, "PropertyPlaceholderConfigurer") ||
		strings.HasSuffix(class, "PropertySourcesPlaceholderConfigurer")
}

// encryption notes what a Jasypt bean says about algorithm and password.
func (r *resolver) encryption(n *node) {
	to := map[string]*string{"algorithm": &r.algorithm, "passwordEnvName": &r.passwordEnv,
		"password": &r.fixedPassword}
	for _, g := range givenBy(n) {
		if v := g.texts(); to[g.name] != nil && len(v) == 1 && v[0] != "" {
			*to[g.name] = v[0]
		}
	}
}

// load reads a property file to a map. As in Spring, file: is relative to the working folder and
// decoded, a bare path to the configuration file, classpath: to the conf folder.
func (r *resolver) load(location string, at Pos, to map[string]string) error {
	path := filepath.Join(filepath.Dir(at.File), location)
	if rest, ok := strings.CutPrefix(location, "file:"); ok {
		path = rest
		if rest, ok := strings.CutPrefix(path, "///"); ok {
			path = "/" + rest
		}
		var err error
		if path, err = address.Path(path); err != nil {
			return Problem{at, fmt.Sprintf("property file %s: %v", location, err)}
		}
	} else if rest, ok := strings.CutPrefix(location, "classpath:"); ok {
		path = filepath.Join(r.builtin["activemq.conf"], rest)
	} else if filepath.IsAbs(location) {
		path = location
	}
	data, err := r.opts.ReadFile(path)
	if _, unfit := errors.AsType[unfitError](err); unfit {
		return Problem{at, fmt.Sprintf("property file %v", err)}
	}
	if err != nil {
		if r.skipMissing {
			return nil
		}
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err // the path is there already
		}
		hint := ""
		if conf := r.builtin["activemq.conf"]; strings.HasPrefix(path, conf+"/") {
			hint = "; if ${activemq.conf} is not " + conf + ", ACTIVEMQ_CONF or -D activemq.conf=... says so"
		}
		return Problem{at, fmt.Sprintf("property file %s: %v%s", path, err, hint)}
	}
	if data, _, err = fromUTF16(data); err != nil {
		return Problem{at, fmt.Sprintf("property file %s %v", path, err)}
	}
	maps.Copy(to, properties.Decode(string(data)))
	r.read = append(r.read, path)
	return nil
}

// resolve replaces the placeholders of a text.
func (r *resolver) resolve(text string, at Pos) (string, error) {
	return r.expand(text, at, 0)
}

func (r *resolver) expand(text string, at Pos, depth int) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	if depth > maxPlaceholderDepth {
		return "", Problem{at, fmt.Sprintf("placeholders nested more than %d deep, or in a circle",
			maxPlaceholderDepth)}
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			break
		}
		end := closingBrace(rest)
		if end < 0 {
			return "", Problem{at, "placeholder without its }"}
		}
		value, err := r.placeholder(rest[:end], at, depth)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = rest[end+1:]
		if b.Len() > maxValueBytes {
			return "", Problem{at, fmt.Sprintf("value longer than %d bytes", maxValueBytes)}
		}
	}
	return b.String(), nil
}

// closingBrace returns the index of the } that ends a placeholder, which may hold others.
func closingBrace(s string) int {
	open := 0
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			open++
		case s[i] == '}' && open == 0:
			return i
		case s[i] == '}':
			open--
		}
	}
	return -1
}

// placeholder returns the value of what stands between ${ and }.
func (r *resolver) placeholder(inner string, at Pos, depth int) (string, error) {
	inner, err := r.expand(inner, at, depth+1)
	if err != nil {
		return "", err
	}
	name, def, hasDefault := strings.Cut(inner, ":")
	value, found, err := r.lookup(name, at)
	switch {
	case err != nil:
		return "", err
	case found:
		return r.expand(value, at, depth+1)
	case !r.active && r.noBeanTold:
		return "", Problem{Pos: at}
	case !r.active:
		r.noBeanTold = true
		return "", Problem{at, fmt.Sprintf("placeholder ${%s}: the file has no "+
			"PropertyPlaceholderConfigurer bean that would resolve it; write <bean class=\"org."+
			"springframework.beans.factory.config.PropertyPlaceholderConfigurer\"/> into <beans>",
			name)}
	case hasDefault:
		return def, nil
	case r.keepUnknown:
		return "${" + inner + "}", nil
	}
	where := "neither"
	if len(r.read) > 0 {
		where = "not in " + strings.Join(r.read, ", ") + ", nor"
	}
	return "", Problem{at, fmt.Sprintf("placeholder ${%s} is not defined: %s by -D%s=... nor in the "+
		"environment", name, where, name)}
}

// lookup finds a name: property files, definitions, ActiveMQ's folders, environment. Without a
// placeholder bean nothing is found.
func (r *resolver) lookup(name string, at Pos) (string, bool, error) {
	if !r.active {
		return "", false, nil
	}
	r.asked[name] = true
	fromFile, inFile := r.files[name]
	defined, isDefined := r.opts.Defines[name]
	switch {
	case isDefined && (r.systemFirst || !inFile):
		return defined, true, nil
	case inFile:
		if cipher, ok := encrypted(fromFile); ok {
			plain, err := r.decrypt(cipher, name, at)
			return plain, true, err
		}
		return fromFile, true, nil
	}
	if v, ok := r.builtin[name]; ok {
		r.usedBase = r.usedBase || name != "activemq.conf" && strings.HasPrefix(v, r.opts.guess)
		return v, true, nil
	}
	v, ok := r.opts.LookupEnv(name)
	return v, ok, nil
}

// encrypted returns what stands in ENC(...).
func encrypted(value string) (string, bool) {
	value = strings.TrimSpace(value)
	inner, ok := strings.CutPrefix(value, "ENC(")
	if !ok || !strings.HasSuffix(inner, ")") {
		return "", false
	}
	return strings.TrimSuffix(inner, ")"), true
}

func (r *resolver) decrypt(cipher, name string, at Pos) (string, error) {
	if !strings.EqualFold(r.algorithm, pbeAlgorithm) {
		return "", Problem{at, fmt.Sprintf("${%s} is encrypted with %s; only %s is supported", name,
			r.algorithm, pbeAlgorithm)}
	}
	password := r.fixedPassword
	if password == "" {
		var ok bool
		if password, ok = r.opts.LookupEnv(r.passwordEnv); !ok || password == "" {
			return "", Problem{at, fmt.Sprintf("${%s} is encrypted: put the encryption password into "+
				"the environment variable %s", name, r.passwordEnv)}
		}
	}
	plain, err := decryptPBE(cipher, password)
	if err != nil {
		return "", Problem{at, fmt.Sprintf("${%s} %v", name, err)}
	}
	return plain, nil
}
