package broker

import "hopwire/internal/message"

// begun is where among the commands of its connection a transaction began. How many of higher
// numbers came since then is follows-before+between.
type begun struct {
	number  int32 // of the command that began it
	before  int32 // follows of the connection at that time
	between int32 // of higher numbers that came since then and are not in follows
}

// following counts the commands of a connection that failover made, for its open transactions.
// Numbers rise, as a rule, so that each command is one more for all of them.
type following struct {
	follows int32 // of higher numbers than all transactions' that were open at the time
	// low <= begun.number <= high of all open transactions.
	low, high int32
}

// follow counts a command for the transactions that may lack some. Only of one that comes later
// than its number says are those looked for that have a lower one.
func (c *Connection) follow(cmd message.Command) {
	if !c.opened || !c.info.FailoverReconnect || len(c.transactions) == 0 {
		return
	}
	switch n := cmd.Head().CommandID; {
	case n > c.following.high:
		c.following.follows++
	case n > c.following.low:
		for _, tx := range c.transactions {
			if n > tx.begun.number {
				tx.begun.between++
			}
		}
	}
}

// begins notes which command began a transaction.
func (c *Connection) begins(cmd *message.TransactionInfo) {
	tx := c.transactions[cmd.ID]
	if tx == nil || tx.begun.number != 0 {
		return
	}
	n, f := cmd.CommandID, &c.following
	tx.begun.number, tx.begun.before = n, f.follows
	if len(c.transactions) == 1 {
		f.low, f.high = n, n
		return
	}
	f.low, f.high = min(f.low, n), max(f.high, n)
}

// demandWhole has a transaction roll back that lacks what it is about. A client over failover
// begins its open transactions anew on the next connection, and sends their messages again; their
// acknowledgements were lost with the last one. Without any the commit would be of nothing, and
// answered as one of what the client worked on. Numbers that are missing between begin and commit
// tell it from a transaction that was empty.
func (c *Connection) demandWhole(tx *transaction, cmd *message.TransactionInfo) {
	if c.info.FailoverReconnect && tx.conn == c && tx.begun.number > 0 && tx.broken == nil &&
		!tx.heard && len(tx.sends)+len(tx.parked)+len(tx.acks) == 0 &&
		cmd.CommandID-tx.begun.number > c.followed(tx) {
		tx.broken = message.Errorf(message.RolledBack, "its acknowledgements were lost with the"+
			" connection before")
	}
}

// followed is how many commands came since a transaction began, of those with higher numbers than
// the one that began it.
func (c *Connection) followed(tx *transaction) int32 {
	return c.following.follows - tx.begun.before + tx.begun.between
}
