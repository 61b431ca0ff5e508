package hopwire

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/test/need"
	"hopwire/test/wait"
)

// What is told once is not told again by who passes it on.
func TestAPortThatIsTakenIsToldOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	uri := "tcp://" + taken.Addr().String()
	s, err := load(t, `persistent="false"`, `<transportConnectors>
		<transportConnector name="a" uri="`+uri+`"/></transportConnectors>`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(t.Context())
	why := regexp.QuoteMeta(uri) + `: address already in use; pid \d+ \(.*\) has it$`
	want := `^\S+activemq\.xml:4:\d+: connector a: ` + why
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) ||
		message.KindOf(err) != message.Unavailable {
		t.Errorf("it is told as %v, want %s", err, want)
	}
	if s, err = load(t, `persistent="false"`, `<transportConnectors><transportConnector uri="`+uri+
		`"/></transportConnectors>`); err != nil {
		t.Fatal(err)
	}
	want = `^\S+activemq\.xml:\d+:\d+: connector ` + why
	if _, err = s.Open(t.Context()); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("of one without a name it is told as %v, want %s", err, want)
	}
}

func TestASlaveThatIsStoppedSaysWhyAlone(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	path := file(t, `dataDirectory="`+t.TempDir()+`"`, "")
	holder, err := Load(path, Options{NoControl: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := holder.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, b)
	for _, stop := range []struct {
		why string
		do  func(cancel context.CancelFunc)
	}{
		{"asked to (hopwire stop)", func(context.CancelFunc) {
			var found []*control.Client
			wait.For(t, time.Minute, "on the list", func() (string, bool) {
				found, err = control.Running(t.Context())
				return fmt.Sprint(found, err), len(found) == 1
			})
			if err := found[0].Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"context canceled", func(cancel context.CancelFunc) { cancel() }},
	} {
		var log strings.Builder
		waits := make(chan struct{})
		slave, err := Load(path, Options{OnWait: func(string) { close(waits) },
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan error, 1)
		go func() { _, err := slave.Open(ctx); opened <- err }()
		<-waits
		stop.do(cancel)
		if err := <-opened; err == nil {
			t.Error("the slave has opened")
		}
		cancel()
		if line := regexp.MustCompile(`(?m)msg="stopped while.*$`).FindString(log.String()); line !=
			`msg="stopped while it waited as slave" broker=b folder=`+slave.Folder()+` why=`+
				`"`+stop.why+`"` {
			t.Errorf("the log says %s in\n%s", line, log.String())
		}
	}
}
