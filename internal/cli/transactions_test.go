package cli

import (
	"strings"
	"testing"

	"hopwire/internal/manage"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

func TestStatusTellsPreparedTransactions(t *testing.T) {
	out := printed(&manage.Status{Broker: "a", Transactions: []manage.Transaction{
		{ID: "XID:[77,globalId=01,branchId=02]", SinceMs: 90_000, Sends: 2, Acks: 1}}})
	out += printed(&manage.Status{Broker: "a", Transactions: []manage.Transaction{
		{ID: "XID:[77,globalId=01,branchId=03]", SinceMs: 90_000, Sends: 2, Lost: 3}}})
	for _, want := range []string{"  prepared XID:[77,globalId=01,branchId=02] for 1m30s: 2 messages" +
		" sent, 1 message acknowledged\n", "  prepared XID:[77,globalId=01,branchId=03] for 1m30s:" +
		" 2 messages sent, 0 messages acknowledged; a repair lost 3 that it sent: it can only be" +
		" rolled back\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("status says\n%s\nwant in it\n%s", out, want)
		}
	}
}

func TestATransactionIsCommittedOrRolledBack(t *testing.T) {
	expect(t, exitUsage, `--commit and --rollback can't be used together`, "transactions",
		"--commit", "XID:1", "--rollback", "XID:1")
	for _, option := range []string{"--commit", "--rollback"} {
		expect(t, exitUsage, `^hopwire: `+option+` wants an XID; `, "transactions", option, "")
	}
}

func TestAnXIDOfTheJavaClientIsAnsweredWithHowItIsWrittenHere(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	for xid, want := range map[string]string{
		"XID:[77,globalId=6f0,branchId=1]":   `see hopwire transactions; it writes each byte .*\n$`,
		"XID:[77,globalId=06f0,branchId=01]": `see hopwire transactions\n$`,
		"nonsense":                           `see hopwire transactions\n$`,
	} {
		expect(t, exitFailed, `no broker \(b\) has a prepared .*`+want, "transactions", "--rollback", xid)
	}
}
