package hostile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/need"
	"hopwire/test/wait"
)

// smallDisk mounts a file system of so many MiB.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	need.Root(t)
	dir, err := os.MkdirTemp("", "hwd")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		os.Remove(dir)
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
		os.Remove(dir)
	})
	return dir
}

func room(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// filler sends persistent messages of 8 KiB, up to 3,000 at a time, until its context ends.
type filler struct {
	confirmed atomic.Int64
	done      chan struct{}

	mu   sync.Mutex
	keys []string // of the confirmed ones
}

func fill(ctx context.Context, t *testing.T, addr string, from int) *filler {
	t.Helper()
	f := &filler{done: make(chan struct{})}
	conn := dial(ctx, t, addr)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue("FULL"), client.Window(3000))
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 4<<10) // compresses to half
	go func() {
		defer close(f.done)
		defer conn.Close(context.Background())
		for i := from; ctx.Err() == nil && conn.Err() == nil; i++ {
			_, _ = rand.Read(random)
			key := fmt.Sprintf("%08d", i)
			if err := p.SendAsync(ctx, client.NewText(key+hex.EncodeToString(random)), func(err error) {
				if err == nil {
					f.mu.Lock()
					f.keys = append(f.keys, key)
					f.mu.Unlock()
					f.confirmed.Add(1)
				} else if ctx.Err() == nil && conn.Err() == nil {
					t.Errorf("a send was refused: %v", err)
				}
			}); err != nil {
				return
			}
		}
	}()
	return f
}

// stuck waits until nothing was confirmed for a second, or the filler ended.
func (f *filler) stuck(t *testing.T) {
	t.Helper()
	n, since := int64(-1), time.Now()
	wait.For(t, 3*patience, "at the end of the disk", func() (string, bool) {
		if now := f.confirmed.Load(); now != n {
			n, since = now, time.Now()
		}
		return fmt.Sprint(n, " confirmed"), time.Since(since) > time.Second
	})
}

// take receives n messages and gives how many came; each body must come once.
func take(t *testing.T, addr string, n int, seen map[string]bool) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn := dial(ctx, t, addr)
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.Transacted)
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Consumer(ctx, client.Queue("FULL"), client.WithPrefetchSize(100))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m, err := k.Receive(ctx)
		if err != nil {
			t.Fatalf("after %d of %d: %v", i, n, err)
		}
		text, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		if seen[text[:8]] {
			t.Errorf("%s came twice", text[:8])
		}
		seen[text[:8]] = true
		if i%50 == 49 || i == n-1 {
			if err := s.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

func TestAFullDiskHoldsProducersAndLosesNothing(t *testing.T) {
	dir := smallDisk(t, 64)
	p := newProcess(t, setup{data: dir})
	mark := p.log.mark()
	f := fill(t.Context(), t, p.addr(), 0)
	f.stuck(t)
	full := f.confirmed.Load()
	line := p.awaitLog(mark, "STORE_FULL")
	t.Logf("%d messages of 8 KiB, %d KiB left: %s", full, room(t, dir)>>10, line)
	if q := queue(p.status(), "FULL"); q.Parked == 0 {
		t.Errorf("no send waits: %+v", q)
	}
	t.Logf("%+v", queue(p.status(), "FULL"))

	// Consumers go on, and make room.
	seen := map[string]bool{}
	taken := take(t, p.addr(), int(full*3/4), seen)
	wait.For(t, 2*patience, "sending again", func() (string, bool) {
		return fmt.Sprintf("%d, %d KiB left", f.confirmed.Load(), room(t, dir)>>10),
			f.confirmed.Load() > full+10
	})
	f.stuck(t)
	t.Logf("%d confirmed after draining", f.confirmed.Load())

	// Full again, from outside too: killed and started with not a byte left.
	ballast := filepath.Join(dir, "ballast-of-others")
	hog(t, ballast)
	p.kill()
	<-f.done
	hog(t, ballast)
	t.Logf("%d bytes left at the restart", room(t, dir))
	mark = p.log.mark()
	p.launch()
	full2 := time.Now()
	wait.For(t, 2*patience, "ready or told", func() (string, bool) {
		said := p.log.since(mark)
		return said, strings.Contains(said, "ready\n") || strings.Contains(said, "disk is full")
	})
	t.Logf("after %v: %s", time.Since(full2), p.log.since(mark))
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	// A start after kill -9 writes what its logs hold once more before it removes them. Where there
	// is no room for that it waits, and goes on when somebody makes it.
	t.Logf("%d KiB left without the hog", room(t, dir)>>10)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=128m"); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(mark, "ready\n")
	left := int(queue(p.status(), "FULL").Size)
	if least := len(f.keys) - taken; left < least || left > least+3000 {
		t.Errorf("%d of %d-%d messages are there", left, len(f.keys), taken)
	}
	take(t, p.addr(), left, seen)
	for _, key := range f.keys {
		if !seen[key] {
			t.Errorf("message %s was confirmed and is lost", key)
		}
	}
}

// hog takes all the room of a file system.
func hog(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for block := make([]byte, size); ; {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
	}
}

// remount makes a file system read-only, or writable again.
func remount(t *testing.T, dir string, readOnly bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if readOnly {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size=64m"); err != nil {
		t.Fatal(err)
	}
}
