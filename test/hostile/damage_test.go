package hostile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/client"
	"hopwire/test/wait"
)

// Bytes of small messages turn on the disk: those that lie there cannot be read, all others come at
// once, new ones too; it is explained, and a purge ends it.
func TestDamageOnTheDiskStopsNobodyButItself(t *testing.T) {
	const count = 3000
	p := newProcess(t, setup{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	p.damage(ctx, count)
	at := p.log.mark()
	p.start()
	sendSmall(ctx, t, p, 10)
	conn := dial(ctx, t, p.addr())
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	from, err := s.Consumer(ctx, client.Queue("D"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil {
			_, _ = from.Receive(ctx)
		}
	}()
	left := int64(0)
	wait.For(t, patience, "all others are consumed", func() (string, bool) {
		q := queue(p.status(), "D")
		left = q.Size
		return strings.Join(q.Waits, " "), left > 0 && left < 200 && q.InFlight == 0
	})
	line := p.awaitLog(at, "cannot be read, and is passed over")
	x := p.explain("queue://D")
	if len(x.Rows) != 1 || x.Rows[0].Reason != "CORRUPT" || x.Rows[0].Count != left {
		t.Errorf("%d are left, explained as %+v", left, x.Rows)
	}
	t.Logf("%d are left; %s", left, line)
	if purged, err := p.control().Purge(ctx, "queue://D"); err != nil || purged.Dropped != left {
		t.Errorf("the purge of %d: %+v, %v", left, purged, err)
	}
	p.stop()
	p.start()
	if q := queue(p.status(), "D"); q.Size != 0 {
		t.Errorf("%d are there after the purge", q.Size)
	}
}

// damage sends so many small messages, stops the broker and turns bytes where they lie.
func (p *process) damage(ctx context.Context, count int) {
	p.t.Helper()
	sendSmall(ctx, p.t, p, count)
	for range 2 { // a start brings the log of the last run into a table
		p.stop()
		p.start()
	}
	p.stop()
	turn(p.t, p.data)
}

// sendSmall sends messages of 1,000 bytes to queue D.
func sendSmall(ctx context.Context, t testing.TB, p *process, n int) {
	t.Helper()
	conn := dial(ctx, t, p.addr())
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Producer(ctx, client.Queue("D"))
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 500)
	for range n {
		_, _ = rand.Read(body)
		if err := to.Send(ctx, client.NewText(hex.EncodeToString(body))); err != nil {
			t.Fatal(err)
		}
	}
}

// turn turns a byte in three places of the largest table below a folder.
func turn(t testing.TB, dir string) {
	t.Helper()
	var name string
	var data []byte
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".sst") {
			return err
		}
		b, err := os.ReadFile(path)
		if len(b) > len(data) {
			name, data = path, b
		}
		return err
	})
	if err != nil || len(data) < 1<<20 {
		t.Fatalf("the largest table is %q with %d bytes, %v", name, len(data), err)
	}
	for _, part := range []int{300, 500, 700} {
		data[len(data)/1000*part] ^= 0x55
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
