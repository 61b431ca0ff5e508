package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/terminal"
)

// transactionsCommand is hopwire transactions.
type transactionsCommand struct {
	brokerFlag
	Commit   *string `xor:"outcome" help:"Commit one whose manager does not return." placeholder:"XID"`
	Rollback *string `xor:"outcome" help:"Roll one back, likewise." placeholder:"XID"`
}

// Run prints the prepared transactions, or ends one.
func (c *transactionsCommand) Run(ctx context.Context, s *streams) error {
	for option, xid := range map[string]*string{"--commit": c.Commit, "--rollback": c.Rollback} {
		if xid != nil && strings.TrimSpace(*xid) == "" {
			return usageError{option + " wants an XID; hopwire transactions lists those that are prepared"}
		}
	}
	them, err := c.ask(ctx)
	if err != nil {
		return err
	}
	them = running(them)
	switch {
	case c.Commit != nil:
		return decide(ctx, s, them, *c.Commit, true)
	case c.Rollback != nil:
		return decide(ctx, s, them, *c.Rollback, false)
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
		terminal.Fprintf(s.out, "broker %s%s  %s\n", st.Broker, process,
			plural.Of(len(st.Transactions), "prepared transaction"))
		for i := range st.Transactions {
			terminal.Fprintf(s.out, "  %s\n", transaction(&st.Transactions[i]))
		}
	}
	return err
}

// decide ends the transaction at the brokers that have it. One may be a transaction of several.
func decide(ctx context.Context, s *streams, them []*asked, xid string, commit bool) error {
	how := "rolled back"
	if commit {
		how = "committed"
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
			terminal.Fprintf(s.out, "broker %s: %s is %s\n", name, xid, how)
		}
	}
	if err == nil && n == 0 {
		return message.Errorf(message.NotFound, "no broker (%s) has a prepared transaction %s; see"+
			" hopwire transactions%s", names(them), xid, spelling(xid))
	}
	return err
}

// xidForm is the text of an XID, here and in ActiveMQ's Java client.
var xidForm = regexp.MustCompile(`^XID:\[-?\d+,globalId=([0-9a-f]*),branchId=([0-9a-f]*)\]$`)

// spelling is a hint for an XID as the Java client writes it: bytes without leading zeros.
func spelling(xid string) string {
	parts := xidForm.FindStringSubmatch(xid)
	if parts == nil || len(parts[1])%2 == 0 && len(parts[2])%2 == 0 {
		return ""
	}
	return "; it writes each byte of the ids with two digits, globalId=06f0, where the Java client" +
		" leaves out a leading zero, globalId=6f0"
}

// transaction is a prepared transaction in a line.
func transaction(x *manage.Transaction) string {
	lost := ""
	if x.Lost > 0 {
		lost = fmt.Sprintf("; a repair lost %d that it sent: it can only be rolled back", x.Lost)
	}
	return fmt.Sprintf("%s for %s: %s sent, %s acknowledged%s", x.ID, age(x.SinceMs),
		plural.Of(x.Sends, "message"), plural.Of(x.Acks, "message"), lost)
}
