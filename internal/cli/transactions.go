package cli

import (
	"context"
	"fmt"

	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// transactionsCommand is hopwire transactions.
type transactionsCommand struct {
	brokerFlag
	Commit   string `xor:"outcome" help:"Commit one whose manager does not return." placeholder:"XID"`
	Rollback string `xor:"outcome" help:"Roll one back, likewise." placeholder:"XID"`
}

// Run prints the prepared transactions, or ends one.
func (c *transactionsCommand) Run(ctx context.Context, s *streams) error {
	them, err := c.ask(ctx)
	if err != nil {
		return err
	}
	them = running(them)
	if c.Commit+c.Rollback != "" {
		return c.decide(ctx, s, them)
	}
	all, err := every(ctx, them, func(ctx context.Context, a *asked) (*manage.Status, error) {
		return a.Status(ctx)
	})
	inOrder(all)
	names := map[string]int{}
	for _, st := range all {
		names[st.Broker]++
	}
	for _, st := range all {
		process := mark(names[st.Broker] > 1, fmt.Sprintf(" pid %d", st.PID))
		fmt.Fprintf(s.out, "broker %s%s  %s\n", st.Broker, process,
			count(len(st.Transactions), "prepared transaction"))
		for i := range st.Transactions {
			fmt.Fprintf(s.out, "  %s\n", transaction(&st.Transactions[i]))
		}
	}
	return err
}

// decide ends the transaction at the brokers that have it. One may be a transaction of several.
func (c *transactionsCommand) decide(ctx context.Context, s *streams, them []*asked) error {
	xid, commit, how := c.Rollback, false, "rolled back"
	if c.Commit != "" {
		xid, commit, how = c.Commit, true, "committed"
	}
	ended, err := every(ctx, them, func(ctx context.Context, a *asked) (string, error) {
		err := a.Decide(ctx, xid, commit)
		if message.KindOf(err) == message.NotFound {
			return "", nil // another may have it
		}
		return a.among(them), err
	})
	n := 0
	for _, name := range ended {
		if name != "" {
			n++
			fmt.Fprintf(s.out, "broker %s: %s is %s\n", name, xid, how)
		}
	}
	if err == nil && n == 0 {
		return message.Errorf(message.NotFound, "no broker (%s) has a prepared transaction %s; see"+
			" hopwire transactions", names(them), xid)
	}
	return err
}

// transaction is a prepared transaction in a line.
func transaction(x *manage.Transaction) string {
	return fmt.Sprintf("%s for %s: %s sent, %s acknowledged", x.ID, age(x.SinceMs),
		count(x.Sends, "message"), count(x.Acks, "message"))
}
