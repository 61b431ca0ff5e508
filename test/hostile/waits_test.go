package hostile

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/test/wait"
)

// A start that waits for space on the disk is on the list of brokers, and one signal, or a stop,
// ends it.
func TestAStartOnAFullDiskCanBeStopped(t *testing.T) {
	dir := smallDisk(t, 64)
	p := newProcess(t, setup{data: filepath.Join(dir, "d")})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sendSmall(ctx, t, p, 3000)
	p.kill()
	if ballast, err := filepath.Glob(filepath.Join(dir, "d", "*", "*", "ballast")); err != nil ||
		len(ballast) != 1 {
		t.Fatalf("%q, %v", ballast, err)
	} else if err := os.Remove(ballast[0]); err != nil {
		t.Fatal(err)
	}
	hog(t, filepath.Join(dir, "others"))
	for _, by := range []string{"signal", "stop"} {
		mark := p.log.mark()
		p.launch()
		p.awaitLog(mark, "the disk is full")
		var waits string
		wait.For(t, patience, "the status of what waits", func() (string, bool) {
			list, _ := filepath.Glob(filepath.Join(p.dir, "hopwire-*", "*"))
			if len(list) == 0 {
				return "no list", false
			}
			waits = p.status().Waits
			return waits, strings.Contains(waits, "the disk is full")
		})
		if by == "signal" {
			t.Log("exit code", p.stop())
			continue
		}
		if err := p.control().Stop(ctx); err != nil {
			t.Fatal(err)
		}
		t.Log("exit code", p.exit(patience))
	}
	if err := os.Remove(filepath.Join(dir, "others")); err != nil {
		t.Fatal(err)
	}
	p.start()
	if q := queue(p.status(), "D"); q.Size != 3000 {
		t.Errorf("%d of 3000 messages are there", q.Size)
	}
}
