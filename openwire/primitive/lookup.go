package primitive

// LookupProperty finds one key of an encoded primitive map and decodes only its value; ok is false
// when the key is absent or the data before it is malformed. Of a repeated key the last counts, so
// the whole map is walked, but nothing except the value is allocated.
func LookupProperty(raw []byte, key string) (value any, ok bool) {
	if len(raw) == 0 {
		return nil, false
	}
	r := reader{raw: raw}
	found := -1
	plain := ASCII(key)
	for n := r.count(3); n > 0; n-- {
		name := r.block(int(r.uint16()))
		at := r.pos
		r.skip()
		if r.err != nil {
			break
		}
		if plain && string(name) == key || !plain && sameKey(name, key) {
			found = at
		}
	}
	if found < 0 {
		return nil, false
	}
	v := reader{raw: raw, pos: found}
	value = v.value()
	return value, v.err == nil
}

func sameKey(name []byte, key string) bool {
	s, err := UTF8(name)
	return err == nil && s == key
}

// fixed is the payload size of the value codes that have one.
var fixed = [...]int{
	CodeNull: 0, CodeBool: 1, CodeByte: 1, CodeChar: 2, CodeShort: 2, CodeInt: 4, CodeLong: 8,
	CodeDouble: 8, CodeFloat: 4,
}

// skip passes one value without decoding it.
func (r *reader) skip() {
	switch code := Code(r.uint8()); code {
	case CodeString:
		r.block(int(r.uint16()))
	case CodeBytes:
		r.block(int(r.int32()))
	case CodeBigString:
		if n := r.int32(); n != -1 {
			r.block(int(n))
		}
	case CodeMap, CodeList:
		r.skipNested(code)
	default:
		if int(code) >= len(fixed) {
			r.fail("unknown value type")
			return
		}
		r.take(fixed[code])
	}
}

func (r *reader) skipNested(code Code) {
	if r.depth >= MaxDepth {
		r.fail("maps and lists nest too deep")
		return
	}
	r.depth++
	size := 1
	if code == CodeMap {
		size = 3
	}
	for n := r.count(size); n > 0 && r.err == nil; n-- {
		if code == CodeMap {
			r.block(int(r.uint16()))
		}
		r.skip()
	}
	r.depth--
}
