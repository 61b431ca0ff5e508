package queue

import "testing"

// What consumers come to next stays in memory, and is not written in vain.
func TestTheFirstPageIsNotSpooledWhileThereAreConsumers(t *testing.T) {
	w := newWorld()
	for range 500 {
		w.add(false)
	}
	spoolable := func(page int64) (last, n uint64) {
		w.q.Spoolable(page, func(c *Copy) bool {
			if last == 0 && c.Seq != w.q.next-1 {
				t.Errorf("the first given is %d, not the last in the queue", c.Seq)
			}
			last = c.Seq
			n++
			return true
		})
		return last, n
	}
	if last, n := spoolable(PageBytes); last != 1 || n != 500 {
		t.Errorf("without consumers %d can go, from %d on", n, last)
	}
	s := w.attach(&testSub{room: 0}, Traits{})
	if last, n := spoolable(PageBytes); last != PageCopies+1 || n != 500-PageCopies {
		t.Errorf("with a consumer %d can go, from %d on", n, last)
	}
	if last, n := spoolable(10 * 1024); last != 11 || n != 490 {
		t.Errorf("with a page of 10 KiB %d can go, from %d on", n, last)
	}
	w.q.Detach(s.slot)
	w.q.Spoolable(PageBytes, func(c *Copy) bool { c.Spooled = true; return c.Seq > 400 })
	if freed := w.q.Evict(0, PageBytes); freed != 101*1024 || w.q.SpooledOnly() != 101 {
		t.Errorf("%d bytes are freed, %d are in the spool alone", freed, w.q.SpooledOnly())
	}
}

// Damage that is dropped while others wait in the spool is of stored copies, as far as so many are.
func TestDroppedDamageIsOfTheStoreFirst(t *testing.T) {
	w := newWorld()
	w.q.Restore(1, 6, 5)
	for range 3 {
		w.add(false)
	}
	w.q.Spoolable(PageBytes, func(c *Copy) bool { c.Spooled = true; return true })
	w.q.Evict(0, PageBytes)
	w.q.Unreadable(1, 6)
	stored, spooled := w.q.DropDamage(func(uint64, uint64) {})
	if stored != 5 || spooled != 0 || w.q.SpooledOnly() != 3 || w.q.Len() != 3 {
		t.Errorf("%d stored and %d spooled are dropped; %d are left, %d in the spool", stored, spooled,
			w.q.Len(), w.q.SpooledOnly())
	}
}
