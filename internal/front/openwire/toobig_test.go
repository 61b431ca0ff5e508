package openwire

import (
	"fmt"
	"strings"
	"testing"

	"hopwire/internal/broker"
	"hopwire/openwire"
)

const limit = "?wireFormat.maxFrameSize=20000"

func send(id int32, answer bool, m *openwire.Message) *openwire.Message {
	m.BaseCommand = base(id, answer)
	return m
}

func TestASendAboveTheLimitIsAnsweredWithBothSizesAndTheClientGoesOn(t *testing.T) {
	h := newHouse(t, limit, nil)
	c := h.dial(clientHello(t, nil))
	c.open("c")
	big := send(7, true, bytesMessage("c", "q", 1, make([]byte, 500_000)))
	frame, err := openwire.NewEncoder(openwire.Format{Version: 12}).Append(nil, big)
	if err != nil {
		t.Fatal(err)
	}
	c.write(frame) // past the client's own check
	c.send(send(8, true, bytesMessage("c", "q", 2, make([]byte, 10_000))))
	x := await[*openwire.ExceptionResponse](c)
	if x.CorrelationID != 7 || !strings.Contains(x.Exception.Message, "20000") ||
		!strings.Contains(x.Exception.Message, fmt.Sprint(size(frame))) ||
		x.Exception.Class != "javax.jms.ResourceAllocationException" {
		t.Errorf("%+v %+v, the frame has %d", x, x.Exception, size(frame))
	}
	if x := await[*openwire.Response](c); x.CorrelationID != 8 {
		t.Errorf("the next send: %+v", x)
	}
	h.ask(func() {
		if n := h.queueSize("q"); n != 1 {
			t.Errorf("%d messages are in the queue, want the small one", n)
		}
	})
}

func TestAnAsyncSendAboveTheLimitBreaksItsTransaction(t *testing.T) {
	h := newHouse(t, limit, nil)
	c := h.dial(clientHello(t, nil))
	c.open("c")
	tx := &openwire.LocalTransactionId{Value: 1, ConnectionID: &openwire.ConnectionId{Value: "c"}}
	do := func(id int32, what byte, answer bool) *openwire.TransactionInfo {
		return &openwire.TransactionInfo{
			BaseCommand: base(id, answer), TransactionID: tx,
			ConnectionID: tx.ConnectionID, Type: what,
		}
	}
	small := bytesMessage("c", "q", 1, []byte("x"))
	big := bytesMessage("c", "q", 2, make([]byte, 500_000))
	small.TransactionID, big.TransactionID = tx, tx
	c.send(do(5, openwire.TransactionBegin, false), send(6, false, small))
	frame, err := openwire.NewEncoder(openwire.Format{Version: 12}).Append(nil, send(7, false, big))
	if err != nil {
		t.Fatal(err)
	}
	c.write(frame)
	c.send(do(8, openwire.TransactionCommitOnePhase, true))
	if x := await[*openwire.ConnectionError](c); !strings.Contains(x.Exception.Message, "20000") {
		t.Errorf("%+v", x.Exception)
	}
	x := await[*openwire.ExceptionResponse](c)
	if x.CorrelationID != 8 || x.Exception.Class != "javax.jms.TransactionRolledBackException" {
		t.Errorf("%+v %+v", x, x.Exception)
	}
	h.ask(func() {
		if n := h.queueSize("q"); n != 0 {
			t.Errorf("%d messages of a broken transaction are in the queue", n)
		}
	})
}

func TestWithACacheTheConnectionClosesAfterTheAnswer(t *testing.T) {
	h := newHouse(t, limit+"&wireFormat.cacheEnabled=true&wireFormat.tightEncodingEnabled=true", nil)
	c := h.dial(clientHello(t, nil))
	if !c.format.Tight || !c.format.Cache {
		t.Fatalf("negotiated %+v", c.format)
	}
	c.open("c")
	f := c.format
	f.MaxFrameSize = 0
	// A fresh encoder: what it puts in its cache overwrites what was there.
	frame, err := openwire.NewEncoder(f).Append(nil,
		send(7, true, bytesMessage("c", "q", 1, make([]byte, 500_000))))
	if err != nil {
		t.Fatal(err)
	}
	c.write(frame)
	if x := await[*openwire.ExceptionResponse](c); x.CorrelationID != 7 {
		t.Errorf("%+v", x)
	}
	if x := c.next(); x != nil {
		t.Errorf("then came %+v, want the end", x)
	}
}

func TestADeliveryAboveTheClientsLimitIsDeadLetteredAndTheRestGoesOn(t *testing.T) {
	h := newHouse(t, "", func(o *broker.Options) { o.Advisories = false })
	p := h.dial(clientHello(t, nil))
	p.open("p")
	p.send(send(3, true, bytesMessage("p", "q", 1, make([]byte, 50_000))),
		send(4, true, bytesMessage("p", "q", 2, []byte("small"))))
	await[*openwire.Response](p)
	c := h.dial(clientHello(t, func(o *openwire.HelloOptions) { o.MaxFrameSize = 20_000 }))
	c.open("c")
	c.send(&openwire.ConsumerInfo{
		BaseCommand: base(5, true), PrefetchSize: 10,
		ConsumerID:  &openwire.ConsumerId{ConnectionID: "c", SessionID: 1, Value: 1},
		Destination: &openwire.Destination{Type: openwire.TypeQueue, PhysicalName: "q"},
	})
	if d := await[*openwire.MessageDispatch](c); string(d.Message.Content) != "small" {
		t.Errorf("delivered: %d bytes", len(d.Message.Content))
	}
	h.until("the big one is dead-lettered", func() bool {
		return h.queueSize("ActiveMQ.DLQ") == 1 && h.queueSize("q") == 1
	})
	if !strings.Contains(h.log.String(), "dead-lettered") {
		t.Errorf("the log: %s", h.log.String())
	}
}
