package message

import (
	"fmt"
	"testing"
)

func TestEveryKindOfErrorHasAnException(t *testing.T) {
	for k := Internal; k <= RolledBack; k++ {
		if x := Exception(fmt.Errorf("more: %w", Errorf(k, "text"))); x.Class == "" ||
			x.Message != "more: text" {
			t.Errorf("kind %d: %+v", k, x)
		}
	}
	x := &Throwable{Class: "of.a.peer"}
	if Exception(fmt.Errorf("more: %w", x)) != x {
		t.Error("a peer's own exception is not passed on")
	}
}
