package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// Fate is all that happened to one message to one destination.
type Fate struct {
	ID         message.MessageID
	Dest       message.Destination
	Persistent bool
	At         *Node // where it was sent to
	Sent       time.Duration
	Confirmed  bool
	Refused    bool // the producer was told no, or rolled back
	Undone     bool // its branch was rolled back, for which nobody may get it
	Deliveries []*Delivery
	Finals     int  // consumed for good
	Resent     bool // by its producer
	Released   bool // given free from doubt without an answer
}

// Delivery is one message at one application.
type Delivery struct {
	Fate       *Fate
	Node       *Node
	Client     string
	Consumer   message.ConsumerID
	At         time.Duration
	Redelivery int32
	Path       []message.BrokerID
	Acked      bool // the application acknowledged it
	Handled    bool // the broker executed that
	Final      bool // and it is durable
	// Stale says that the connection was gone when the application got it, unnoticed: the broker
	// gives it to others.
	Stale bool
	life  *life
}

type fateKey struct {
	id   message.MessageID
	dest message.Destination
}

// Ledger is the world's own record of messages, beside everything the brokers think.
type Ledger struct {
	w         *World
	fates     map[fateKey]*Fate
	Order     []*Fate
	onDeliver []func(*Delivery)
	onFinal   []func(*Delivery)
}

func newLedger(w *World) *Ledger { return &Ledger{w: w, fates: map[fateKey]*Fate{}} }

// OnDeliver adds f to what hears of each delivery, before the application acknowledges it.
func (l *Ledger) OnDeliver(f func(*Delivery)) { l.onDeliver = append(l.onDeliver, f) }

// OnFinal adds f to what hears of each consumption that is durable.
func (l *Ledger) OnFinal(f func(*Delivery)) { l.onFinal = append(l.onFinal, f) }

func (l *Ledger) sent(m *message.Message, n *Node) *Fate {
	f := &Fate{ID: m.ID, Dest: m.Destination, Persistent: m.Persistent, At: n, Sent: l.w.now}
	l.fates[fateKey{m.ID, m.Destination}] = f
	l.Order = append(l.Order, f)
	return f
}

func (l *Ledger) confirmed(f *Fate) { f.Confirmed = true }

// delivered records that an application got a message.
func (l *Ledger) delivered(d *message.MessageDispatch, s *Consumer) *Delivery {
	m := d.Message
	key := fateKey{m.ID, d.Destination}
	f := l.fates[key]
	if f == nil {
		f = &Fate{ID: m.ID, Dest: d.Destination}
		l.fates[key] = f
	}
	x := &Delivery{Fate: f, Node: s.c.node, Client: s.c.name, Consumer: s.id, At: l.w.now,
		Redelivery: d.RedeliveryCounter, Path: m.BrokerPath, Stale: s.c.end.gone()}
	f.Deliveries = append(f.Deliveries, x)
	if l.w.opt.Trace != nil {
		l.w.trace("%s: gets %s %s redelivery=%d path=%v", s.c.name, d.Destination, m.ID,
			d.RedeliveryCounter, m.BrokerPath)
	}
	for _, f := range l.onDeliver {
		f(x)
	}
	return x
}

// acked records that the broker executed an acknowledgement.
func (l *Ledger) acked(d *Delivery, at *life) {
	d.Handled, d.life = true, at
	at.storage.whenDurable(func() { l.final(d) })
}

// final records that an acknowledgement took effect, and is durable.
func (l *Ledger) final(d *Delivery) {
	d.Handled, d.Final = true, true
	d.Fate.Finals++
	for _, f := range l.onFinal {
		f(d)
	}
}

// told reads what a broker tells of itself.
func (l *Ledger) told(at *life, e broker.Event) {
	if e.Kind != broker.DoubtReleased {
		return
	}
	for _, f := range slices.Backward(l.Order) {
		if f.Dest == e.Dest && len(e.Text) > 0 && cutWord(e.Text) == f.ID.String() {
			f.Released = true
		}
	}
}

func cutWord(s string) string {
	for i := range s {
		if s[i] == ' ' {
			return s[:i]
		}
	}
	return s
}

func (f *Fate) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s to %s at %s (sent %.3f, confirmed=%v, finals=%d, released=%v)", f.ID,
		f.Dest, nodeName(f.At), f.Sent.Seconds(), f.Confirmed, f.Finals, f.Released)
	for _, d := range f.Deliveries {
		fmt.Fprintf(&s, "\n    %.6f %s at %s redelivery=%d acked=%v handled=%v final=%v path=%v",
			d.At.Seconds(), d.Client, nodeName(d.Node), d.Redelivery, d.Acked, d.Handled, d.Final,
			d.Path)
	}
	return s.String()
}

func nodeName(n *Node) string {
	if n == nil {
		return "nobody"
	}
	return n.cfg.Name
}
