package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"hopwire/internal/message"
)

// manager is the transaction manager of the clients whose transactions have two phases: it writes
// its decisions down, and finishes what a client or broker that went left behind.
type manager struct {
	w       *World
	decided map[message.TransactionID]*decision
	// busy are the branches that somebody deals with, with the connection that he does it over.
	busy  map[message.TransactionID]*Client
	desks map[*Node]*Client
}

// decision is a branch that is to be committed, as its vote was heard.
type decision struct {
	tx   *clientTx
	node *Node
}

// managerLook is how often the manager asks the brokers what is prepared.
const managerLook = 700 * time.Millisecond

// Manage has the transactions of clients be XA branches.
func (w *World) Manage() {
	w.manager = &manager{w: w, decided: map[message.TransactionID]*decision{},
		busy: map[message.TransactionID]*Client{}, desks: map[*Node]*Client{}}
	w.After(managerLook, w.manager.look)
}

// commit has a client's branch vote, and commits it.
func (m *manager) commit(c *Client, tx *clientTx, answer func(error)) {
	node := c.node
	c.send(&message.TransactionInfo{Connection: c.id, ID: tx.id, Type: message.End})
	c.ask(&message.TransactionInfo{Connection: c.id, ID: tx.id, Type: message.Prepare},
		func(err error) {
			if err != nil {
				m.w.trace("%s: %s is refused: %v", c.name, tx.id, err)
				delete(m.busy, tx.id)
				tx.undone()
				answer(err)
				return
			}
			m.w.trace("%s: %s is prepared", c.name, tx.id)
			m.decided[tx.id] = &decision{tx, node}
			m.finish(c, tx, answer)
		})
}

// finish commits a branch that was decided about. One that the broker does not know took effect.
func (m *manager) finish(c *Client, tx *clientTx, answer func(error)) {
	m.busy[tx.id] = c
	c.ask(&message.TransactionInfo{Connection: c.id, ID: tx.id, Type: message.CommitTwoPhase},
		func(err error) {
			delete(m.busy, tx.id)
			if err != nil && !strings.HasSuffix(err.Error(), "xaErrorCode:-4") {
				m.w.note("%s: the commit of prepared %s is answered with %v", c.name, tx.id, err)
				return
			}
			m.w.trace("%s: %s is committed", c.name, tx.id)
			delete(m.decided, tx.id)
			for _, f := range tx.sends {
				m.w.ledger.confirmed(f)
			}
			for _, d := range tx.acks {
				m.w.ledger.final(d)
			}
			answer(nil)
		})
}

// undone notes that nothing of the transaction may be seen.
func (tx *clientTx) undone() {
	for _, f := range tx.sends {
		f.Refused, f.Undone = true, true
	}
}

// lost hears that a client's connection is gone.
func (m *manager) lost(c *Client) {
	maps.DeleteFunc(m.busy, func(_ message.TransactionID, o *Client) bool { return o == c })
}

// look asks all brokers what is prepared, and ends what nobody deals with: what was decided about
// is committed, all else rolled back.
func (m *manager) look() {
	for _, n := range m.w.nodes {
		c := m.desks[n]
		if c == nil {
			c = m.w.Client("TM" + n.cfg.Name)
			m.desks[n] = c
		}
		if c.node == nil && !c.Connect(n) {
			continue
		}
		c.ask(&message.TransactionInfo{Connection: c.id, Type: message.Recover},
			func(error) { m.recovered(c, c.prepared) })
	}
	m.w.After(managerLook, m.look)
}

func (m *manager) recovered(c *Client, ids []message.TransactionID) {
	for _, id := range ids {
		if m.busy[id] == nil && m.decided[id] == nil {
			m.busy[id] = c
			c.ask(&message.TransactionInfo{Connection: c.id, ID: id, Type: message.Rollback},
				func(error) { delete(m.busy, id) })
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.decided), compareXids) {
		if d := m.decided[id]; d.node == c.node && m.busy[id] == nil {
			m.finish(c, d.tx, func(error) {})
		}
	}
}

func compareXids(a, b message.TransactionID) int { return strings.Compare(a.Global, b.Global) }
