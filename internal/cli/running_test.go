package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

func TestABrokerThatHangsIsNamedAndTheOthersAreAsked(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	hub := broker.Start(t, broker.Hopwire, broker.Options{Name: "hub"})
	shop := broker.Start(t, broker.Hopwire, broker.Options{Name: "shop"})
	expect(t, exitDone, `sent 2 messages`, "producer", "--brokerUrl", shop.URL(), "--messageCount",
		"2", "Q")
	hub.Pause()
	defer hub.Resume()
	hangs := fmt.Sprintf(`broker hub pid %d does not answer`, hub.PID())
	began := time.Now()
	expect(t, exitUnavailable, `^broker shop .*queue://Q +2 .*`+hangs, "status")
	expect(t, exitUnavailable, `^broker shop  queue://Q: 2 messages.*`+hangs, "explain", "Q")
	expect(t, exitUnavailable, `^hopwire: `+hangs, "stop", "-b", "hub")
	expect(t, exitUsage, `brokers of 2 processes are running \(hub, shop\)`, "stop")
	expect(t, exitDone, `^broker shop stopped\n$`, "stop", "-b", "shop")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestSeveralBrokersCanBeNamed(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	var url string
	for _, name := range []string{"c", "b", "a"} {
		url = broker.Start(t, broker.Hopwire, broker.Options{Name: name}).URL()
	}
	expect(t, exitDone, "sent 1 message", "producer", "--brokerUrl", url, "--messageCount", "1", "Q")
	expect(t, exitDone, `^broker a .*^broker c `, "status", "-b", "a", "-b", "c")
	expect(t, exitUnavailable, `^broker a .*\nhopwire: no broker named d is [^\n]*\n`+
		`no broker named e is [^\n]*\n$`, "status", "-b", "d", "-b", "a", "-b", "e")
	expect(t, exitUnavailable, `^hopwire: no broker named d is [^\n]*\n$`, "status", "-b", "d")
	expect(t, exitUnavailable, `^\[\n  {.*"broker": "a",.*\n\]\nhopwire: no broker named d`,
		"status", "--json", "-b", "a", "-b", "d")
	expect(t, exitUnavailable, `^broker a  queue://Q: .*\nhopwire: no broker named d`, "explain", "-b",
		"d", "-b", "a", "Q")
}

func TestBrokersOfOneNameAreToldApartByTheirProcess(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	one := broker.Start(t, broker.Hopwire, broker.Options{Name: "twin", Persistent: true})
	two := broker.Start(t, broker.Hopwire, broker.Options{Name: "twin"})
	expect(t, exitDone, `sent 1 message`, "producer", "--brokerUrl", one.URL(), "--messageCount",
		"1", "Q")
	pid := func(b *broker.Broker) string { return strconv.Itoa(b.PID()) }
	folder := `pid ` + pid(one) + `, data in /\S+`
	address := `pid ` + pid(two) + `, at ` + regexp.QuoteMeta(two.URL())
	where := `(` + folder + `; ` + address + `|` + address + `; ` + folder + `)`
	expect(t, exitUsage, `^hopwire: 2 brokers named twin are running: `+where+`; stop one with`+
		` --broker twin --pid PID, or all of them with --all\n$`, "stop", "-b", "twin")
	expect(t, exitDone, `^broker twin pid `+pid(one)+`  queue://Q: 1 message,`, "explain", "Q")
	expect(t, exitDone, `\n\n2 running brokers have the name twin: pid \d+; pid \d+\n$`, "status")
	expect(t, exitDone, `^broker twin pid \d+  0 prepared.*^broker twin pid \d+  0 `, "transactions")
	expect(t, exitFailed, `\(asked: twin pid \d+, twin pid \d+\)`, "explain", "NONE")
	expect(t, exitUnavailable, `no broker named twin is running in process 1 `, "stop", "-b", "twin",
		"--pid", "1")
	expect(t, exitUnavailable, `no broker is running in process 1 `, "status", "--pid", "1")
	expect(t, exitDone, `^broker twin stopped\n$`, "stop", "-b", "twin", "--pid", pid(two))
	expect(t, exitDone, `^broker twin .* pid `+pid(one), "status", "-b", "twin")
	expect(t, exitDone, `^broker twin stopped\n$`, "stop", "-b", "twin")
}

func TestWhoFindsNoBrokerSaysWhereItLooked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	list := filepath.Join(dir, fmt.Sprintf("hopwire-%d", os.Getuid()))
	expect(t, exitUnavailable, `no broker is running for this user \(looked in `+list+`, as TMPDIR`+
		` is `+dir+`\)`, "status")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	expect(t, exitUnavailable, `^hopwire: the folder of the list of running brokers, `+file+
		`/hopwire-\d+, cannot be made: not a directory; set TMPDIR`, "status")
}

func TestABrokerOfAnotherUserThatHasTheNameIsTold(t *testing.T) {
	others := []control.Other{{UID: 7, Name: "shop", PID: 70}, {UID: 8},
		{UID: 9, Name: "hub", PID: 90}}
	for name, want := range map[string]string{
		"shop": "; a broker of another user has that name, pid 70 of user 7: ask it as that user",
		"none": "; brokers of other users are not seen (user 8 has run some): ask as that user",
	} {
		if got := elsewhereOf(name, others); got != want {
			t.Errorf("of %s it says %q, want %q", name, got, want)
		}
	}
	if got := elsewhereOf("none", nil); got != "" {
		t.Errorf("without others it says %q", got)
	}
	if got, want := beside(others), "; other users have brokers (hub, pid 90 of user 9; shop, pid 70"+
		" of user 7; some of user 8, not seen): ask as that user"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := beside(nil); got != "" {
		t.Errorf("without others it says %q", got)
	}
	got := sameNames([]*manage.Status{{Broker: "a", PID: 1}, {Broker: "shop", PID: 2},
		{Broker: "a", PID: 3}, {Broker: "b", PID: 3}, {Broker: "b", PID: 4, Waits: "a folder"},
		{Broker: "a", PID: 5, Waits: "a folder"}}, others)
	want := []string{"2 running brokers have the name a: pid 1; pid 3",
		"2 running brokers have the name shop: pid 2; pid 70 of user 7, who alone can ask it"}
	if !slices.Equal(got, want) {
		t.Errorf("status says %q, want %q", got, want)
	}
	if got := runOn("shop", others); len(got) != 1 ||
		!strings.Contains(got[0], "pid 70 of user 7, runs on") {
		t.Errorf("stop says %q", got)
	}
}

func TestStopTakesNames(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	for _, name := range []string{"a", "b", "c", "shop1"} {
		broker.Start(t, broker.Hopwire, broker.Options{Name: name})
	}
	expect(t, exitUnavailable, `no broker named d is running`, "stop", "d")
	expect(t, exitUnavailable, `no broker named shp1 .*; did you mean shop1\?\n$`, "stop", "shp1")
	expect(t, exitDone, `^broker shop1 stopped\n$`, "stop", "shop1")
	expect(t, exitDone, `^broker a stopped\nbroker c stopped\n$`, "stop", "a", "-b", "c")
	expect(t, exitDone, `^broker b `, "status")
}
