package hostile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/internal/manage"
	"hopwire/openwire"
	"hopwire/test/bench/load"
	"hopwire/test/wait"
)

// Bounds of a broker with 64 MiB for messages and a burst that is three times as large.
const (
	burst    = 200_000
	burstRSS = 300 << 20
)

// spoolFolder is where the broker's spool is while it has something.
func (p *process) spoolFolder() string {
	return filepath.Join(p.data, p.name, "tmp_storage", p.name+".hopwire")
}

func (p *process) wantSpool(there bool, when string) {
	p.t.Helper()
	if _, err := os.Stat(p.spoolFolder()); (err == nil) != there {
		p.t.Errorf("%s: the spool's folder is there: %v (%v)", when, err == nil, err)
	}
}

// A burst of messages that are not persistent stops no producer, takes little memory, and comes in
// order, each once. What is left of a killed broker's spool is gone at the next start.
func TestABurstGoesToTheSpoolAndComesBackOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	p := newProcess(t, setup{body: memory64})
	o := load.Options{ProducerAddr: p.addr(), Dest: "queue://burst", Size: 1024}
	p.wantSpool(false, "before the first message")
	used := load.CPU(p.cmd.Process.Pid)
	took, err := load.Fill(ctx, o, burst)
	if err != nil {
		t.Fatal(err)
	}
	st := p.status()
	filled := load.CPU(p.cmd.Process.Pid) - used
	t.Logf("%d of 1 KiB came in %v: %.0f msg/s; %d are in the spool, %d MiB there, %d MiB in memory;"+
		" %d MiB resident at most", burst, took.Round(time.Millisecond),
		float64(burst)/took.Seconds(), st.Spooled, st.TempBytes>>20, st.MemoryBytes>>20,
		p.peakRSS()>>20)
	if q := queue(st, "burst"); q.Size != burst || q.Parked != 0 || st.Spooled < burst/2 {
		t.Errorf("of %d messages %d are there, %d wait, %d are spooled", burst, q.Size, q.Parked,
			st.Spooled)
	}
	p.wantSpool(true, "with messages in it")
	used = load.CPU(p.cmd.Process.Pid)
	drained := p.drainInOrder("burst", burst)
	t.Logf("CPU of the broker for a message: %v in, %v out", filled/burst,
		(load.CPU(p.cmd.Process.Pid)-used)/burst)
	t.Logf("consumed in %v: %.0f msg/s; %d MiB resident at most", drained.Round(time.Millisecond),
		burst/drained.Seconds(), p.peakRSS()>>20)
	if peak := p.peakRSS(); peak > burstRSS {
		t.Errorf("it took %d MiB", peak>>20)
	}
	wait.For(t, patience, "an empty spool", func() (string, bool) {
		st := p.status()
		return fmt.Sprintf("%d are spooled, %d bytes in memory", st.Spooled,
			st.MemoryBytes), st.Spooled == 0 && st.MemoryBytes < 10_000 // of drain's last one
	})
	if _, err := load.Fill(ctx, o, burst); err != nil {
		t.Fatal(err)
	}
	p.kill()
	p.wantSpool(true, "after kill -9")
	p.start()
	p.wantSpool(false, "after the next start")
	if _, err := load.Fill(ctx, o, burst); err != nil {
		t.Fatal(err)
	}
	p.wantSpool(true, "filled again")
	p.stop()
	p.wantSpool(false, "after a clean stop")
}

// drainInOrder takes so many messages of one producer, and fails when one comes again, or late.
func (p *process) drainInOrder(name string, count int64) time.Duration {
	p.t.Helper()
	began := time.Now()
	k := login(p.t, p.addr(), "drain")
	k.subscribe(1, queueName(name), 1000)
	var first *openwire.MessageId
	for n := int64(1); n <= count; n++ {
		id := await[*openwire.MessageDispatch](k).Message.MessageID
		if id.ProducerSequenceID != n {
			p.t.Fatalf("message %d came as number %d", id.ProducerSequenceID, n)
		}
		if first == nil {
			first = id
		}
		if n%100 == 0 || n == count {
			k.send(&openwire.MessageAck{ConsumerID: k.consumer(1), Destination: queueName(name),
				AckType: openwire.AckStandard, MessageCount: int32(n - first.ProducerSequenceID + 1),
				FirstMessageID: first, LastMessageID: id})
			first = nil
		}
	}
	k.alive()
	return time.Since(began)
}

// On a disk that store and spool share a full spool holds those whose messages are not persistent,
// and nobody else. Consumers make room; all come in order, each once.
func TestAFullSpoolIsNoFullStore(t *testing.T) {
	const count = 60_000 // of 8 KiB, half compressible
	dir := smallDisk(t, 256)
	p := newProcess(t, setup{data: dir, body: memory64})
	mark := p.log.mark()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sender := dial(ctx, t, p.addr())
	defer sender.Close(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- sendMuch(ctx, sender, count) }()
	line := p.awaitLog(mark, "TEMP_FULL")
	var st *manage.Status
	wait.For(t, patience, "sends that wait for a full spool", func() (string, bool) {
		st = p.status() // at first it may find room once more
		n := queue(st, "FULL").Parked
		return fmt.Sprintf("full: %t, %d wait", st.TempFull, n), st.TempFull && n > 0
	})
	t.Logf("%d MiB are left, %d in the spool, of %d MiB: %s", room(t, dir)>>20, st.Spooled,
		st.TempBytes>>20, line)
	if st.StoreFull {
		t.Error("the store is full")
	}
	other := dial(ctx, t, p.addr())
	defer other.Close(context.Background())
	if err := sendOne(ctx, other, "PERSISTENT"); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for len(seen) < count {
		take(t, p.addr(), 5000, seen)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if q := queue(p.status(), "FULL"); q.Size != 0 || q.Parked != 0 {
		t.Errorf("%d are left, %d wait", q.Size, q.Parked)
	}
}

// sendMuch sends messages that are not persistent.
func sendMuch(ctx context.Context, conn *client.Conn, count int) error {
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, client.Queue("FULL"), client.NonPersistent())
	if err != nil {
		return err
	}
	random := make([]byte, 4<<10)
	for i := range count {
		_, _ = rand.Read(random)
		text := client.NewText(fmt.Sprintf("%08d", i) + hex.EncodeToString(random))
		if err := p.Send(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// sendOne sends a persistent message and waits for its confirmation.
func sendOne(ctx context.Context, conn *client.Conn, queue string) error {
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, client.Queue(queue))
	if err != nil {
		return err
	}
	return p.Send(ctx, client.NewText("stored"))
}
