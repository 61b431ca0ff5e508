package broker

import "hopwire/internal/message"

// Limits of the messages that a broker knows its prepared branches by.
const (
	// resentMost is how many messages of one branch are known; of one with more, none is.
	resentMost = 10_000
	// resentOverall is how many messages of all are known.
	resentOverall = 1_000_000
)

// sendLate takes a send into a branch that is not open: a client that failed over sends again what
// it sent before the prepare. It does nothing but count, and makes no destination.
func (c *Connection) sendLate(tx *transaction, a *arrival) {
	b := c.b
	if err := testName(a.wire); err != nil {
		b.counts.Reasons[message.NoConsumer]++
		a.refuse(err)
		return
	}
	if b.opt.Authorizer != nil && b.authorize(a) != proceed {
		return
	}
	if !c.info.FailoverReconnect || !tx.branch.sent(a.m.ID) {
		a.refuse(xaError(xaProtocol, "Cannot send in %s now: it is prepared", tx.id))
		return
	}
	b.duplicate(b.find(firstOf(a.wire)), a)
	a.answer(nil)
}

// ackLate is sendLate for acknowledgements.
func (c *Connection) ackLate(tx *transaction) error {
	if c.info.FailoverReconnect {
		return nil
	}
	return xaError(xaProtocol, "Cannot acknowledge in %s now: it is prepared", tx.id)
}

// knowSends has a branch that is prepared know what it sent, if that is not too much.
func (bs *branches) knowSends(tx *transaction) {
	n := len(tx.sends)
	if n > resentMost || bs.known+n > resentOverall {
		return
	}
	bs.known += n
	tx.branch.known = make(map[message.MessageID]bool, n)
	for _, a := range tx.sends {
		tx.branch.known[a.m.ID] = true
	}
}

// sent reports whether a message may be one that the branch sent: of one that sent too much, or was
// prepared before the broker's start, any may be.
func (x *branch) sent(id message.MessageID) bool { return x.known == nil || x.known[id] }

// awaitSends has a branch that is prepared know whose clients may send again what it sent: until
// they hear of the outcome, also when their producers are closed.
func (x *branch) awaitSends(sends []*arrival) {
	x.again = map[message.ConnectionID]bool{}
	for _, a := range sends {
		if a.conn.failsOver() {
			x.again[a.m.ID.Producer.Connection] = true
		}
	}
}

// comesAgain reports whether a message that it sent may be sent again.
func (x *branch) comesAgain(m *message.Message) bool {
	return x.again == nil || x.again[m.ID.Producer.Connection]
}
