package disk

import "hopwire/internal/message"

// rememberedBytes is what the windows of one generation of remembered take, about: those of some
// 800 producers with windows of 10,000 numbers.
const rememberedBytes = 1 << 20

// numberKey names the numbers of a producer at a destination: one that was dropped, and made anew
// under its id, is another one.
type numberKey struct {
	dest     *dest
	producer message.ProducerID
}

// remembered are the numbers of producers as they were written last, so that the next of a producer
// is not read from the store. What was not used since the younger generation began to fill is
// forgotten when it is full.
type remembered struct {
	young, old map[numberKey]*message.Numbers
	bytes      int // of young
}

// take gives what is remembered and forgets it: whoever takes it changes it, and puts it back when
// that is written.
func (r *remembered) take(k numberKey) *message.Numbers {
	if used := r.young[k]; used != nil {
		r.bytes -= numbersBytes(used)
		delete(r.young, k)
		return used
	}
	used := r.old[k]
	delete(r.old, k)
	return used
}

func (r *remembered) put(k numberKey, used *message.Numbers) {
	if r.bytes > rememberedBytes {
		r.old, r.young, r.bytes = r.young, nil, 0
	}
	if r.young == nil {
		r.young = map[numberKey]*message.Numbers{}
	}
	r.young[k] = used
	r.bytes += numbersBytes(used)
}

// numbersBytes is about what the numbers of a producer take, with their key.
func numbersBytes(used *message.Numbers) int { return used.Depth()/8 + 200 }
