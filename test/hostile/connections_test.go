package hostile

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire"
	"hopwire/internal/manage"
	"hopwire/openwire"
	"hopwire/test/wait"
)

func TestAThousandIdleConnectionsCostLittle(t *testing.T) {
	const crowd = 1000
	p := newProcess(t, setup{})
	for i := range 20 {
		login(t, p.addr(), fmt.Sprint("warm", i)).c.Close()
	}
	before, files := p.rss(), p.files()
	for i := range crowd {
		k := login(t, p.addr(), fmt.Sprint("idle", i))
		k.subscribe(1, queueName("Q"), 100)
	}
	each := (p.rss() - before) / crowd
	t.Logf("%d idle connections with a session, a producer and a consumer: %d KiB each, %d files",
		crowd, each>>10, p.files()-files)
	if each > 100<<10 {
		t.Errorf("%d bytes each", each)
	}
	last := login(t, p.addr(), "last")
	last.alive()
}

// A busy broker's garbage may lie for a while; an idle one takes little all the same.
func TestAnIdleBrokerIsSmallAndMayHaveGarbage(t *testing.T) {
	p := newProcess(t, setup{shell: "export GODEBUG=gctrace=1; unset GOGC GOMEMLIMIT"})
	goal := regexp.MustCompile(`(\d+) MB goal`)
	wait.For(t, patience, "a collection with a goal of 128 MB", func() (string, bool) {
		said := p.log.since(0)
		for _, m := range goal.FindAllStringSubmatch(said, -1) {
			if n, _ := strconv.Atoi(m[1]); n >= 128 {
				return "", true
			}
		}
		return said, false
	})
	if rss := p.rss(); rss > 60<<20 {
		t.Errorf("%d bytes are resident", rss)
	}
}

// inside is a broker that runs in the test, for those that count goroutines.
func inside(t testing.TB, s setup, log *logged) *hopwire.Broker {
	t.Helper()
	s.unborn = true
	p := newProcess(t, s)
	loaded, err := hopwire.Load(p.file(), hopwire.Options{NoWait: true,
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	b, err := loaded.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Stop()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func address(b *hopwire.Broker) string {
	_, addr, _ := strings.Cut(b.Connectors()[0].Address, "://")
	return addr
}

func statusOf(t testing.TB, b *hopwire.Broker) *manage.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := b.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ownFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// kept is the memory in use after a collection.
func kept() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestConnectionsThatCameAndWentLeaveNothing(t *testing.T) {
	b := inside(t, setup{attrs: `persistent="false"`}, &logged{})
	clients := 0
	round := func(n int) {
		for i := range n {
			clients++
			c, err := net.Dial("tcp", address(b))
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			switch i % 4 {
			case 0: // says nothing
			case 1:
				greetOver(t, c)
			case 2, 3:
				k := greetOver(t, c)
				k.id = fmt.Sprint("c", clients)
				k.send(&openwire.ConnectionInfo{ConnectionID: &openwire.ConnectionId{Value: k.id},
					ClientID: k.id}, &openwire.SessionInfo{SessionID: &openwire.SessionId{
					ConnectionID: k.id, Value: 1}}, &openwire.ProducerInfo{ProducerID: k.producer()})
				k.subscribe(1, queueName("Q"), 10)
				if i%4 == 2 {
					break
				}
				m := k.message(queueName("Q"), 1, 100)
				m.CommandID, m.ResponseRequired = 9, true
				k.send(m)
				k.answer(9)
				ack := await[*openwire.MessageDispatch](k)
				k.send(&openwire.MessageAck{BaseCommand: command(10, true),
					ConsumerID: k.consumer(1), Destination: queueName("Q"),
					AckType: openwire.AckStandard, MessageCount: 1,
					FirstMessageID: ack.Message.MessageID, LastMessageID: ack.Message.MessageID})
				k.answer(10)
			}
			c.Close()
		}
		wait.For(t, patience, "without connections", func() (string, bool) {
			s := statusOf(t, b)
			return fmt.Sprint(s.Connections), s.Connections == 0
		})
	}
	round(200)
	settle := func() (routines, files int, memory int64) {
		wait.For(t, patience, "quiet", func() (string, bool) {
			n := runtime.NumGoroutine()
			routines, files, memory = n, ownFiles(), kept()
			return fmt.Sprint(n, " goroutines"), n < 40
		})
		return routines, files, memory
	}
	routines, files, memory := settle()
	round(2000)
	var r, f int
	var m int64
	wait.For(t, patience, "back where it was", func() (string, bool) {
		r, f, m = settle()
		return fmt.Sprintf("%d goroutines (%d before), %d files (%d before), %d KiB (%d before)", r,
			routines, f, files, m>>10, memory>>10), r <= routines && f <= files && m < memory+(2<<20)
	})
	t.Logf("after 2000 connections: %d goroutines (%d before), %d files (%d before), %+d KiB", r,
		routines, f, files, (m-memory)>>10)
}

func TestClientsThatVanishInAnyPhaseLoseNothing(t *testing.T) {
	const rounds, backlog = 60, 200
	p := newProcess(t, setup{})
	k := login(t, p.addr(), "filler")
	for i := range int64(backlog) {
		m := k.message(queueName("VANISH"), i+1, 200)
		m.Persistent, m.CommandID, m.ResponseRequired = true, int32(1000+i), true
		k.send(m)
		k.answer(int32(1000 + i))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range rounds {
		k := login(t, p.addr(), fmt.Sprint("v", i))
		tx := &openwire.LocalTransactionId{Value: 1,
			ConnectionID: &openwire.ConnectionId{Value: k.id}}
		begin := &openwire.TransactionInfo{ConnectionID: tx.ConnectionID, TransactionID: tx}
		switch i % 4 {
		case 0: // in the middle of a send
			b := k.frames(k.message(queueName("VANISH"), 1, 5000))
			k.write(b[:1+random.IntN(len(b)-1)])
		case 1: // in a transaction with sends
			k.send(begin)
			m := k.message(queueName("VANISH"), 1, 100)
			m.TransactionID, m.CommandID, m.ResponseRequired = tx, 9, true
			k.send(m)
			k.answer(9)
		case 2: // with deliveries that were not acknowledged
			k.subscribe(1, queueName("VANISH"), 50)
			await[*openwire.MessageDispatch](k)
		case 3: // in a transaction with acknowledgements
			k.subscribe(1, queueName("VANISH"), 50)
			d := await[*openwire.MessageDispatch](k)
			k.send(begin, &openwire.MessageAck{BaseCommand: command(9, true),
				ConsumerID: k.consumer(1), Destination: queueName("VANISH"), TransactionID: tx,
				AckType: openwire.AckStandard, MessageCount: 1,
				FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID})
			k.answer(9)
		}
		if tcp, ok := k.c.(*net.TCPConn); ok && i%2 == 0 {
			_ = tcp.SetLinger(0) // a reset
		}
		k.c.Close()
	}
	wait.For(t, patience, "as it was filled", func() (string, bool) {
		s := p.status()
		q := queue(s, "VANISH")
		return fmt.Sprintf("%d connections, %+v", s.Connections, q), s.Connections == 1 &&
			q.Size == backlog && q.InFlight == 0 && q.Consumers == 0
	})
	if q := queue(p.status(), "ActiveMQ.DLQ"); q.Size > 0 {
		t.Errorf("%d messages are dead", q.Size)
	}
}

func TestTheLimitOfOpenFilesIsToldAndSurvived(t *testing.T) {
	p := newProcess(t, setup{shell: "ulimit -n 80"})
	friend := login(t, p.addr(), "friend")
	mark := p.log.mark()
	var crowd []net.Conn
	for range 120 {
		crowd = append(crowd, knock(t, p.addr()))
	}
	line := p.awaitLog(mark, "connections are refused: the rest of the open files is kept")
	t.Log(line)
	if !strings.Contains(line, "limit=80") || !strings.Contains(line, "kept=40") {
		t.Errorf("the line is %s", line)
	}
	friend.alive()
	// The store goes on, too.
	for i := range int64(2000) {
		m := friend.message(queueName("STORED"), i+1, 4000)
		m.Persistent = true
		friend.send(m)
	}
	friend.alive()
	for _, c := range crowd {
		c.Close()
	}
	wait.For(t, patience, "files that are free", func() (string, bool) {
		n := p.files()
		return fmt.Sprint(n, " are open"), n < 40
	})
	login(t, p.addr(), "after").alive()
	if n := p.log.count(mark, "level=ERROR"); n != 0 {
		t.Errorf("%d errors in the log:\n%s", n, p.log.since(mark))
	}
	p.stop()
}
