package openwire

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hopwire/openwire"
)

// captured is one frame of a recorded conversation between a client of ActiveMQ and its broker.
type captured struct {
	Conn int
	Dir  string
	Type string
	Hex  string
}

func readCapture(t *testing.T, name string) (all []captured) {
	t.Helper()
	f, err := os.Open("../../../openwire/testdata/captures/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c captured
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Conn == 0 {
			all = append(all, c)
		}
	}
	return all
}

func (c captured) frame(t *testing.T) []byte {
	b, err := hex.DecodeString(c.Hex)
	if err != nil || len(b) < 5 {
		t.Fatalf("a bad frame: %v", err)
	}
	return b[4:]
}

// gist is what of a command from the broker must be as it was recorded.
func gist(x openwire.DataStructure) string {
	switch x := x.(type) {
	case *openwire.Response:
		return fmt.Sprintf("Response %d", x.CorrelationID)
	case *openwire.ExceptionResponse:
		return fmt.Sprintf("ExceptionResponse %d %s", x.CorrelationID, x.Exception.Class)
	case *openwire.IntegerResponse:
		return fmt.Sprintf("IntegerResponse %d %d", x.CorrelationID, x.Result)
	case *openwire.ProducerAck:
		return fmt.Sprintf("ProducerAck %v %d", *x.ProducerID, x.Size)
	case *openwire.ConnectionError:
		return fmt.Sprintf("ConnectionError %s", x.Exception.Class)
	case *openwire.MessageDispatch:
		s := fmt.Sprintf("MessageDispatch to %v redelivery %d", *x.ConsumerID, x.RedeliveryCounter)
		if d := x.Destination; d != nil {
			s += fmt.Sprintf(" from %d %s", d.Type, d.PhysicalName)
		}
		if m := x.Message; m != nil && !strings.HasPrefix(m.Destination.PhysicalName, "ActiveMQ.") {
			s += fmt.Sprintf(" message %v/%d %s %d:%x %x %v", *m.MessageID.ProducerID,
				m.MessageID.ProducerSequenceID, m.JMSType, m.Type, m.Content,
				m.MarshalledProperties, m.Persistent)
		}
		return s
	}
	return openwire.TypeName(x.TypeID())
}

// TestRecordedClientsHearWhatActiveMQTold plays the client's side of recorded conversations, in
// step with the broker's side, and compares what comes back, as sets: the order of answers and
// deliveries is free.
func TestRecordedClientsHearWhatActiveMQTold(t *testing.T) {
	for _, name := range []string{
		"client-basic", "client-basic-v6", "client-basic-loose-nocache",
		"client-ack", "client-browse", "client-tx", "client-pull", "client-optack",
	} {
		t.Run(name, func(t *testing.T) { replay(t, readCapture(t, name)) })
	}
}

func replay(t *testing.T, all []captured) {
	h := newHouse(t, "", nil)
	hellos := map[string]*openwire.WireFormatInfo{}
	for _, c := range all {
		if c.Type == "WireFormatInfo" {
			w, err := openwire.DecodeHello(c.frame(t))
			if err != nil {
				t.Fatal(err)
			}
			hellos[c.Dir] = w
		}
	}
	f, err := openwire.Negotiate(hellos["S2C"], hellos["C2S"])
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]*openwire.Decoder{"C2S": openwire.NewDecoder(f), "S2C": openwire.NewDecoder(f)}
	c := h.dial(hellos["C2S"])
	if c.format.Version != f.Version || c.format.Tight || c.format.Cache {
		t.Fatalf("negotiated %+v; the recorded version is %d", c.format, f.Version)
	}
	var want, got []string
	catchUp := func() {
		for len(got) < len(want) {
			x := c.next()
			if x == nil {
				t.Fatalf("the connection ended; want %q", want[len(got):])
			}
			got = append(got, gist(x))
		}
	}
	for _, k := range all {
		if k.Type == "WireFormatInfo" || k.Type == "EOF" {
			continue
		}
		x, err := said[k.Dir].Decode(k.frame(t))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case k.Type == "KeepAliveInfo":
		case k.Dir == "S2C":
			want = append(want, gist(x))
		default:
			catchUp()
			c.send(x)
		}
	}
	catchUp()
	if x := c.next(); x != nil {
		t.Errorf("more came than was recorded: %s", gist(x))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
