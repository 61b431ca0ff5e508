package openwire

// cachedNull stands in the object cache for a null that was cached.
type cachedNull struct{}

func (cachedNull) TypeID() byte { return 0 }

// cachedAny reads a cached field: a reference, or a structure and the index to keep it under.
func (d *Decoder) cachedAny() DataStructure {
	if !d.cache {
		return d.nestedAny()
	}
	fresh := d.flag()
	i := int(int16(d.uint16()))
	if d.err != nil {
		return nil
	}
	if !fresh {
		if i < 0 || i >= len(d.table) || d.table[i] == nil {
			d.fail("object cache index %d was never defined", i)
			return nil
		}
		if _, null := d.table[i].(cachedNull); null {
			return nil
		}
		return d.table[i]
	}
	if i < -1 || i >= d.tableSize {
		d.fail("object cache index %d is outside the %d agreed", i, d.tableSize)
		return nil
	}
	x := d.nestedAny()
	if i >= 0 && d.err == nil {
		d.keep(i, x)
	}
	return x
}

func (d *Decoder) keep(i int, x DataStructure) {
	if i >= len(d.table) {
		d.table = append(d.table, make([]DataStructure, i+1-len(d.table))...)
	}
	if x == nil {
		x = cachedNull{}
	}
	d.table[i] = x
}

func (d *Decoder) wrongKind(t byte, want string) {
	d.fail("%s where a %s belongs", typeNames[t], want)
}

// descend counts one level of nesting; the caller lowers depth after.
func (d *Decoder) descend() bool {
	if d.depth >= maxDepth {
		d.fail("structures nest deeper than %d", maxDepth)
		return false
	}
	d.depth++
	return true
}

// openAny reads what precedes the fields of a nested structure; false when it is null. The caller
// lowers depth after the structure.
func (d *Decoder) openAny() (t byte, ok bool) {
	if !d.flag() {
		return 0, false
	}
	t = d.byte()
	if since := int(typeSince[t]); since == 0 || since > d.version {
		if d.err == nil {
			d.fail("type %d does not exist in version %d", t, d.version)
		}
		return 0, false
	}
	return t, d.descend()
}

// open is openAny for a field of one type.
func (d *Decoder) open(want byte) bool {
	t, ok := d.openAny()
	if ok && t != want {
		d.depth--
		d.wrongKind(t, typeNames[want])
		return false
	}
	return ok
}

func (d *Decoder) nestedAny() DataStructure {
	t, ok := d.openAny()
	if !ok {
		return nil
	}
	x := d.structure(t)
	d.depth--
	return x
}

func (d *Decoder) nestedDestination() *Destination {
	t, ok := d.openAny()
	if !ok {
		return nil
	}
	d.depth--
	if !isDestination(t) {
		d.wrongKind(t, "destination")
		return nil
	}
	return d.bodyDestination(t)
}

func (d *Decoder) nestedTransactionId() TransactionId {
	t, ok := d.openAny()
	if !ok {
		return nil
	}
	defer func() { d.depth-- }()
	switch t {
	case TypeLocalTransactionId:
		return d.bodyLocalTransactionId()
	case TypeXATransactionId:
		return d.bodyXATransactionId()
	}
	d.wrongKind(t, "transaction id")
	return nil
}

func (d *Decoder) nestedMessage() *Message {
	t, ok := d.openAny()
	if !ok {
		return nil
	}
	defer func() { d.depth-- }()
	if !isMessage(t) {
		d.wrongKind(t, "message")
		return nil
	}
	return d.bodyMessage(t)
}

func (d *Decoder) bodyMessage(t byte) *Message {
	x := &Message{Type: t}
	outer := d.enter(t)
	x.decode(d)
	d.leave(outer)
	return x
}

// bodyMessageId fills the scratch structure's id again when there is one.
func (d *Decoder) bodyMessageId() *MessageId {
	x := d.spare[0]
	if x == nil {
		x = d.spare[1]
		d.spare[1] = nil
	}
	d.spare[0] = nil
	if x == nil {
		x = new(MessageId)
	} else {
		*x = MessageId{}
	}
	x.decode(d)
	return x
}

// outerBits is what a nested structure in pre-marshalled form hides meanwhile.
type outerBits struct {
	bits []byte
	bit  int
	end  int // where the form must end; 0 when there is none
}

// enter reads the bit of a nested marshal-aware structure and, if a pre-marshalled form follows,
// its head; leave goes back to the outer flags. No known peer writes that form.
func (d *Decoder) enter(t byte) (outer outerBits) {
	if !d.tight || d.depth == 0 || !d.flag() {
		return outerBits{}
	}
	size := int(d.int32())
	if size < 1 || size > len(d.buf)-d.pos {
		d.fail("pre-marshalled form of %d bytes in %d", size, len(d.buf)-d.pos)
		return outerBits{}
	}
	outer = outerBits{d.bits, d.bit, d.pos + size}
	if got := d.byte(); got != t {
		d.wrongKind(got, typeNames[t])
	}
	d.bitsOfFrame()
	return outer
}

func (d *Decoder) leave(outer outerBits) {
	if outer.end == 0 || d.err != nil {
		return
	}
	if d.pos != outer.end || (d.bit+7)>>3 != len(d.bits) {
		d.fail("pre-marshalled form has another size than it says")
		return
	}
	d.bits, d.bit = outer.bits, outer.bit
}

// count reads the head of an array; false when it is null. An element takes at least a flag.
func (d *Decoder) count() (n int, ok bool) {
	if !d.flag() {
		return 0, false
	}
	n = int(int16(d.uint16()))
	left := len(d.buf) - d.pos
	if d.tight {
		left = len(d.bits)*8 - d.bit
	}
	if n < 0 || n > left {
		d.fail("array of %d elements with room for %d", n, left)
		return 0, false
	}
	return n, d.err == nil
}

// arrayBrokerId gives equal broker paths as one slice without spare capacity.
func (d *Decoder) arrayBrokerId() []*BrokerId {
	n, ok := d.count()
	if !ok {
		return nil
	}
	var few [8]*BrokerId
	if n > len(few) || n == 0 {
		xs := make([]*BrokerId, n)
		for i := range xs {
			xs[i] = d.nestedBrokerId()
		}
		return xs
	}
	for i := range few[:n] {
		few[i] = d.nestedBrokerId()
	}
	return d.paths.share(few[:n])
}
