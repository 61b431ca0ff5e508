package interop

import (
	"fmt"
	"regexp"
	"syscall"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/wait"
)

// fits waits until what it has said fits a pattern.
func (s *started) fits(pattern string) {
	s.t.Helper()
	wait.For(s.t, patience, "said: "+pattern, func() (string, bool) {
		out := s.out.String()
		return out, regexp.MustCompile(`(?s)` + pattern).MatchString(out)
	})
}

func TestTheLogTellsOfABrokersLifeAndStatusOfItsSlave(t *testing.T) {
	d := newDesk(t)
	file := d.file("lock", broker.FreePort(t), "")
	first := d.start(file).says("ready")
	pid := first.cmd.Process.Pid
	first.fits(fmt.Sprintf(`time=\S+ level=INFO msg=starting broker=lock version=\S+ pid=%d`+
		` file=\S+lock.xml\n.* msg=listening broker=lock connector=openwire address=tcp://127\S+\n`+
		`.* msg=ready broker=lock\n`, pid))
	slave := d.start(file)
	slave.fits(fmt.Sprintf(` msg="waiting as slave" broker=lock folder=\S+ what="[^"]*%d`, pid))
	d.run(0, fmt.Sprintf(`(?s)broker lock .* pid %d  up .*broker lock .* pid %d  waits: store .*%d`+
		`|pid %[2]d  waits: store .*%[1]d.*broker lock .* pid %[1]d  up `, pid,
		slave.cmd.Process.Pid, pid), "status")
	idle := d.start(file)
	idle.says("waiting as slave")
	d.run(0, "^broker lock stopped\n$", "stop")
	first.says(`msg=stopping broker=lock why="asked to (hopwire stop)"`).says("msg=stopped").ends(0)
	wait.For(t, patience, "a take-over", func() (string, bool) {
		out := slave.out.String() + idle.out.String()
		return out, regexp.MustCompile(`(?s)msg="took over" .*msg=listening.*msg=ready`).MatchString(out)
	})
	d.run(0, `^broker lock pid \d+ stopped\nbroker lock pid \d+ stopped\n$`, "stop", "--all")
	slave.ends(0)
	idle.ends(0)
}

func TestASignalIsNamedInTheLog(t *testing.T) {
	d := newDesk(t)
	s := d.start(d.file("a", broker.FreePort(t), "")).says("msg=ready")
	s.signal(syscall.SIGTERM)
	s.says("msg=stopping broker=a why=SIGTERM").says("msg=stopped broker=a").ends(0)
}

func TestAHubTellsWhoIsLinkedToIt(t *testing.T) {
	d := newDesk(t)
	hub, shop := broker.FreePort(t), broker.FreePort(t)
	h := d.start(d.file("hub", hub, "")).says("ready")
	include := `<staticallyIncludedDestinations><queue physicalName="Q"/>` +
		`</staticallyIncludedDestinations>`
	s := d.start(d.file("shop", shop, link(hub, include))).says("ready")
	h.fits(`level=INFO msg="a peer's bridge came" broker=hub what="tcp://\S+ as link_shop_outbound"` +
		` peer=shop\n`)
	d.produce(shop, 3, "Q")
	wait.For(t, patience, "the messages", func() (string, bool) {
		out, _ := d.command("status", "-b", "hub").CombinedOutput()
		line := `\n  bridge from shop \(tcp://127\S+\), received 3, for \S+\n`
		return string(out), regexp.MustCompile(line).Match(out)
	})
	s.signal(syscall.SIGTERM)
	h.fits(`level=INFO msg="a peer's bridge is gone" broker=hub .*received=3 peer=shop\n`)
}
