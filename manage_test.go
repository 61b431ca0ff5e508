package hopwire

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hopwire/internal/manage"
	"hopwire/test/need"
)

// Who asks is in another folder than the broker was started in.
func TestTheDataFolderIsTheSameFromEverywhere(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := run(t, `dataDirectory="data"`, "", Options{})
	for who, status := range map[string]func(context.Context) (*manage.Status, error){
		"a broker": b.Status, "a slave": (&slave{setup: named(t, "b", "data", "")}).Status,
	} {
		st, err := status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(here, "data", "b", "KahaDB"); st.DataFolder != want {
			t.Errorf("%s has its store in %q, want %q", who, st.DataFolder, want)
		}
	}
	b = run(t, `persistent="false"`, "", Options{})
	if st, err := b.Status(ctx); err != nil || st.DataFolder != "" {
		t.Errorf("without a store it is %q, %v", st.DataFolder, err)
	}
}
