package load

import (
	"io"
	"syscall"
	"time"

	"hopwire/openwire"
)

const (
	flushBytes = 16 << 10 // a producer writes when it has so many, or has to wait
	ackBytes   = 4 << 10  // a consumer writes its acknowledgements then, or when nothing is buffered
	countEach  = 64       // messages that a consumer counts at a time
)

// consume subscribes and starts a consumer.
func (r *run) consume(c *conn) error {
	info, err := c.consumerInfo(r.o.Prefetch)
	if err != nil {
		return err
	}
	if _, err := c.socket.Write(info); err != nil {
		return err
	}
	h := &hist{}
	r.hists = append(r.hists, h)
	r.others.Go(func() {
		r.failed(r.receive(c, h))
	})
	return nil
}

// receive counts and acknowledges until the connection ends, and returns how it did.
func (r *run) receive(c *conn, h *hist) error {
	var out []byte
	var first, last openwire.MessageId
	unacked, uncounted, number := 0, 0, 10
	in, err := c.dispatches()
	if err != nil {
		return err
	}
	for {
		f, err := c.read()
		if err != nil {
			return err
		}
		if f[0] != openwire.TypeMessageDispatch {
			continue
		}
		id, stamp, err := in.read(f)
		if err != nil {
			return err
		}
		if id == nil {
			continue
		}
		if r.measuring.Load() {
			h.add(time.Duration(time.Now().UnixNano() - stamp))
		}
		if unacked == 0 {
			first = *id
		}
		last = *id
		unacked++
		uncounted++
		if unacked == r.o.AckBatch {
			number++
			if out, err = c.acknowledge(out, number, &first, &last, unacked); err != nil {
				return err
			}
			unacked = 0
		}
		idle := c.in.Buffered() < 4
		if len(out) > 0 && (idle || len(out) >= ackBytes) {
			if _, err := c.socket.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		if idle || uncounted >= countEach {
			r.got.Add(int64(uncounted))
			uncounted = 0
		}
	}
}

// producer is what one producer knows.
type producer struct {
	*run
	*conn
	sequence int64
	out      []byte
	open     chan struct{} // one element for each unconfirmed send
	every    time.Duration // between two sends, 0 for none
	due      time.Time
}

// produce starts producer number i; it sends count messages, or until the run stops if that is
// negative. The last of a count is confirmed, so that all before it have arrived.
func (r *run) produce(c *conn, i, count int) {
	p := &producer{run: r, conn: c}
	p.prepare(r.o.Size, r.o.Persistent)
	p.open = make(chan struct{}, max(1, r.o.Window))
	if r.o.Rate > 0 {
		p.every = time.Duration(float64(time.Second) * float64(r.o.Producers) / r.o.Rate)
		p.due = time.Now().Add(p.every * time.Duration(i) / time.Duration(r.o.Producers))
	}
	if r.o.Window > 0 {
		r.others.Go(p.confirmations)
	} else if count < 0 {
		r.others.Go(func() { _, _ = io.Copy(io.Discard, c.in) }) // ends with the socket
	}
	r.producers.Go(func() {
		if err := p.send(count); err != nil {
			r.failed(err)
		}
	})
}

func (p *producer) confirmations() {
	for {
		if err := p.answer(); err != nil {
			p.failed(err)
			return
		}
		<-p.open
	}
}

func (p *producer) send(count int) error {
	for n := 0; n != count && !p.stopped.Load(); n++ {
		stamp, err := p.turn()
		if err != nil {
			return err
		}
		if p.o.Window > 0 {
			select {
			case p.open <- struct{}{}:
			default:
				if err := p.flush(); err != nil {
					return err
				}
				if !p.wait(func() bool { return len(p.open) < cap(p.open) }) {
					return nil
				}
				p.open <- struct{}{}
			}
		}
		p.sequence++
		confirm := p.o.Window > 0 || n == count-1
		if p.out, err = p.next(p.out, p.sequence, stamp.UnixNano(), confirm); err != nil {
			return err
		}
		p.sent.Add(1)
		if len(p.out) >= flushBytes || p.every > 0 {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	if err := p.flush(); err != nil || count < 0 {
		return err
	}
	if p.o.Window == 0 {
		return p.answer()
	}
	p.wait(func() bool { return len(p.open) == 0 })
	return nil
}

// turn waits until the next message may be sent and returns its stamp: the scheduled time, so that
// a broker that stalls cannot hide it by keeping the producer from sending.
func (p *producer) turn() (time.Time, error) {
	if p.every > 0 {
		p.due = p.due.Add(p.every)
		nap(time.Until(p.due))
		return p.due, nil
	}
	if p.o.InFlight > 0 && !p.room() {
		if err := p.flush(); err != nil {
			return time.Time{}, err
		}
		p.wait(p.room)
	}
	return time.Now(), nil
}

func (p *producer) room() bool {
	fan := p.o.fan()
	return p.sent.Load()*fan-p.got.Load() < int64(p.o.InFlight)*fan
}

// wait looks until something is so; false if the run has ended first.
func (p *producer) wait(so func() bool) bool {
	for !so() {
		if p.stopped.Load() || p.failure() != nil {
			return false
		}
		nap(50 * time.Microsecond)
	}
	return true
}

func (p *producer) flush() error {
	if len(p.out) == 0 {
		return nil
	}
	_, err := p.socket.Write(p.out)
	p.out = p.out[:0]
	return err
}

// nap blocks the thread: the timers of an idle Go program are a millisecond coarse, which would be
// most of what is measured.
func nap(d time.Duration) {
	if d > 0 {
		ts := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&ts, nil) // cut short by a signal, the caller looks again
	}
}
