package broker

import "slices"

// fifo is a list of what waits. To take the first one out, or a number of them, costs the same
// however many wait: a place in front is moved on, and the rest is moved up when its array is full
// and at least half of it is in front.
type fifo[T any] struct {
	list  []T // list[start:] waits; invariant: before that all are zero
	start int
}

const (
	// fifoLeast is how long a list is whose array is not worth a look.
	fifoLeast = 64
	// fifoKept is how long an array is that stays when nothing waits.
	fifoKept = 4096
)

func (f *fifo[T]) len() int { return len(f.list) - f.start }

// at gives one by its place among those that wait.
func (f *fifo[T]) at(i int) *T { return &f.list[f.start+i] }

// all gives those that wait, until the next change.
func (f *fifo[T]) all() []T { return f.list[f.start:] }

func (f *fifo[T]) push(it T) {
	if len(f.list) == cap(f.list) && f.start >= fifoLeast && f.start >= len(f.list)/2 {
		n := copy(f.list, f.all())
		clear(f.list[n:])
		f.list, f.start = f.list[:n], 0
	}
	f.list = append(f.list, it)
}

func (f *fifo[T]) pop() T {
	it := *f.at(0)
	f.drop(1)
	return it
}

// drop takes the first n out.
func (f *fifo[T]) drop(n int) {
	clear(f.list[f.start : f.start+n])
	f.start += n
	switch {
	case f.start < len(f.list):
	case cap(f.list) > fifoKept:
		*f = fifo[T]{}
	default:
		f.list, f.start = f.list[:0], 0
	}
}

// split takes all from a place on out, with the array; the few before it get one of their own.
func (f *fifo[T]) split(i int) fifo[T] {
	front := slices.Clone(f.all()[:i])
	clear(f.all()[:i])
	rest := fifo[T]{list: f.list, start: f.start + i}
	*f = fifo[T]{list: front}
	return rest
}
