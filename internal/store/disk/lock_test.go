package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

func TestASecondOpenIsRefusedWithTheHolder(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, 0)
	_, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	want := fmt.Sprintf("store %s: in use by pid %d on ", dir, os.Getpid())
	if runtime.GOOS != "linux" {
		want = "store " + dir + ": in use by "
	}
	if message.KindOf(err) != message.Unavailable || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("second open: %v, want %s…", err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, dir, 0).Close(); err != nil {
		t.Fatal(err)
	}
}

// Who takes the lock file of a running broker for a remain of a dead one does not get the folder.
func TestALockOutlivesItsFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the folder itself is locked on linux")
	}
	dir := t.TempDir()
	s := openIn(t, dir, 0)
	for _, name := range []string{"lock", "db/LOCK"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("store %s: in use by pid %d, whose lock file was removed", dir, os.Getpid())
		_, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
		if message.KindOf(err) != message.Unavailable || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("without %s: %v, want %s…", name, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "lock")); err == nil {
			t.Error("a lock file was made, which nobody holds")
		}
		if !disk.InUse(dir) {
			t.Error("the folder is said to be free")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, dir, 0).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAWaitingOpenGetsTheFolderWhenItIsFree(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, 0)
	lines := make(chan string, 10)
	o := disk.Options{Dir: dir, Poll: time.Millisecond, OnWait: func(l string) { lines <- l }}
	opened := make(chan error)
	go func() {
		slave, err := disk.Open(context.Background(), o)
		if err == nil {
			err = slave.Close()
		}
		opened <- err
	}()
	if l := <-lines; !strings.Contains(l, "waiting as slave until it is free") {
		t.Errorf("the line is %q", l)
	}
	select {
	case err := <-opened:
		t.Fatalf("it opened a folder in use: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if len(lines) > 0 {
		t.Error("it was told more than once")
	}
}

func TestAWaitingOpenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, 0)
	ctx, cancel := context.WithCancel(context.Background())
	o := disk.Options{Dir: dir, Poll: time.Hour, OnWait: func(string) { cancel() }}
	if _, err := disk.Open(ctx, o); message.KindOf(err) != message.Unavailable {
		t.Errorf("open after cancel: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// posixLocker takes the lock as Java's FileChannel.tryLock does, with a POSIX record lock on the
// first byte, says so and holds it until its input ends; or says that it did not get it.
const posixLocker = `
import fcntl, sys
f = open(sys.argv[1], "r+" if len(sys.argv) > 2 else "w+")
try:
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    print("locked", flush=True)
    sys.stdin.read()
except OSError:
    print("busy", flush=True)
`

func TestAJavaLockAndOursExcludeEachOther(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("python3 on linux is needed to lock as Java does")
	}
	dir := t.TempDir()
	pid := 0
	lock := func(extra ...string) (line string, release func()) {
		args := append([]string{"-c", posixLocker, filepath.Join(dir, "lock")}, extra...)
		cmd := exec.Command(python, args...)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid = cmd.Process.Pid
		buf := make([]byte, 10)
		n, _ := out.Read(buf)
		return strings.TrimSpace(string(buf[:n])), func() { in.Close(); _ = cmd.Wait() }
	}
	got, release := lock()
	if got != "locked" {
		t.Fatal("the other process says", got)
	}
	_, err = disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	if message.KindOf(err) != message.Unavailable || !strings.Contains(err.Error(),
		fmt.Sprintf("in use by pid %d that is no Hopwire (an ActiveMQ? stop it first)", pid)) {
		t.Errorf("open of a folder that Java holds as pid %d: %v", pid, err)
	}
	release()
	s := openIn(t, dir, 0)
	got, release = lock("keep")
	if got != "busy" {
		t.Errorf("the other process says %q while we hold the folder", got)
	}
	release()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderOfSomethingElseIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte("KahaDB"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	if err == nil || !strings.Contains(err.Error(), `says "KahaDB": this is no Hopwire store`) {
		t.Error(err)
	}
}

func TestTheFormatOfTheFolderIsHeeded(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"hopwire store 6\n", "it has format 6, this program knows up to 5: use the newer program"},
		{"KahaDB", `the file format says "KahaDB", which is no format of a store: run hopwire repair` +
			` FILE, which makes it anew`},
	} {
		dir := t.TempDir()
		if err := openIn(t, dir, 0).Close(); err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			if err := os.WriteFile(filepath.Join(dir, "format"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(c.content)
		_, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
		if want := "store " + dir + ": " + c.want; err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", c.content, err, want)
		}
		write("hopwire store 1\n")
		if err := openIn(t, dir, 0).Close(); err != nil {
			t.Error("a refused folder stays locked:", err)
		}
	}
}

// TestAFolderIsRaisedByItsFirstSubscription, unless something else raised it before it.
func TestAFolderIsRaisedByItsFirstSubscription(t *testing.T) {
	dir := t.TempDir()
	format := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "format"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	apply := func(ops ...store.Op) {
		t.Helper()
		s := openIn(t, dir, 0)
		err := s.Apply([]*store.Batch{{Ops: ops}})
		if p, perr := s.Page(store.PageRequest{Dest: 1, To: 10}); perr != nil || len(p) != 1 {
			t.Errorf("the queue has %v, %v", p, perr)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	h := func(id store.DestID, kind message.Kind, sub *store.Subscription) store.Op {
		return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: id, Head: 1, Reserved: 10,
			Destination: message.Destination{Kind: kind, Name: "d"}, Subscription: sub}}
	}
	m := &message.Message{}
	apply(h(1, message.Queue, nil), store.Op{Kind: store.PutMessage, Dest: 1, Seq: 5, Message: m})
	apply(h(2, message.Topic, nil)) // for receipts of the topic alone
	if got := format(); got != "hopwire store 1\n" {
		t.Errorf("without subscriptions the format is %q", got)
	}
	apply(h(3, message.Topic, &store.Subscription{ClientID: "c", Name: "n", Selector: "a > 1"}))
	if got := format(); got != "hopwire store 2\n" {
		t.Errorf("with a subscription the format is %q", got)
	}
	apply(store.Op{Kind: store.PutMessage, Dest: 2, Seq: 6, Message: m},
		store.Op{Kind: store.PutReference, Dest: 3, Seq: 6, Source: 2})
	if got := format(); got != "hopwire store 2\n" {
		t.Errorf("the format became %q", got)
	}
}

func TestAFolderWithoutItsFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := openIn(t, dir, 0).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "format")); err != nil {
		t.Fatal(err)
	}
	_, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	if message.KindOf(err) != message.Corrupt {
		t.Errorf("open: %v, want a Corrupt error", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    disk.Options
		want string
	}{
		{disk.Options{}, "store: Dir is empty: name a folder"},
		{disk.Options{Dir: "x", MemTableBytes: 1},
			"store: MemTableBytes is 1: use 1 MiB to 64 MiB"},
		{disk.Options{Dir: "x", Poll: -1},
			"store: CacheBytes, InlineBytes, PieceBytes and Poll must not be negative"},
	} {
		if _, err := disk.Open(context.Background(), c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
