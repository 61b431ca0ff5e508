package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"hopwire/test/interop/broker"
)

func TestABrokerThatHangsIsNamedAndTheOthersAreAsked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
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
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range []string{"a", "b", "c"} {
		broker.Start(t, broker.Hopwire, broker.Options{Name: name})
	}
	expect(t, exitDone, `^broker a .*^broker c `, "status", "-b", "a", "-b", "c")
	expect(t, exitUnavailable, `no broker named d`, "status", "-b", "a", "-b", "d")
}

func TestBrokersOfOneNameAreToldApartByTheirProcess(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
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
	expect(t, exitUnavailable, `no broker is running for this user \(looked in `+list+`,`, "status")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	expect(t, exitUnavailable, `^hopwire: the folder of the list of running brokers, `+file+
		`/hopwire-\d+, cannot be made: not a directory; set TMPDIR`, "status")
}
