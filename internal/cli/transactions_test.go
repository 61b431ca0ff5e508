package cli

import (
	"strings"
	"testing"

	"hopwire/internal/manage"
)

func TestStatusTellsPreparedTransactions(t *testing.T) {
	out := printed(&manage.Status{Broker: "a", Transactions: []manage.Transaction{
		{ID: "XID:[77,globalId=01,branchId=02]", SinceMs: 90_000, Sends: 2, Acks: 1}}})
	want := "  prepared XID:[77,globalId=01,branchId=02] for 1m30s: 2 messages sent, 1 message" +
		" acknowledged\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("status says\n%s\nwant at its end\n%s", out, want)
	}
}

func TestATransactionIsCommittedOrRolledBack(t *testing.T) {
	expect(t, exitUsage, `--commit and --rollback can't be used together`, "transactions",
		"--commit", "XID:1", "--rollback", "XID:1")
}
