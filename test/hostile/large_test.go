package hostile

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	"hopwire/openwire"
	"hopwire/test/wait"
)

// memory64 is 64 MiB for messages, of which 16 for frames that are read.
const memory64 = `<systemUsage><systemUsage><memoryUsage><memoryUsage limit="64 mb"/></memoryUsage>
</systemUsage></systemUsage>`

// TestLargeMessagesTakeAFewTimesTheirSizeAndGiveItBack sends persistent messages of 48 MiB to a
// consumer that acknowledges each.
func TestLargeMessagesTakeAFewTimesTheirSizeAndGiveItBack(t *testing.T) {
	const size, times = 48 << 20, 2
	p := newProcess(t, setup{})
	before := p.rss()
	k := login(t, p.addr(), "both")
	k.subscribe(1, queueName("L"), 1)
	for i := range int64(times) {
		m := k.message(queueName("L"), i+1, size)
		m.Persistent, m.CommandID, m.ResponseRequired = true, int32(10+i), true
		go k.send(m)
		d := await[*openwire.MessageDispatch](k)
		if len(d.Message.Content) != size {
			t.Fatalf("%d bytes came", len(d.Message.Content))
		}
		k.send(&openwire.MessageAck{ConsumerID: k.consumer(1), Destination: queueName("L"),
			AckType: openwire.AckStandard, MessageCount: 1,
			FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID})
	}
	k.alive()
	peak := p.peakRSS() - before
	t.Logf("%d messages of %d MiB: %d MiB at the peak", times, size>>20, peak>>20)
	if peak > 10*size {
		t.Errorf("the peak is %d times the size of a message", peak/size)
	}
	wait.For(t, patience, "small again", func() (string, bool) {
		n := p.rss() - before
		return fmt.Sprint(n>>20, " MiB"), n < 4*size
	})
}

// TestManyLargeFramesAtOnceAreReadInTurn has 30 clients send 3/4 of a frame of 24 MiB each, 540 MiB
// together, and one that sends nothing but the length.
func TestManyLargeFramesAtOnceAreReadInTurn(t *testing.T) {
	const size, crowd, most = 24 << 20, 30, 40 << 20
	p := newProcess(t, setup{body: memory64})
	before := p.rss()
	liar := login(t, p.addr(), "liar")
	liar.write(binary.BigEndian.AppendUint32(nil, 90<<20))
	var all []*raw
	for i := range crowd {
		k := login(t, p.addr(), fmt.Sprint("c", i))
		all = append(all, k)
		frame := k.frames(k.message(queueName("M"), 1, size))
		go func() { _, _ = k.c.Write(frame[:size/4*3]) }()
	}
	wait.For(t, patience, "with many that wait", func() (string, bool) {
		s := p.status()
		return fmt.Sprintf("%d wait, %d MiB", s.FramesWaiting, s.FrameBytes>>20), s.FramesWaiting > 20
	})
	s := p.status()
	peak := p.peakRSS() - before
	t.Logf("%d of %d wait, %d of %d MiB are taken; %d MiB at the peak", s.FramesWaiting, crowd,
		s.FrameBytes>>20, s.FrameLimitBytes>>20, peak>>20)
	if s.FrameBytes > most || s.FrameLimitBytes != 16<<20 || peak > 4*most {
		t.Errorf("frames take %d MiB, the process %d", s.FrameBytes>>20, peak>>20)
	}
	login(t, p.addr(), "small").alive()
	for _, k := range all {
		if tcp, ok := k.c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		k.c.Close()
	}
	liar.c.Close()
	began := time.Now()
	wait.For(t, 2*patience, "rid of them", func() (string, bool) {
		s := p.status()
		return fmt.Sprintf("%+v", s), s.FrameBytes == 0 && s.FramesWaiting == 0
	})
	t.Logf("given back after %v", time.Since(began).Round(time.Millisecond))
}
