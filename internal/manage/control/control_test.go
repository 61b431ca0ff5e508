package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"hopwire/internal/manage"
	"hopwire/internal/message"
	"hopwire/test/need"
)

// subject is a broker that answers.
type subject struct {
	stopped chan struct{}
	decided []string
	by      string // who asked for a purge
}

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

func (s *subject) Decide(_ context.Context, xid string, commit bool) error {
	if xid != "XID:1" {
		return message.Errorf(message.NotFound, "no transaction %s is prepared", xid)
	}
	s.decided = append(s.decided, fmt.Sprint(xid, " ", commit))
	return nil
}

func (s *subject) Purge(ctx context.Context, queue string) (*manage.Purged, error) {
	s.by = manage.AskedBy(ctx)
	if queue != "a b" {
		return nil, message.Errorf(message.NotFound, "broker b has no %s", queue)
	}
	return &manage.Purged{Dropped: 7, InDoubt: 2}, nil
}

func (s *subject) Remove(_ context.Context, d string) (*manage.Removed, error) {
	if d != "topic://a&b" {
		return nil, message.Errorf(message.IllegalState, "%s has consumers", d)
	}
	return &manage.Removed{Dropped: 8}, nil
}

func (s *subject) RemoveDurable(_ context.Context, client, name string) (*manage.Removed, error) {
	return &manage.Removed{Remark: client + " " + name}, nil
}

func (s *subject) Stop() { close(s.stopped) }

// serve runs the control socket of a broker named b in a folder and list of its own.
func serve(t *testing.T) (*subject, string) {
	t.Helper()
	t.Setenv("TMPDIR", need.ShortDir(t))
	s := &subject{stopped: make(chan struct{})}
	folder := need.ShortDir(t)
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
	for _, commit := range []bool{true, false} {
		if err := c.Decide(t.Context(), "XID:1", commit); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(s.decided, ", "); got != "XID:1 true, XID:1 false" {
		t.Errorf("decided %s", got)
	}
	if err := c.Decide(t.Context(), "XID:2", true); message.KindOf(err) != message.NotFound {
		t.Errorf("a transaction that is not there: %v, want NotFound", err)
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

// busy answers nothing of what needs its work.
type busy struct{ subject }

func (*busy) Explain(context.Context, string, string) (*manage.Explanation, error) {
	return nil, message.Errorf(message.Unavailable, "it does not run yet")
}

func TestTheKindOfAnErrorReachesWhoAsked(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	server, l, err := Listen("b", t.TempDir(), &busy{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	_, err = running(t)[0].Explain(t.Context(), "q", "")
	if message.KindOf(err) != message.Unavailable {
		t.Errorf("kind %d of %v", message.KindOf(err), err)
	}
	server.Close(t.Context())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoEntryOfTheListIsLeftAlone(t *testing.T) {
	serve(t)
	dir, err := listFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.7"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"notes": "short", "x.1": "", "y.2": "relative.sock", "z.3": "/etc/passwd", "w.-4": "/a.sock",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.ReadDir(dir)
	if list := running(t); len(list) != 1 {
		t.Errorf("found %v, want b alone", list)
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("%v became %v", before, after)
	}
}

func TestAFolderThatIsTooDeepForASocketIsNamed(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(need.ShortDir(t), strings.Repeat("d", 90)))
	if err := os.Mkdir(os.TempDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := Listen("b", "", &subject{})
	at := filepath.Join(ListFolder(), "")
	if err == nil || !regexp.MustCompile(`^the control socket `+at+`/\S+\.sock cannot be opened: its`+
		` path has 1\d\d bytes, and that of a socket may have 10\d here; set TMPDIR to a folder with`+
		` a shorter one$`).MatchString(err.Error()) || message.KindOf(err) != message.Unavailable {
		t.Errorf("it is told as %v", err)
	}
}

func TestAListThatAnotherMayHaveMadeIsNotUsed(t *testing.T) {
	for what, make := range map[string]func(list string) error{
		"a link": func(list string) error { return os.Symlink(t.TempDir(), list) },
		"open":   func(list string) error { return os.Mkdir(list, 0o755) },
		"a file": func(list string) error { return os.WriteFile(list, nil, 0o700) },
	} {
		t.Setenv("TMPDIR", need.ShortDir(t))
		list := filepath.Join(os.TempDir(), "hopwire-"+strconv.Itoa(os.Getuid()))
		if err := make(list); err != nil {
			t.Fatal(err)
		}
		if _, err := Running(t.Context()); err == nil {
			t.Errorf("%s: it is used", what)
		}
	}
}

func TestASocketOfTheNextBrokerIsNotRemoved(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	folder := need.ShortDir(t)
	socket := filepath.Join(folder, "control.sock")
	old, l, err := Listen("b", folder, &subject{})
	if err != nil {
		t.Fatal(err)
	}
	next, l2, err := Listen("b", folder, &subject{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- old.Serve(l) }()
	go func() { served <- next.Serve(l2) }()
	old.Close(t.Context())
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	next.Close(t.Context())
	if _, err := os.Stat(socket); err == nil {
		t.Error("the last one left its socket")
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func TestALongNameHasASocket(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	name := strings.Repeat("n", 90)
	server, l, err := Listen(name, "", &subject{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	if list := running(t); len(list) != 1 || list[0].Name != name {
		t.Errorf("found %v", list)
	}
	server.Close(t.Context())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestWhatIsDoneByHandIsAskedAndAnswered(t *testing.T) {
	s, _ := serve(t)
	c := running(t)[0]
	want := manage.Purged{Dropped: 7, InDoubt: 2}
	if p, err := c.Purge(t.Context(), "a b"); err != nil || *p != want {
		t.Errorf("purged %+v, %v", p, err)
	}
	if self := fmt.Sprint(", pid ", os.Getpid()); !strings.HasPrefix(s.by, "user ") ||
		!strings.HasSuffix(s.by, self) {
		if runtime.GOOS == "linux" {
			t.Errorf("asked by %q", s.by)
		}
	}
	if _, err := c.Purge(t.Context(), "q"); message.KindOf(err) != message.NotFound {
		t.Error(err)
	}
	if r, err := c.Remove(t.Context(), "topic://a&b"); err != nil || r.Dropped != 8 {
		t.Errorf("removed %+v, %v", r, err)
	}
	if _, err := c.Remove(t.Context(), "q"); message.KindOf(err) != message.IllegalState {
		t.Error(err)
	}
	if r, err := c.RemoveDurable(t.Context(), "c=1", "s&2"); err != nil || r.Remark != "c=1 s&2" {
		t.Errorf("removed %+v, %v", r, err)
	}
}
