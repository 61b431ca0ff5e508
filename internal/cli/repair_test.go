package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hopwire"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

// The store of a broker that was stopped is repaired by its file, if it is damaged.
func TestADamagedStoreIsRepairedByItsFile(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b", Persistent: true})
	file := filepath.Join(b.Dir(), "activemq.xml")
	at := "--brokerUrl=" + b.URL()
	expect(t, exitDone, `sent 5000`, "producer", at, "--messageCount", "5000", "ORDERS")
	expect(t, exitDone, `sent 10`, "producer", at, "--messageCount", "10", "OTHER")
	expect(t, exitUnavailable, `^hopwire: store \S+: in use by pid \d+ .*: stop it first\n$`,
		"repair", file)
	for range 2 { // a start brings the log of the last run into a table
		b.Stop()
		b.Restart()
	}
	b.Stop()
	expect(t, exitDone, `^broker b, store \S+: nothing to repair\n$`, "repair", file)
	var name string
	var data []byte
	tables, err := filepath.Glob(filepath.Join(b.Dir(), "*", "*", "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if got, err := os.ReadFile(table); err == nil && len(got) > len(data) {
			name, data = table, got
		}
	}
	if len(data) < 100_000 {
		t.Fatalf("the largest of %q has %d bytes", tables, len(data))
	}
	data[len(data)/2] ^= 0x55
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		store := filepath.Dir(filepath.Dir(name))
		own := func(uid int) {
			if err := os.Chown(store, uid, -1); err != nil {
				t.Fatal(err)
			}
		}
		own(65534)
		expect(t, exitUsage, `store \S+ belongs to user \S+, who could not open what root makes there`,
			"repair", file)
		own(0)
	}
	expect(t, exitDone, `^broker b, store \S+\n`+
		`  queue://ORDERS: \d+ messages copied, \d+ or more could not be read\n`+
		`  messages that damaged blocks hid, and that are copied: \d+; [^\n]+\n`+
		`  1 destination is whole\n`+
		`  in all \d+ messages copied, \d+ or more could not be read\n`+
		`  the store from before \(\d+ MiB\) is in \S+/db\.damaged-\d{8}-\d{6}; when nobody needs it any`+
		` more: rm -r \S+\n$`, "repair", file)
	expect(t, exitDone, `: nothing to repair\n$`, "repair", file)
	b.Restart()
	expect(t, exitDone, `received 10 `, "consumer", at, "--messageCount", "10", "OTHER")
	expect(t, exitUsage, `no/such.xml`, "repair", "no/such.xml")
}

// What nobody can count is not told to be none.
func TestARepairDoesNotCountWhatIsNotKnown(t *testing.T) {
	of := func(copied, lost int64, made bool) disk.RepairedDestination {
		return disk.RepairedDestination{Header: store.Header{}, Copied: copied, Lost: lost, Made: made}
	}
	for want, r := range map[string]*hopwire.Repaired{
		"in all 3 messages copied, 0 could not be read": {Others: []string{"x"},
			Destinations: []disk.RepairedDestination{of(3, 0, false)}},
		"in all 3 messages copied, 2 could not be read": {
			Destinations: []disk.RepairedDestination{of(3, 2, false)}},
		"in all 3 messages copied, how many could not be read is not known": {
			Destinations: []disk.RepairedDestination{of(3, -1, true)}},
		"in all 0 messages copied, how many could not be read is not known": {Cut: true},
		"in all 4 messages copied, 2 or more could not be read": {Cut: true,
			Destinations: []disk.RepairedDestination{of(3, 2, false), of(1, 0, false)}},
		"in all 7 messages copied, 403 or more could not be read": {Dropped: 400,
			Destinations: []disk.RepairedDestination{{Copied: 7, Lost: 3, More: true}}},
	} {
		r.Kept = "db.damaged-x"
		var out strings.Builder
		tellRepaired(&out, r)
		if !strings.Contains(out.String(), "  "+want+"\n") {
			t.Errorf("want %q in %s", want, out.String())
		}
	}
}

// The line that removes the old store can be given to a shell as it is.
func TestTheOldStoreIsNamedForAShell(t *testing.T) {
	for _, path := range []string{"data/shop/db.damaged-20261130-161248", "/a b/$HOME/it's", "-r",
		"~/x", "a\\b", "*", "x;y", "é"} {
		var out strings.Builder
		tellRepaired(&out, &hopwire.Repaired{Kept: path})
		_, word, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), ": rm -r ")
		got, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+word).Output()
		if want := strings.TrimPrefix(path, "-"); err != nil || !strings.HasSuffix(string(got), want) ||
			strings.HasPrefix(string(got), "-") {
			t.Errorf("%s is told as %s, which is %q: %v", path, word, got, err)
		}
	}
	if got := quoted("/data/shop/db.damaged-1"); strings.Contains(got, "'") {
		t.Errorf("a plain path is %s", got)
	}
}
