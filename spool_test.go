package hopwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
	"hopwire/test/wait"
)

// narrow is 1 MiB for messages.
const narrow = `<systemUsage><systemUsage><memoryUsage><memoryUsage limit="1 mb"/></memoryUsage>
	<tempUsage><tempUsage limit="64 mb"/></tempUsage></systemUsage></systemUsage>`

// floods sends 400 messages of 10 KB that are not persistent, or as many as go in a while, and
// gives the status when all are there, or some wait.
func floods(t *testing.T, b *Broker, all bool) *Status {
	t.Helper()
	patience := 2 * time.Second
	if all {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := client.Dial(ctx, "tcp://"+b.config.Name, client.WithDialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue("Q"), client.NonPersistent())
	if err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if err := p.Send(ctx, client.NewText(strings.Repeat("x", 10_000))); err != nil {
			break
		}
	}
	var st *Status
	wait.For(t, 10*time.Second, "what became of them", func() (string, bool) {
		var err error
		if st, err = b.Status(context.Background()); err != nil {
			t.Fatal(err)
		}
		d := st.Destinations[0]
		return fmt.Sprintf("%+v", d), all && d.Size == 400 || !all && d.Parked > 0
	})
	return st
}

// The spool is where the file says, bounded as it says, and nobody else's.
func TestTheSpoolIsWhereTheFileSays(t *testing.T) {
	for _, c := range []struct{ attributes, content, where string }{
		{``, ``, "data/b/tmp_storage"},
		{`tmpDataDirectory="%s/elsewhere"`, ``, "elsewhere"},
		{
			`tmpDataDirectory="%s/elsewhere"`,
			`<tempDataStore><pListStoreImpl directory="%s/third" lazyInit="true"/></tempDataStore>`,
			"third",
		},
	} {
		dir := t.TempDir()
		in := func(text string) string { return strings.ReplaceAll(text, "%s", dir) }
		where := filepath.Join(dir, filepath.FromSlash(c.where), "b.hopwire")
		left := filepath.Join(where, "db", "left")
		err := errors.Join(os.MkdirAll(left, 0o700),
			os.WriteFile(filepath.Join(where, "spool"), nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		attributes := in(`dataDirectory="%s/data" ` + c.attributes)
		b := run(t, attributes, narrow+in(c.content), Options{NoControl: true})
		if _, err := os.Stat(where); err == nil {
			t.Errorf("%s: what was left is there after the start", c.where)
		}
		st := floods(t, b, true)
		if d := st.Destinations[0]; d.Size != 400 || st.Spooled < 200 || st.TempLimitBytes != 64<<20 ||
			st.TempBytes == 0 {
			t.Errorf("%s: %+v with %d spooled, %d of %d bytes", c.where, d, st.Spooled, st.TempBytes,
				st.TempLimitBytes)
		}
		if _, err := os.Stat(filepath.Join(where, "db")); err != nil {
			t.Error(err)
		}
		b.Stop()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(where); err == nil {
			t.Errorf("%s: it is there after the stop", c.where)
		}
	}
}

// A broker whose spool's folder another one uses goes without, and says so.
func TestAFolderThatIsInUseIsNoSpool(t *testing.T) {
	dir := t.TempDir()
	other := disk.NewSpool(disk.Options{Dir: filepath.Join(dir, "b.hopwire")})
	q := message.Destination{Kind: message.Queue, Name: "q"}
	if err := other.Apply([]*store.Batch{{Ops: []store.Op{
		{Kind: store.PutMessage, Dest: 1, Seq: 1, Message: &message.Message{Destination: q}},
		{Kind: store.PutHeader, Header: &store.Header{ID: 1, Destination: q, Reserved: 9}},
	}}}); err != nil {
		t.Fatal(err)
	}
	goesWithout(t, dir, "in use by")
	if page, err := other.Page(store.PageRequest{Dest: 1, To: 9}); err != nil || len(page) != 1 {
		t.Errorf("the other one has %d messages, %v", len(page), err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// goesWithout runs a broker whose spool would be in a folder: it says in one line why it has none,
// and its sends wait.
func goesWithout(t *testing.T, dir, why string) {
	t.Helper()
	var log bytes.Buffer
	b := run(t, fmt.Sprintf(`dataDirectory="%s/data" tmpDataDirectory="%s"`, dir, dir),
		narrow, Options{NoControl: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if st := floods(t, b, false); st.Destinations[0].Parked == 0 || st.SpooledTotal != 0 {
		t.Errorf("%+v, %d spooled", st.Destinations[0], st.SpooledTotal)
	}
	b.Stop()
	if err := b.Wait(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "nothing is spooled"); n != 1 ||
		!strings.Contains(log.String(), why) {
		t.Errorf("it says so %d times: %s", n, log.String())
	}
}

// A folder of somebody else's is not wiped: the broker says so in one line and goes without.
func TestAFolderOfSomebodyElseIsNoSpool(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b.hopwire", "sub", "file")
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	goesWithout(t, dir, "it has sub and no file spool")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
