package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// subject is a broker that answers.
type subject struct{ stopped chan struct{} }

func (s *subject) Presence() *manage.Presence { return &manage.Presence{} }

func (s *subject) Status(context.Context) (*manage.Status, error) {
	return &manage.Status{Broker: "b", ID: "ID:b"}, nil
}

func (s *subject) Explain(_ context.Context, queue, id string) (*manage.Explanation, error) {
	if queue != "q" {
		return nil, message.Errorf(message.NotFound, "broker b has no %s", queue)
	}
	return &manage.Explanation{Broker: "b", Rows: []manage.ExplanationRow{{Example: id}}}, nil
}

func (s *subject) Stop() { close(s.stopped) }

// serve runs the control socket of a broker named b in a folder and list of its own.
func serve(t *testing.T) (*subject, string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s := &subject{stopped: make(chan struct{})}
	folder := t.TempDir()
	server, l, err := Listen("b", folder, s)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, folder
}

func running(t *testing.T) []*Client {
	t.Helper()
	list, err := Running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestARunningBrokerIsFoundAndAnswers(t *testing.T) {
	s, _ := serve(t)
	list := running(t)
	if len(list) != 1 || list[0].Name != "b" {
		t.Fatalf("found %v, want b", list)
	}
	c := list[0]
	if st, err := c.Status(t.Context()); err != nil || st.ID != "ID:b" {
		t.Errorf("status %+v, %v", st, err)
	}
	if x, err := c.Explain(t.Context(), "q", "ID:1"); err != nil || x.Rows[0].Example != "ID:1" {
		t.Errorf("explanation %+v, %v", x, err)
	}
	if _, err := c.Explain(t.Context(), "none", ""); message.KindOf(err) != message.NotFound {
		t.Errorf("a queue that is not there: %v, want NotFound", err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.stopped
}

func TestTheSocketIsForItsOwnerAlone(t *testing.T) {
	_, folder := serve(t)
	info, err := os.Stat(filepath.Join(folder, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
}

func TestABrokerThatWasKilledLeavesTheList(t *testing.T) {
	_, _ = serve(t)
	dir, err := listFolder()
	if err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "dead.1")
	if err := os.WriteFile(stale, []byte(filepath.Join(t.TempDir(), "no.sock")), 0o600); err != nil {
		t.Fatal(err)
	}
	if list := running(t); len(list) != 1 {
		t.Errorf("found %v, want b alone", list)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its entry is still there: %v", err)
	}
}

func TestAnImpatientCallerTakesNobodyOffTheList(t *testing.T) {
	_, _ = serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Running(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if list := running(t); len(list) != 1 {
		t.Errorf("found %v afterwards, want b", list)
	}
}
