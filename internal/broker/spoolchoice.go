package broker

import (
	"cmp"
	"slices"

	"hopwire/internal/broker/queue"
)

// choose gives copies that are to leave memory, and marks them as on their way: those of
// destinations near their own limits, and of the largest queues while the broker's is near, the
// last first.
func (s *spool) choose() (puts []*spoolPut, size int64) {
	memory := s.b.memory.Used()
	short := s.target > 0 && memory >= s.target && memory >= s.next
	if memory < s.target {
		s.next = 0
	}
	if !short && len(s.wanted) == 0 || s.b.stopping() || s.full() {
		return nil, 0
	}
	c := choice{}
	var left []*destination
	for n, d := range s.wanted {
		if c.full() {
			left = append(left, s.wanted[n:]...)
			break
		}
		d.spooled.wanted = false
		if !d.gone {
			s.relax(d, &c)
		}
	}
	if s.wanted = left; short && !c.full() {
		s.makeRoom(&c)
	}
	return c.puts, c.size
}

// makeRoom makes room in memory: what may leave it does, and of the rest some is spooled.
func (s *spool) makeRoom(c *choice) {
	need := s.b.memory.Used() - s.target + s.target/spoolSlack + 1
	first, size := need, c.size
	for _, x := range s.largest() {
		if need <= 0 || c.full() {
			return
		}
		if x.q != nil {
			need -= x.q.spill(c, need, s.page(0))
			continue
		}
		need -= s.evict(x.d, need)
		need -= c.take(x.d, need, s.page(x.d.mark()))
	}
	if need == first && c.size == size { // nothing that can go
		s.next = s.b.memory.Used() + s.target/spoolSlack
	}
}

// evict has a queue give so many bytes of memory back, of what may leave it.
func (s *spool) evict(d *destination, need int64) int64 {
	freed := d.queue.Evict(max(0, d.queue.ResidentBytes()-need), s.page(d.mark()))
	s.b.freed(d, freed)
	return freed
}

// page is how many bytes of a queue that has consumers, or of what waits for one of a topic, stay
// in memory, though it is short: a page, or a part of what all have, as consumers that take nothing
// must not keep senders waiting. mark is that of the destination.
func (s *spool) page(mark int64) int64 {
	bytes := int64(queue.PageBytes)
	if s.target > 0 {
		bytes = min(bytes, s.target/spoolParts/int64(max(1, len(s.b.order)+len(s.backlogs))))
	}
	if mark > 0 {
		bytes = min(bytes, mark/spoolParts)
	}
	return bytes
}

// relax makes room at a destination near its own limit: what is durable leaves memory first.
func (s *spool) relax(d *destination, c *choice) {
	mark := d.mark()
	need := d.usage.Used() - mark + mark/spoolSlack + 1
	if need <= mark/spoolSlack {
		return
	}
	freed := s.evict(d, need)
	if c.take(d, need-freed, s.page(mark)) == 0 && freed == 0 {
		d.spooled.next = d.usage.Used() + mark/spoolSlack + 1
	}
}

// choice is what goes into a batch.
type choice struct {
	puts []*spoolPut
	size int64
}

func (c *choice) full() bool { return c.size >= spoolBytes }

// take takes so many bytes of a queue beyond its first page, or what there is, and gives how many.
func (c *choice) take(d *destination, need, page int64) int64 {
	first, size := len(c.puts), c.size
	if need = min(need, spoolBytes-c.size); need <= 0 {
		return 0
	}
	d.queue.Spoolable(page, func(x *queue.Copy) bool {
		p := &spoolPut{dest: d, copy: x, size: x.Message.Size()}
		x.Put = p
		c.puts, c.size = append(c.puts, p), c.size+p.size
		need -= p.size
		return need > 0
	})
	slices.Reverse(c.puts[first:])
	return c.size - size
}

// holder is a queue, or what waits for a consumer of topics, with what it takes of memory.
type holder struct {
	d     *destination
	q     *backlog
	bytes int64
}

// largest gives what may have something to spool, by what it takes of memory.
func (s *spool) largest() []holder {
	var list []holder
	for _, d := range s.b.order {
		if d.queue != nil && s.takes(d) && d.queue.ResidentBytes() > 0 {
			list = append(list, holder{d, nil, d.queue.ResidentBytes()})
		}
	}
	for _, q := range slices.Clone(s.backlogs) {
		if q.len() == 0 {
			s.unlist(q)
		} else if q.bytes > 0 {
			list = append(list, holder{nil, q, q.bytes})
		}
	}
	slices.SortStableFunc(list, func(x, y holder) int { return cmp.Compare(y.bytes, x.bytes) })
	return list
}
