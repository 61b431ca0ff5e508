package hopwire

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/client"
	"hopwire/internal/manage/control"
	"hopwire/test/need"
)

// restartable is a broker on disk that can be started again and again, at one address.
func restartable(t *testing.T) (start func() (*Broker, error), url string) {
	t.Helper()
	t.Setenv("TMPDIR", need.ShortDir(t))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "tcp://" + free.Addr().String()
	free.Close()
	path := file(t, `dataDirectory="`+t.TempDir()+`"`, `<transportConnectors>
		<transportConnector name="a" uri="`+url+`"/></transportConnectors>`)
	return func() (*Broker, error) {
		s, err := Load(path, Options{NoWait: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Start(context.Background())
	}, url
}

// What a clean stop finds on its way to the disk is answered, so that producers that fail over do
// not send it again.
func TestACleanStopDoublesNothing(t *testing.T) {
	start, url := restartable(t)
	b, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := client.Dial(ctx, "failover:("+url+")?maxReconnectDelay=50")
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue("Q"), client.Window(200))
	if err != nil {
		t.Fatal(err)
	}
	const perRun, runs = 3000, 5
	for run := range runs {
		reached := make(chan struct{})
		sent := make(chan error, 1)
		go func() {
			for i := range perRun {
				if i == perRun/2 {
					close(reached)
				}
				err := p.SendAsync(ctx, client.NewText(strconv.Itoa(run*perRun+i)), nil)
				if err != nil {
					sent <- err
					return
				}
			}
			sent <- p.Flush(ctx)
		}()
		<-reached
		end(t, b)
		if b, err = start(); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	status, err := b.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := status.Destinations[0].Size; n != perRun*runs {
		t.Errorf("%d messages are there, %d were sent", n, perRun*runs)
	}
	if err := conn.Close(ctx); err != nil {
		t.Error(err)
	}
	end(t, b)
}

// Who waits for the end of a broker may start it again at once.
func TestTheControlSocketGoesLast(t *testing.T) {
	start, _ := restartable(t)
	for range 10 {
		b, err := start()
		if err != nil {
			t.Fatal(err)
		}
		found, err := control.Running(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := found[0].Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := found[0].AwaitEnd(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := start()
		if err != nil {
			t.Fatal(err)
		}
		end(t, again)
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestABrokerWithoutAPlaceOnTheListRuns(t *testing.T) {
	start, _ := restartable(t)
	list := filepath.Join(os.TempDir(), fmt.Sprint("hopwire-", os.Getuid()))
	if err := os.Symlink(t.TempDir(), list); err != nil {
		t.Fatal(err)
	}
	b, err := start()
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t.Context(), t, b)
	end(t, b)
}

// A disk that is slow in one phase of a stop takes nothing of the time of the others.
func TestEachPhaseOfAStopHasItsTime(t *testing.T) {
	for _, c := range []struct {
		phases []time.Duration
		want   bool
	}{
		{[]time.Duration{drainTime - 1, drainTime - 1, drainTime - 1, drainTime - 1}, true},
		{[]time.Duration{0, 0, drainTime + 1}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			next, done := make(chan struct{}, len(c.phases)), make(chan struct{})
			go func() {
				for _, took := range c.phases {
					time.Sleep(took)
					next <- struct{}{}
				}
				close(done)
			}()
			if got := inTime(next, done); got != c.want {
				t.Errorf("phases of %v: in time %v", c.phases, got)
			}
			<-done
		})
	}
}

func TestRefusedLoginsAreInTheLogAllWhenTheBrokerStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var log strings.Builder
	s, err := Load(file(t, `persistent="false"`, `<plugins><simpleAuthenticationPlugin><users>
		<authenticationUser username="shop" password="right"/></users></simpleAuthenticationPlugin>
		</plugins><transportConnectors><transportConnector name="a" uri="tcp://127.0.0.1:0"/>
		</transportConnectors>`), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := s.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(b.Connectors()[0].Address, "tcp://")
	for _, user := range []string{"admin", "shop", "stranger", "shop", "shop"} {
		if _, err := client.Dial(ctx, "tcp://"+address, client.WithLogin(user, "wrong")); err == nil {
			t.Errorf("%s is let in", user)
		}
	}
	b.Stop()
	if err := b.Wait(); err != nil {
		t.Error(err)
	}
	for user, n := range map[string]int{"admin": 1, "shop": 2, "stranger": 1} {
		if got := strings.Count(log.String(), "["+user+"]"); got != n {
			t.Errorf("%s is told of %d times, want %d, in\n%s", user, got, n, log.String())
		}
	}
	if !strings.Contains(log.String(), "sinceLastLine=1") {
		t.Error("the tries in between are not counted")
	}
}
