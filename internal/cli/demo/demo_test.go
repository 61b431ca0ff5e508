package demo

import (
	"strings"
	"testing"
)

// TestAllThreeStoriesHold plays the demo as hopwire demo --plain does.
func TestAllThreeStoriesHold(t *testing.T) {
	var out strings.Builder
	if err := Run(t.Context(), &out, false); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "\n  held\n"); n != 3 {
		t.Errorf("%d stories held, want 3\n%s", n, out.String())
	}
}
