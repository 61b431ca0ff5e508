package gen

import (
	"slices"
	"strings"
)

// manyTypes are the elements whose type byte is not known beforehand; the codec's hand-written
// part has their nested functions.
var manyTypes = []string{"Any", "TransactionId", "Destination", "Message"}

// shared are the small immutable structures of which the decoder keeps and hands out one copy.
var shared = []string{"BrokerId", "ConnectionId", "SessionId", "ConsumerId", "ProducerId",
	"LocalTransactionId", "Destination"}

// writeObjects writes the functions by which fields hold structures: nested, cached, array.
func writeObjects(p *printer, all []structure, _ Spec) {
	nested, cached, array := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range all {
		for _, f := range s.fields {
			name := element(f.ObjectType)
			switch {
			case f.Wire == "objectArray":
				array[name], nested[name] = true, true
			case f.Wire == "object" && f.Cached:
				cached[name], nested[name] = true, true
			case f.Wire == "object":
				nested[name] = true
			}
		}
	}
	for _, name := range sorted(nested) {
		if !slices.Contains(manyTypes, name) {
			writeNested(p, name)
		}
	}
	for _, name := range sorted(cached) {
		writeCached(p, name)
	}
	for _, name := range sorted(array) {
		writeArray(p, name)
	}
	writeBodies(p, all)
}

func sorted(set map[string]bool) []string {
	var names []string
	for n := range set {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func writeNested(p *printer, name string) {
	p.f(`func (e *Encoder) nested%[1]s(x *%[1]s) {
	if x == nil {
		e.flag(false)
		return
	}
	if e.open(%[2]s) {
		x.encode(e)
		e.depth--
	}
}

func (d *Decoder) nested%[1]s() *%[1]s {
	if !d.open(%[2]s) {
		return nil
	}
	x := d.body%[1]s()
	d.depth--
	return x
}

`, name, typeConst(name))
}

func writeCached(p *printer, name string) {
	goType := objectType(name)
	if name == "Any" {
		goType = "DataStructure"
	} else {
		p.f("func (d *Decoder) cached%s() %s {\n", name, goType)
		p.f("\tif !d.cache {\n\t\treturn d.nested%s()\n\t}\n", name)
		p.f("\tx := d.cachedAny()\n\tif x == nil {\n\t\treturn nil\n\t}\n")
		p.f("\tv, ok := x.(%s)\n", goType)
		p.f("\tif !ok {\n\t\td.wrongKind(x.TypeID(), %q)\n\t}\n\treturn v\n}\n\n", name)
	}
	p.f("func (e *Encoder) cached%s(x %s) {\n", name, goType)
	p.f("\tif !e.cache {\n\t\te.nested%s(x)\n\t\treturn\n\t}\n", name)
	if strings.HasPrefix(goType, "*") {
		p.f("\tvar key cacheKey\n\tif x != nil {\n\t\tkey = x.cacheKey()\n\t}\n")
	} else {
		p.f("\tkey := e.keyOf(x)\n")
	}
	p.f("\tif at, known := e.reference(&key); !known {\n")
	p.f("\t\te.nested%s(x)\n\t\te.store(&key, at)\n\t}\n}\n\n", name)
}

func writeArray(p *printer, name string) {
	goType := objectType(name)
	if name == "Any" {
		goType = "DataStructure"
	}
	p.f(`func (e *Encoder) array%[1]s(xs []%[2]s) {
	if !e.count(len(xs), xs == nil) {
		return
	}
	for _, x := range xs {
		e.nested%[1]s(x)
	}
}

`, name, goType)
	if name == "BrokerId" {
		return // decoded by hand: equal broker paths are one slice
	}
	p.f(`func (d *Decoder) array%[1]s() []%[2]s {
	n, ok := d.count()
	if !ok {
		return nil
	}
	xs := make([]%[2]s, n)
	for i := range xs {
		xs[i] = d.nested%[1]s()
	}
	return xs
}

`, name, goType)
}

// writeBodies writes for each structure the decoding after its type byte, and the choice by type.
func writeBodies(p *printer, all []structure) {
	for _, s := range all {
		switch {
		case s.name == "Message" || s.name == "MessageId":
			// hand-written: reuse of the caller's memory, the marshal-aware bit
		case s.name == "Destination":
			p.f("func (d *Decoder) bodyDestination(t byte) *Destination {\n")
			p.f("\tx := Destination{Type: t}\n\tx.decode(d)\n\treturn d.known.%s.share(&x)\n}\n\n",
				"destination")
		case slices.Contains(shared, s.name):
			p.f("func (d *Decoder) body%[1]s() *%[1]s {\n\tvar x %[1]s\n", s.name)
			pool := strings.ToLower(s.name[:1]) + s.name[1:]
			p.f("\tx.decode(d)\n\treturn d.known.%s.share(&x)\n}\n\n", pool)
		default:
			p.f("func (d *Decoder) body%[1]s() *%[1]s {\n\tx := new(%[1]s)\n", s.name)
			if s.aware {
				p.f("\touter := d.enter(%s)\n\tx.decode(d)\n\td.leave(outer)\n", typeConst(s.name))
			} else {
				p.f("\tx.decode(d)\n")
			}
			p.f("\treturn x\n}\n\n")
		}
	}
	p.f("// structure decodes what follows type byte t; nil when there is no such type.\n")
	p.f("func (d *Decoder) structure(t byte) structure {\n\tswitch t {\n")
	for _, s := range all {
		switch s.name {
		case "Message", "Destination":
		default:
			p.f("\tcase %s:\n\t\treturn d.body%s()\n", typeConst(s.name), s.name)
		}
	}
	p.f("\tcase TypeQueue, TypeTopic, TypeTempQueue, TypeTempTopic:\n")
	p.f("\t\treturn d.bodyDestination(t)\n\t}\n")
	p.f("\tif isMessage(t) {\n\t\treturn d.bodyMessage(t)\n\t}\n\treturn nil\n}\n\n")
	p.f("// known holds the structures seen last on the connection, to hand out again.\n")
	p.f("type known struct {\n")
	for _, name := range shared {
		p.f("\t%s recent[%s]\n", strings.ToLower(name[:1])+name[1:], name)
	}
	p.f("}\n")
}
