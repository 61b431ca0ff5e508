package broker

import (
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Oldest is the oldest of a number of messages.
type Oldest struct {
	ID      message.MessageID // zero for none that is known
	Age     time.Duration     // at this broker
	Unknown bool              // the store could not be read: there may be an older one
}

// add adds others to those that it is the oldest of.
func (o *Oldest) add(x Oldest) {
	none := message.MessageID{}
	if x.ID != none && (o.ID == none || x.Age > o.Age) {
		o.ID, o.Age = x.ID, x.Age
	}
	o.Unknown = o.Unknown || x.Unknown
}

// readFirst reads the first of the queue's copies that are in the store alone, which is the oldest
// of them, before the others are looked at: what is counted is of one moment then.
func (e *explainer) readFirst() {
	e.first, e.unread = nil, false
	if e.id != nil || e.d.queue.StoredOnly() == 0 {
		e.slice()
		return
	}
	e.view = e.d.queue.View()
	e.page(1, e.isFirst, e.slice)
}

func (e *explainer) isFirst(copies []*queue.Copy) {
	if len(copies) == 0 || !e.d.queue.InStore(copies[0].Seq) {
		e.page(1, e.isFirst, e.slice)
		return
	}
	e.first = copies[0]
	e.slice()
}

// oldestStored is the oldest of the copies that are in the store alone, unless they changed
// meanwhile.
func (e *explainer) oldestStored() Oldest {
	if e.first == nil || !e.d.queue.InStore(e.first.Seq) {
		return Oldest{Unknown: true}
	}
	return Oldest{ID: e.first.Message.ID, Age: e.now - e.first.Arrived, Unknown: e.unread}
}

// page gives each what can be read of the next page of what is in the store alone; end is called
// when there is none.
func (e *explainer) page(count int, each func([]*queue.Copy), end func()) {
	from, to := e.view.NextStored()
	if to == 0 {
		end()
		return
	}
	e.b.journal.whenHandedOver(func() {
		e.b.journal.storage.Page(store.PageRequest{Dest: e.d.id, From: store.Seq(from),
			To: store.Seq(to), Count: count, Bytes: queue.PageBytes},
			func(page []store.Stored, err error) {
				switch {
				case e.named.gone:
					e.done(nil)
				case e.d.gone:
					e.begin()
				case err != nil || len(page) == 0:
					e.unread = e.unread || err != nil // told of where they are needed
					e.view.Read(to)
					e.page(count, each, end)
				default:
					e.view.Read(uint64(page[len(page)-1].Next()))
					each(e.d.host.copies(page))
				}
			})
	})
}
