package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAllThreeStoriesHold plays the demo as hopwire demo --plain does.
func TestAllThreeStoriesHold(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out strings.Builder
	if err := Run(t.Context(), &out, Options{}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "hopwire-demo-*")); err != nil || left != nil {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if n := strings.Count(out.String(), "\n  held\n"); n != 3 {
		t.Errorf("%d stories held, want 3\n%s", n, out.String())
	}
}

func TestTheFolderStaysAfterAFailureAndOnRequest(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failed := errors.New("failed")
	for _, c := range []struct {
		name        string
		ctx         context.Context
		keep        bool
		err         error
		files, data bool
	}{
		{"all held", t.Context(), false, nil, false, false},
		{"all held, kept", t.Context(), true, nil, true, false},
		{"failed", t.Context(), false, failed, true, true},
		{"interrupted", ended, false, failed, false, false},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := leave(c.ctx, &out, dir, c.keep, c.err); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		for path, want := range map[string]bool{dir: c.files, filepath.Join(dir, "data"): c.data} {
			if _, err := os.Stat(path); err == nil != want {
				t.Errorf("%s: %s is there: %v, want %v", c.name, path, err == nil, want)
			}
		}
		if strings.Contains(out.String(), dir) != c.files {
			t.Errorf("%s says %q", c.name, out.String())
		}
	}
}
