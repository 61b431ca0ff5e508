package openwire

import (
	"math"
	"slices"
)

const (
	// defaultCacheSize holds when a peer announces 0 or nothing.
	defaultCacheSize = 16383
	// cacheSlack is how many slots are kept free before each command; a cache that is smaller
	// cannot be used by this rule, so nothing is stored in it.
	cacheSlack = 100
)

// keyKind tells apart the structures that are cached; a destination's kind depends on its type.
type keyKind uint8

const (
	keyNull keyKind = iota
	keyBroker
	keyConnection
	keySession
	keyConsumer
	keyProducer
	keyLocal
	keyXA
	keyDestination // plus type - TypeQueue
	keyKinds       = 16
)

// cacheKey is a cached structure by value. The zero key is null, which is cached too.
type cacheKey struct {
	s, t  string
	a, b  int64
	kind  keyKind
	flags uint8
}

func (x *BrokerId) cacheKey() cacheKey {
	return cacheKey{kind: keyBroker, s: x.Value, flags: uint8(x.Empty)}
}

func (x *ConnectionId) cacheKey() cacheKey {
	return cacheKey{kind: keyConnection, s: x.Value, flags: uint8(x.Empty)}
}

func (x *SessionId) cacheKey() cacheKey {
	return cacheKey{kind: keySession, s: x.ConnectionID, a: x.Value, flags: uint8(x.Empty)}
}

func (x *ConsumerId) cacheKey() cacheKey {
	return cacheKey{kind: keyConsumer, s: x.ConnectionID, a: x.SessionID, b: x.Value,
		flags: uint8(x.Empty)}
}

func (x *ProducerId) cacheKey() cacheKey {
	return cacheKey{kind: keyProducer, s: x.ConnectionID, a: x.SessionID, b: x.Value,
		flags: uint8(x.Empty)}
}

func (x *Destination) cacheKey() cacheKey {
	return cacheKey{kind: keyDestination + keyKind((x.Type-TypeQueue)&3), s: x.PhysicalName,
		flags: uint8(x.Empty)}
}

func (x *LocalTransactionId) cacheKey() cacheKey {
	k := cacheKey{kind: keyLocal, a: x.Value}
	if c := x.ConnectionID; c != nil {
		k.s, k.flags = c.Value, 1|uint8(c.Empty)<<1
	}
	return k
}

func (x *XATransactionId) cacheKey() cacheKey {
	k := cacheKey{kind: keyXA, a: int64(x.FormatID), s: string(x.GlobalTransactionID),
		t: string(x.BranchQualifier)}
	if x.GlobalTransactionID != nil {
		k.flags |= 1
	}
	if x.BranchQualifier != nil {
		k.flags |= 2
	}
	return k
}

// keyOf is the key of a structure in a field of interface type.
func (e *Encoder) keyOf(x DataStructure) cacheKey {
	if x == nil {
		return cacheKey{}
	}
	if s, ok := x.(structure); ok && s.isNil() {
		return cacheKey{}
	}
	switch x := x.(type) {
	case *BrokerId:
		return x.cacheKey()
	case *ConnectionId:
		return x.cacheKey()
	case *SessionId:
		return x.cacheKey()
	case *ConsumerId:
		return x.cacheKey()
	case *ProducerId:
		return x.cacheKey()
	case *Destination:
		return x.cacheKey()
	case *LocalTransactionId:
		return x.cacheKey()
	case *XATransactionId:
		return x.cacheKey()
	}
	e.fail("a %s cannot be cached", typeNames[x.TypeID()])
	return cacheKey{}
}

// sendCache is the object cache of a sender. It chooses indexes as Java does: counting up and
// wrapping, the outer structure before its inner ones in the loose encoding and after them in the
// tight one.
type sendCache struct {
	size  int              // slots agreed; below cacheSlack nothing is stored
	slots []cacheKey       // by index, grown as needed; a dropped slot is the zero key
	index map[cacheKey]int // known structures
	next  int              // index of the next new structure
	evict int              // next slot to drop
	memo  [keyKinds]memo   // last hit of each kind
	undo  []overwritten    // what this command stored, for rollback
	was   int              // next when this command began
}

type memo struct {
	key   cacheKey
	index int
	valid bool
}

type overwritten struct {
	index int
	old   cacheKey
	live  bool // old was known under index
}

func (c *sendCache) init(size int) {
	if size <= 0 {
		size = defaultCacheSize
	}
	c.size = min(size, math.MaxInt16)
	c.index = map[cacheKey]int{}
}

// begin makes room before a command: at least cacheSlack slots are free after it.
func (c *sendCache) begin() {
	c.undo, c.was = c.undo[:0], c.next
	if c.size < cacheSlack {
		return
	}
	for len(c.index) > c.size-cacheSlack {
		var old cacheKey // dropping a slot never used drops null, as in Java
		if c.evict < len(c.slots) {
			old, c.slots[c.evict] = c.slots[c.evict], old
		}
		delete(c.index, old)
		c.memo[old.kind].valid = false
		c.evict = (c.evict + 1) % c.size
	}
}

func (c *sendCache) find(key *cacheKey) (index int, ok bool) {
	m := &c.memo[key.kind&(keyKinds-1)]
	if m.valid && m.key == *key {
		return m.index, true
	}
	if index, ok = c.index[*key]; ok {
		*m = memo{*key, index, true}
	}
	return index, ok
}

// add gives a structure an index, -1 when the cache cannot hold any.
func (c *sendCache) add(key *cacheKey) int {
	if c.size < cacheSlack {
		return -1
	}
	i := c.next
	c.next = (c.next + 1) % c.size
	for len(c.slots) <= i {
		c.slots = append(c.slots, cacheKey{})
	}
	o := overwritten{index: i, old: c.slots[i]}
	if at, ok := c.index[o.old]; ok && at == i {
		delete(c.index, o.old)
		c.memo[o.old.kind].valid = false
		o.live = true
	}
	c.undo = append(c.undo, o)
	c.slots[i] = *key
	c.index[*key] = i
	c.memo[key.kind] = memo{*key, i, true}
	return i
}

// rollback forgets what the failed command stored: the peer never saw it.
func (c *sendCache) rollback() {
	for _, o := range slices.Backward(c.undo) {
		delete(c.index, c.slots[o.index])
		c.slots[o.index] = o.old
		if o.live {
			c.index[o.old] = o.index
		}
	}
	if len(c.undo) > 0 {
		c.memo = [keyKinds]memo{}
		c.undo = c.undo[:0]
	}
	c.next = c.was
}

// reference writes the head of a cached field: the index alone when the structure is known. If
// not, the caller writes the structure and then calls store with at.
func (e *Encoder) reference(key *cacheKey) (at int, known bool) {
	if index, ok := e.sent.find(key); ok {
		e.flag(false)
		e.int16(index)
		return 0, true
	}
	e.flag(true)
	if !e.tight {
		e.int16(e.sent.add(key))
		return -1, false
	}
	at = len(e.buf)
	e.int16(0)
	return at, false
}

// store gives the structure written since reference its index, in the tight encoding.
func (e *Encoder) store(key *cacheKey, at int) {
	if at < 0 {
		return
	}
	i := uint16(e.sent.add(key))
	e.buf[at], e.buf[at+1] = byte(i>>8), byte(i)
}
