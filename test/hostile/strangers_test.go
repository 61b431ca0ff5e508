package hostile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/openwire"
	"hopwire/test/wait"
)

// clientHello is the beginning of what a TLS client says first.
const clientHello = "16030100c8010000c40303c8f2a3d5b1e0f49c3a6e7d8b5a4c3b2a19080706050403020100ff" +
	"eeddccbbaa20"

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// strange is one that knocks and what is to be logged of it at INFO, "" for nothing.
type strange struct {
	name  string
	says  []byte
	close bool
	line  string
}

func TestStrangersAreToldOnceAnHourAndNoLouderThanInfo(t *testing.T) {
	for _, s := range []strange{
		{"connect and close", nil, true, ""},
		{"half a hello", unhex(t, "00000012014163"), true, ""},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), false, "HTTP on the OpenWire port"},
		{"TLS", unhex(t, clientHello), false, "TLS on a plain port"},
		{"silence", nil, false, "no hello within 300ms"},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := newProcess(t, setup{uri: "?connectionTimeout=300"})
			mark := p.log.mark()
			for range 5 {
				c := knock(t, p.addr())
				if _, err := c.Write(s.says); err != nil {
					t.Fatal(err)
				}
				if s.close {
					c.Close()
					continue
				}
				if d := closes(t, c); d > 5*time.Second {
					t.Errorf("closed after %v", d)
				}
			}
			login(t, p.addr(), "friend")
			want := 0
			if s.line != "" {
				want = 1
				line := p.awaitLog(mark, s.line)
				if !strings.Contains(line, "level=INFO") || !strings.Contains(line, "127.0.0.1") {
					t.Errorf("the line is %s", line)
				}
			}
			if n := p.log.count(mark, ""); n != want {
				t.Errorf("%d lines, want %d:\n%s", n, want, p.log.since(mark))
			}
		})
	}
}

// lies are hellos that promise more than comes, by bug-log B022.
var lies = map[string]string{
	"2 GB of properties":  "00000012 01 41637469766 54d51 0000000c 01 7ffffff0",
	"2 147 483 632 pairs": "00000016 01 4163746976654d51 0000000c 01 00000004 7ffffff0",
	"another magic":       "0000000e 01 4163746976655858 0000000c 00",
	"version 0":           "0000000e 01 4163746976654d51 00000000 00",
	"version -1":          "0000000e 01 4163746976654d51 ffffffff 00",
	"a frame of 2 GB":     "7fffffff 01 4163746976654d51 0000000c 00",
	"a frame of 64 KiB":   "00010000 01 4163746976654d51 0000000c 00",
	"a negative frame":    "80000000 01 4163746976654d51 0000000c 00",
	"an empty frame":      "00000000 01 4163746976654d51 0000000c 00",
}

func TestLyingHellosAreRefusedWithAReason(t *testing.T) {
	for name, text := range lies {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, setup{uri: "?connectionTimeout=2000"})
			mark := p.log.mark()
			c := knock(t, p.addr())
			if _, err := c.Write(unhex(t, text)); err != nil {
				t.Fatal(err)
			}
			took := closes(t, c)
			line := p.awaitLog(mark, "no OpenWire peer")
			t.Logf("closed after %v: %s", took.Round(time.Millisecond), line)
			if !strings.Contains(line, "level=INFO") || p.log.count(mark, "") != 1 {
				t.Errorf("logged:\n%s", p.log.since(mark))
			}
		})
	}
}

func TestANewerVersionIsNegotiatedDown(t *testing.T) {
	p := newProcess(t, setup{})
	c := knock(t, p.addr())
	_, frame := helloFrame(t)
	binary.BigEndian.PutUint32(frame[4+1+8:], 99)
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	r := openwire.NewFrameReader(c)
	first, err := r.ReadBatch()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := openwire.DecodeHello(first[0])
	if err != nil || theirs.Version != openwire.MaxVersion {
		t.Fatalf("the broker's hello: %+v, %v", theirs, err)
	}
	if len(first) == 1 {
		if _, err = r.ReadBatch(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAThousandLiarsAtOnceCostLittle(t *testing.T) {
	const crowd, limit = 1000, 64 << 10
	p := newProcess(t, setup{uri: "?connectionTimeout=60000"})
	login(t, p.addr(), "warm")
	before := p.peakRSS()
	texts := [][]byte{}
	for _, name := range []string{"2 GB of properties", "2 147 483 632 pairs", "another magic",
		"a frame of 64 KiB"} {
		texts = append(texts, unhex(t, lies[name]))
	}
	// The last of these waits for the rest of its frame: such stay open, at the same time.
	full := append(unhex(t, "0000ffff 01 4163746976654d51 0000000c 01"), make([]byte, 65000)...)
	var all sync.WaitGroup
	conns := make(chan net.Conn, crowd)
	for i := range crowd {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", p.addr(), patience)
			if err != nil {
				t.Error(err)
				return
			}
			conns <- c
			text := full
			if n := i % 5; n < len(texts) {
				text = texts[n]
			}
			// The broker may close before all is written: that is its right.
			_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
			_, _ = c.Write(text)
		})
	}
	all.Wait()
	close(conns)
	login(t, p.addr(), "after")
	grown := p.peakRSS() - before
	t.Logf("%d liars: %d KiB more, %d bytes each", crowd, grown>>10, grown/crowd)
	if grown/crowd >= limit {
		t.Errorf("%d bytes each, want less than %d", grown/crowd, limit)
	}
	for c := range conns {
		c.Close()
	}
	wait.For(t, patience, "rid of the liars", func() (string, bool) {
		n := p.status().Connections
		return fmt.Sprint(n, " connections"), n <= 2
	})
}

func TestBeforeLoginFramesAreSmallAndAfterwardsNot(t *testing.T) {
	p := newProcess(t, setup{})
	k := greet(t, p.addr())
	before := p.peakRSS()
	big := make([]byte, 32<<20)
	binary.BigEndian.PutUint32(big, uint32(len(big)-4))
	big[4] = openwire.TypeConnectionInfo
	_ = k.c.SetWriteDeadline(time.Now().Add(patience))
	_, _ = k.c.Write(big)
	closes(t, k.c)
	if grown := p.peakRSS() - before; grown > 4<<20 {
		t.Errorf("a frame of 32 MiB before the login took %d KiB", grown>>10)
	}
	k = login(t, p.addr(), "in")
	m := k.message(queueName("Q"), 1, 32<<20)
	m.CommandID, m.ResponseRequired = 9, true
	k.send(m)
	k.answer(9)
}

func TestGarbageAfterTheHelloEndsOnlyItsConnection(t *testing.T) {
	p := newProcess(t, setup{})
	friend := login(t, p.addr(), "friend")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		k := greet(t, p.addr())
		if i%2 == 0 {
			k.c.Close()
			k = login(t, p.addr(), fmt.Sprint("bad", i))
		}
		b := make([]byte, 4+random.IntN(2000))
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		if i%3 > 0 { // a frame of the right length
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		}
		_, _ = k.c.Write(b)
		if i%5 == 0 {
			closeWrite(k.c)
		}
		k.c.Close()
	}
	friend.alive()
	if n := p.log.count(0, "panic"); n > 0 {
		t.Error("it panicked")
	}
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

// alive asks the broker for an answer on this connection.
func (k *raw) alive() {
	k.t.Helper()
	m := k.message(queueName("alive."+k.id), time.Now().UnixNano(), 10)
	m.CommandID, m.ResponseRequired = 77, true
	k.send(m)
	k.answer(77)
}

func TestUnknownCommandsAreAnsweredOrEndTheConnection(t *testing.T) {
	p := newProcess(t, setup{})
	friend := login(t, p.addr(), "friend")
	for number := range 256 {
		k := greet(t, p.addr())
		k.write([]byte{0, 0, 0, 6, byte(number), 0, 0, 0, 1, 1})
		closeWrite(k.c)
		_, _ = io.Copy(io.Discard, k.c)
		k.c.Close()
	}
	friend.alive()
}

func TestFramesCutAnywhereHarmNobody(t *testing.T) {
	p := newProcess(t, setup{})
	friend := login(t, p.addr(), "friend")
	k := login(t, p.addr(), "cutter")
	whole := k.frames(k.message(queueName("CUT"), 1, 300),
		&openwire.ConsumerInfo{BaseCommand: command(5, true), ConsumerID: k.consumer(1),
			Destination: queueName("CUT"), PrefetchSize: 10, Selector: "a = 'b'"},
		&openwire.TransactionInfo{BaseCommand: command(6, true),
			ConnectionID: &openwire.ConnectionId{Value: "cutter"},
			TransactionID: &openwire.LocalTransactionId{Value: 1,
				ConnectionID: &openwire.ConnectionId{Value: "cutter"}}})
	k.c.Close()
	for cut := 1; cut < len(whole); cut += 7 {
		k := login(t, p.addr(), fmt.Sprint("cut", cut))
		k.write(whole[:cut])
		k.c.Close()
	}
	// One byte at a time is slow, not wrong.
	slow := login(t, p.addr(), "slow")
	m := slow.message(queueName("SLOW"), 1, 100)
	m.CommandID, m.ResponseRequired = 9, true
	for _, b := range slow.frames(m) {
		slow.write([]byte{b})
	}
	slow.answer(9)
	friend.alive()
	wait.For(t, patience, "rid of the connections that were cut", func() (string, bool) {
		s := p.status()
		return fmt.Sprint(s.Connections), s.Connections <= 2
	})
	if bytes.Contains([]byte(p.log.since(0)), []byte("panic")) {
		t.Error("it panicked")
	}
}
