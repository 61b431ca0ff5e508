package cli

import (
	"fmt"
	"testing"
	"time"
)

func TestALogOnTheTerminalStandsBehindWhatStartPrints(t *testing.T) {
	var out shared
	h := hold(&out)
	fmt.Fprintln(h, "starting")
	fmt.Fprintln(&out, "broker b")
	h.release()
	fmt.Fprintln(h, "running")
	h.release()
	if got := out.String(); got != "broker b\nstarting\nrunning\n" {
		t.Errorf("the terminal shows %q", got)
	}
	var late shared
	began := time.Now()
	fmt.Fprintln(hold(&late), "opening")
	late.until(t, `^opening$`)
	if took := time.Since(began); took > heldFor+10*time.Second {
		t.Errorf("a start that takes long shows its log after %v", took)
	}
}
