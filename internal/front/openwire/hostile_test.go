package openwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"hopwire/internal/broker"
	"hopwire/internal/security"
	"hopwire/openwire"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// knock connects, says something and waits for the end.
func (h *house) knock(say []byte) {
	h.t.Helper()
	c, err := net.Dial("tcp", h.listener.Addr())
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(say); err != nil {
		h.t.Fatal(err)
	}
	// A reset is an end, too: the broker closes without reading all.
	_, err = io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		h.t.Fatalf("%.20q: the connection stays open", say)
	}
}

func TestStrangersAreNamedOncePerSourceAndHour(t *testing.T) {
	for _, c := range []struct{ say, want string }{
		{"GET / HTTP/1.1\r\n\r\n", "HTTP on the OpenWire port"},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS on a plain port"},
		{"CONNECT\naccept-version:1.2\n\n\x00", "STOMP on the OpenWire port"},
	} {
		h := newHouse(t, "", nil)
		for range 3 {
			h.knock([]byte(c.say))
		}
		h.until("the stranger is named", func() bool {
			return strings.Contains(h.log.String(), c.want)
		})
		if n := strings.Count(h.log.String(), "\n"); n != 1 {
			t.Errorf("%q: %d lines: %s", c.say, n, h.log.String())
		}
	}
}

// A health check by HTTP does not hide a client that speaks TLS from the same machine.
func TestASourceIsNamedOnceForEachReason(t *testing.T) {
	h := newHouse(t, "", nil)
	for range 3 {
		h.knock([]byte("GET / HTTP/1.1\r\n\r\n"))
		h.knock([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
	}
	h.until("both are named", func() bool {
		return strings.Contains(h.log.String(), "HTTP on the") &&
			strings.Contains(h.log.String(), "TLS on a plain port")
	})
	var log bytes.Buffer
	s := strangers{log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 100 {
		s.report("a stranger", "tcp://10.0.0.1:5", "c", fmt.Errorf("reason %d", i))
	}
	if n := strings.Count(log.String(), "\n"); n != reasonsMost {
		t.Errorf("100 reasons of one source are %d lines", n)
	}
	if n := strings.Count(h.log.String(), "\n"); n != 2 {
		t.Errorf("two reasons are %d lines: %s", n, h.log.String())
	}
}

func TestWhoConnectsAndLeavesIsNotInTheLog(t *testing.T) {
	h := newHouse(t, "", nil)
	for range 3 {
		c, err := net.Dial("tcp", h.listener.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	h.dial(clientHello(t, nil)).c.Close()
	h.until("all have left", func() bool { return h.listener.Open() == 0 })
	if got := h.log.String(); got != "" {
		t.Errorf("the log: %s", got)
	}
}

// lies are hellos that claim more than they have, and one with another magic.
var lies = []string{
	"00 00 00 12 01 41 63 74 69 76 65 4D 51 00 00 00 0C 01 7F FF FF F0",
	"00 00 00 16 01 41 63 74 69 76 65 4D 51 00 00 00 0C 01 00 00 00 04 7F FF FF F0",
	"00 00 00 0e 01 41 63 74 69 76 65 58 58 00 00 00 0C 00",
	"7f ff ff ff 01 41 63 74 69 76 65 4D 51",
}

func TestLyingHellosAreRefused(t *testing.T) {
	for _, lie := range lies {
		h := newHouse(t, "", nil)
		h.knock(unhex(t, lie))
	}
}

// TestAThousandLyingHellosAreHarmless holds a connection that has not logged in to 64 KiB.
func TestAThousandLyingHellosAreHarmless(t *testing.T) {
	const n, most = 1000, 64 << 10
	h := newHouse(t, "", nil)
	before := heap()
	// Each claims a hello of 64 KiB, the largest that is read, and sends the half of it.
	half := append([]byte{0, 1, 0, 0, 1}, make([]byte, 30<<10)...)
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", h.listener.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(half); err != nil {
			t.Fatal(err)
		}
		conns[i] = c
	}
	h.until("all are there", func() bool { return h.listener.Open() == n })
	if each := (heap() - before) / n; each > most {
		t.Errorf("each costs %d bytes, the limit is %d", each, most)
	}
	for _, c := range conns {
		if _, err := c.Write(make([]byte, 35<<10)); err != nil {
			break // the rest may be refused while it is written
		}
	}
	h.until("all are gone", func() bool { return h.listener.Open() == 0 })
}

// heap gives the bytes in use, stacks included.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func TestAThousandIdleClientsCostLittle(t *testing.T) {
	const n, most = 1000, 64 << 10
	h := newHouse(t, "", nil)
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		c := h.dial(clientHello(t, nil))
		await[*openwire.BrokerInfo](c)
		clients[i] = c
	}
	// Both ends are in this process.
	if each := (heap() - before) / n; each > most {
		t.Errorf("each costs %d bytes, the limit is %d", each, most)
	}
	clients[n-1].send(&openwire.ConnectionInfo{
		BaseCommand:  base(1, true),
		ConnectionID: &openwire.ConnectionId{Value: "last"}, ClientID: "last",
	})
	await[*openwire.Response](clients[n-1])
}

func TestMaximumConnectionsAreHeld(t *testing.T) {
	h := newHouse(t, "?maximumConnections=2", nil)
	a := h.dial(clientHello(t, nil))
	h.dial(clientHello(t, nil))
	h.knock(nil) // the third is closed
	if !strings.Contains(h.log.String(), "maximumConnections") {
		t.Errorf("the log: %s", h.log.String())
	}
	a.c.Close()
	h.until("the first has left", func() bool { return h.listener.Open() == 1 })
	await[*openwire.BrokerInfo](h.dial(clientHello(t, nil)))
}

func TestAWrongPasswordIsAnsweredInActiveMQsWords(t *testing.T) {
	auth, err := security.NewSimple(security.SimpleOptions{
		Users: []security.User{{Name: "system", Password: "manager"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, "", func(o *broker.Options) { o.Authenticator = auth })
	login := func(password string) openwire.DataStructure {
		c := h.dial(clientHello(t, nil))
		await[*openwire.BrokerInfo](c)
		c.send(&openwire.ConnectionInfo{
			BaseCommand: base(1, true), ClientID: password,
			ConnectionID: &openwire.ConnectionId{Value: password}, UserName: "system",
			Password: password,
		})
		return c.next()
	}
	x, ok := login("wrong").(*openwire.ExceptionResponse)
	if !ok || x.Exception.Class != "java.lang.SecurityException" ||
		x.Exception.Message != "User name [system] or password is invalid." {
		t.Errorf("the answer is %+v", x)
	}
	if x, ok := login("manager").(*openwire.Response); !ok {
		t.Errorf("the right one: %+v", x)
	}
}

func TestANotificationForSlavesIsRefused(t *testing.T) {
	h := newHouse(t, "", nil)
	c := h.dial(clientHello(t, nil))
	c.open("c")
	c.send(&openwire.MessageDispatchNotification{BaseCommand: base(7, true)},
		&openwire.FlushCommand{BaseCommand: base(8, true)})
	if x := await[*openwire.ExceptionResponse](c); x.CorrelationID != 7 {
		t.Errorf("%+v", x)
	}
	if x := await[*openwire.Response](c); x.CorrelationID != 8 {
		t.Errorf("%+v", x)
	}
}

func TestHelloThenSilentIsClosedWithALine(t *testing.T) {
	h := newHouse(t, "?connectionTimeout=300", nil)
	c := h.dial(clientHello(t, func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 }))
	await[*openwire.BrokerInfo](c)
	if x := c.next(); x != nil {
		t.Errorf("came %+v, want the end", x)
	}
	h.until("it is in the log", func() bool {
		return strings.Contains(h.log.String(), "no login within 300ms")
	})
}

func TestHelloThenAFloodThatNeverReadsIsClosedWithALine(t *testing.T) {
	h := newHouse(t, "", nil)
	for _, x := range []openwire.DataStructure{
		&openwire.KeepAliveInfo{BaseCommand: base(1, true)},
		&openwire.SessionInfo{
			BaseCommand: base(1, true),
			SessionID:   &openwire.SessionId{ConnectionID: "c", Value: 1},
		},
	} {
		c := h.dial(clientHello(t, nil))
		one, err := c.e.Append(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		flood := bytes.Repeat(one, 1000)
		before := heap()
		for err == nil { // until the broker closes; far more than any buffer of the system
			_, err = c.c.Write(flood)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%T: the connection stays open", x)
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%T: the broker grew by %d bytes", x, grown)
		}
	}
	h.until("it is in the log", func() bool {
		return strings.Contains(h.log.String(), "which does not read")
	})
}
