package openwire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var tightCache = Format{Version: 12, Tight: true, Cache: true, CacheSize: 1024}

func mustAppend(t *testing.T, e *Encoder, x DataStructure) []byte {
	t.Helper()
	out, err := e.Append(nil, x)
	if err != nil {
		t.Fatal(err)
	}
	return out[4:]
}

func mustDecode(t *testing.T, d *Decoder, frame []byte) DataStructure {
	t.Helper()
	x, err := d.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestAFailedSendLeavesTheObjectCacheAsItWas(t *testing.T) {
	for _, f := range []Format{tightCache, {Version: 12, Cache: true, CacheSize: 110}} {
		e, clean, d := NewEncoder(f), NewEncoder(f), NewDecoder(f)
		failures := 0
		for i := range 500 {
			bad := sampleMessage()
			bad.ProducerID = &ProducerId{ConnectionID: "bad", Value: int64(i)}
			bad.Destination = &Destination{Type: TypeQueue, PhysicalName: fmt.Sprint("BAD", i)}
			bad.CorrelationID = strings.Repeat("x", 70000)
			prefix := []byte("kept")
			out, err := e.Append(prefix, bad)
			var refused *EncodeError
			if !errors.As(err, &refused) || string(out) != "kept" {
				t.Fatalf("%q, %v", out, err)
			}
			failures++
			good := sampleMessage()
			good.Destination = &Destination{Type: TypeQueue, PhysicalName: fmt.Sprint("Q", i%150)}
			got, want := mustAppend(t, e, good), mustAppend(t, clean, good)
			if !bytes.Equal(got, want) {
				t.Fatalf("%+v: frame %d differs after a failed send\n got %x\nwant %x", f, i, got, want)
			}
			m := mustDecode(t, d, got).(*Message)
			if m.Destination.PhysicalName != good.Destination.PhysicalName {
				t.Fatalf("frame %d: destination %s", i, m.Destination.PhysicalName)
			}
		}
	}
}

func TestAFrameOverTheAgreedSizeIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	f := tightCache
	f.MaxFrameSize = 2000
	e, d := NewEncoder(f), NewDecoder(f)
	big := sampleMessage()
	big.Content = make([]byte, 2000)
	_, err := e.Append(nil, big)
	var tooBig *FrameTooBigError
	if !errors.As(err, &tooBig) || tooBig.Limit != 2000 || !tooBig.Sending {
		t.Fatalf("error %v", err)
	}
	mustDecode(t, d, mustAppend(t, e, sampleMessage()))
}

func TestAnyAgreedCacheSizeWorksAndEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, tight := range []bool{true, false} {
		for _, size := range []int{1, 2, 7, 99, 100, 101, 150, 300, 0} {
			f := Format{Version: 12, Tight: tight, Cache: true, CacheSize: size}
			e, d := NewEncoder(f), NewDecoder(f)
			for i := range 2000 {
				m := sampleMessage()
				m.Destination = &Destination{Type: TypeQueue, PhysicalName: fmt.Sprint(random.IntN(250))}
				m.TransactionID = &LocalTransactionId{Value: int64(random.IntN(90)),
					ConnectionID: &ConnectionId{Value: fmt.Sprint(random.IntN(9))}}
				if i%3 == 0 {
					m.TransactionID = nil
				}
				got := mustDecode(t, d, mustAppend(t, e, m))
				if random.IntN(50) == 0 {
					diff(t, fmt.Sprint(f, i), fieldsOf(got, 12), fieldsOf(m, 12))
				} else if got.(*Message).Destination.PhysicalName != m.Destination.PhysicalName {
					t.Fatalf("%+v: message %d went to another destination", f, i)
				}
			}
		}
	}
}

// subscriptions are 1500 destinations of as many consumers as given.
func subscriptions(consumers int) *BrokerSubscriptionInfo {
	info := &BrokerSubscriptionInfo{BrokerName: "b"}
	for i := range 1500 {
		info.SubscriptionInfos = append(info.SubscriptionInfos, &ConsumerInfo{
			ConsumerID:  &ConsumerId{ConnectionID: "c", Value: int64(i % consumers)},
			Destination: &Destination{Type: TypeTopic, PhysicalName: fmt.Sprint("T", i)},
		})
	}
	return info
}

func TestMoreNewObjectsInOneCommandThanTheCacheHolds(t *testing.T) {
	for _, f := range []Format{tightCache, {Version: 12, Cache: true, CacheSize: 1024}} {
		for _, consumers := range []int{1, 2, 1500} {
			info := subscriptions(consumers)
			e, d := NewEncoder(f), NewDecoder(f)
			for range 3 {
				got := mustDecode(t, d, mustAppend(t, e, info))
				diff(t, "subscriptions", fieldsOf(got, 12), fieldsOf(info, 12))
			}
		}
	}
}

func TestAFailedSendThatOverwroteTheWholeCacheIsUndone(t *testing.T) {
	for _, f := range []Format{tightCache, {Version: 12, Cache: true, CacheSize: 1024}} {
		e, clean := NewEncoder(f), NewEncoder(f)
		queues := func(e *Encoder) (all []byte) {
			for i := range 700 {
				m := sampleMessage()
				m.Destination = &Destination{Type: TypeQueue, PhysicalName: fmt.Sprint("Q", i)}
				all = append(all, mustAppend(t, e, m)...)
			}
			return all
		}
		queues(e)
		queues(clean)
		bad := subscriptions(1500)
		bad.SubscriptionInfos[1499].Selector = strings.Repeat("x", 70000)
		if _, err := e.Append(nil, bad); err == nil {
			t.Fatal("a selector of 70000 bytes was sent")
		}
		if !bytes.Equal(queues(e), queues(clean)) {
			t.Errorf("%+v: frames differ after the failed send", f)
		}
	}
}

func TestNothingDecodedAliasesTheFrame(t *testing.T) {
	for _, v := range vectorFile {
		if v.Seq > 0 || v.Case != "full" && v.Case != "bounds" {
			continue
		}
		frame := v.frame()[4:]
		x := mustDecode(t, NewDecoder(v.format()), frame)
		for i := range frame {
			frame[i] = 0xaa
		}
		diff(t, v.String(), fieldsOf(x, v.Version), normal(any(v.Fields)))
	}
}

func TestAScratchMessageAliasesOnlyContentAndProperties(t *testing.T) {
	m := sampleMessage()
	m.MarshalledProperties = []byte{0, 0, 0, 0}
	m.CorrelationID, m.GroupID = "correlation", "group"
	m.DataStructure = sampleMessage()
	frame := mustAppend(t, NewEncoder(tightCache), m)
	var into Message
	if err := NewDecoder(tightCache).DecodeMessage(frame, &into); err != nil {
		t.Fatal(err)
	}
	clear(frame)
	if into.Content[0] != 0 || into.CorrelationID != "correlation" || into.GroupID != "group" ||
		into.DataStructure.(*Message).Content[4] != '0' {
		t.Errorf("%+v", into)
	}
}

func TestAScratchMessageKeepsNothingOfTheMessageBefore(t *testing.T) {
	d := NewDecoder(tightCache)
	e := NewEncoder(tightCache)
	var into Message
	first := sampleMessage()
	first.CorrelationID, first.MarshalledProperties = "c", []byte{1}
	first.BrokerPath = []*BrokerId{{Value: "b"}}
	if err := d.DecodeMessage(mustAppend(t, e, first), &into); err != nil {
		t.Fatal(err)
	}
	id := into.MessageID
	plain := &Message{Type: TypeMessage, MessageID: &MessageId{TextView: "t"}}
	if err := d.DecodeMessage(mustAppend(t, e, plain), &into); err != nil {
		t.Fatal(err)
	}
	if into.MessageID != id {
		t.Error("the message id was not filled again")
	}
	diff(t, "second message", fieldsOf(&into, 12), fieldsOf(plain, 12))
}

func TestHostileFramesAreProtocolErrors(t *testing.T) {
	loose := Format{Version: 12}
	nest := bytes.Repeat([]byte{TypeDataResponse, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 100)
	for _, c := range []struct {
		name  string
		f     Format
		frame []byte
		want  string
	}{
		{"empty", loose, nil, "empty"},
		{"unknown type", loose, []byte{200}, "unknown type 200"},
		{"null with a body", loose, []byte{0, 1}, "unknown type 0"},
		{"above the version", Format{Version: 2}, []byte{TypeProducerAck}, "version 3"},
		{"nested above the version", Format{Version: 2},
			[]byte{TypeDataResponse, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, TypeProducerAck}, "does not exist"},
		{"too short", loose, []byte{TypeKeepAliveInfo, 0, 0}, "ends too early"},
		{"too long", loose, []byte{TypeKeepAliveInfo, 0, 0, 0, 0, 0, 9}, "1 bytes are left over"},
		{"flags left over", Format{Version: 12, Tight: true},
			[]byte{TypeKeepAliveInfo, 2, 0, 0, 0, 0, 0, 0}, "flags are left over"},
		{"flags missing", Format{Version: 12, Tight: true},
			[]byte{TypeKeepAliveInfo, 0, 0, 0, 0, 0}, "ends too early"},
		{"negative flags", Format{Version: 12, Tight: true},
			[]byte{TypeKeepAliveInfo, 0x80, 0xff, 0xff}, "-1 bytes of flags"},
		{"lying string", loose, []byte{TypeBrokerId, 1, 0xff, 0xff, 'x'}, "length 65535"},
		{"lying bytes", loose, []byte{TypePartialCommand, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff},
			"length 2147483647"},
		{"negative bytes", loose, []byte{TypePartialCommand, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff},
			"length -1"},
		{"lying array", loose, []byte{TypeDataArrayResponse, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0xff},
			"array of 32767"},
		{"negative array", loose, []byte{TypeDataArrayResponse, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff},
			"array of -1"},
		{"deep", loose, nest, "nest deeper"},
		{"wrong kind", loose, []byte{TypeSessionInfo, 0, 0, 0, 0, 0, 1, TypeQueue, 0},
			"ActiveMQQueue where a SessionId belongs"},
		{"bad text", loose, []byte{TypeBrokerId, 1, 0, 2, 0xf0, 0x9f}, "UTF-8"},
		{"undefined index", Format{Version: 12, Cache: true},
			[]byte{TypeSessionInfo, 0, 0, 0, 0, 0, 0, 0, 5}, "index 5 was never defined"},
		{"index outside", Format{Version: 12, Cache: true, CacheSize: 10},
			[]byte{TypeSessionInfo, 0, 0, 0, 0, 0, 1, 0, 10, 0}, "outside the 10"},
		{"negative stack", Format{Version: 12, StackTrace: true},
			[]byte{TypeConnectionError, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff}, "stack of -1"},
		{"lying stack", Format{Version: 12, StackTrace: true},
			[]byte{TypeConnectionError, 0, 0, 0, 0, 0, 1, 0, 0, 0x7f, 0xff}, "stack of 32767"},
	} {
		x, err := NewDecoder(c.f).Decode(c.frame)
		if x != nil {
			t.Errorf("%s: decoded %#v", c.name, x)
		}
		wantError(t, err, c.want)
	}
	if _, err := NewDecoder(loose).Decode([]byte{TypeNull}); err != nil {
		t.Errorf("null command: %v", err)
	}
	var m Message
	wantError(t, NewDecoder(loose).DecodeMessage([]byte{TypeResponse}, &m), "not a message")
	var a MessageAck
	wantError(t, NewDecoder(loose).DecodeAck([]byte{TypeResponse}, &a), "not a MessageAck")
}

func TestACachedObjectOfAnotherKindIsRefused(t *testing.T) {
	f := Format{Version: 12, Cache: true}
	d := NewDecoder(f)
	info := &ConnectionInfo{ConnectionID: &ConnectionId{Value: "c"}}
	mustDecode(t, d, mustAppend(t, NewEncoder(f), info))
	_, err := d.Decode([]byte{TypeSessionInfo, 0, 0, 0, 0, 0, 0, 0, 0})
	wantError(t, err, "ConnectionId where a SessionId belongs")
}

func TestAnObjectUnderIndexMinusOneIsNotKept(t *testing.T) {
	d := NewDecoder(Format{Version: 12, Cache: true})
	x := mustDecode(t, d, []byte{TypeBrokerInfo, 0, 0, 0, 0, 0,
		1, 0xff, 0xff, 1, TypeBrokerId, 1, 0, 1, 'b', 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	if id := x.(*BrokerInfo).BrokerID; id == nil || id.Value != "b" || len(d.table) > 0 {
		t.Errorf("broker id %v, %d slots", id, len(d.table))
	}
}

func TestAPreMarshalledNestedMessageIsUnderstood(t *testing.T) {
	f := Format{Version: 12, Tight: true}
	inner := mustAppend(t, NewEncoder(f), sampleMessage())
	// DataResponse: no response required, data present, a form follows
	frame := []byte{TypeDataResponse, 1, 0b110, 0, 0, 0, 1, 0, 0, 0, 2, inner[0]}
	frame = append(frame, 0, 0, byte(len(inner)>>8), byte(len(inner)))
	frame = append(frame, inner...)
	x := mustDecode(t, NewDecoder(f), frame).(*DataResponse)
	diff(t, "nested message", fieldsOf(x.Data, 12), fieldsOf(sampleMessage(), 12))
	frame[14]-- // its size is one less than it takes
	_, err := NewDecoder(f).Decode(frame)
	wantError(t, err, "pre-marshalled")
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	var none *Message
	loop := &DataResponse{}
	loop.Data = loop
	for name, x := range map[string]DataStructure{
		"nil": nil, "typed nil": none, "foreign": foreign{}, "message without type": &Message{},
		"message with a destination's type": &Message{Type: TypeQueue},
		"destination without type":          &DestinationInfo{Destination: &Destination{}},
		"destination with a message's type": &Destination{Type: TypeMessage},
		"foreign inside":                    &DataResponse{Data: foreign{}},
		"a circle":                          loop,
		"above the version":                 &BrokerSubscriptionInfo{},
		"uncacheable":                       &RemoveInfo{ObjectID: &Response{}},
		"too many elements":                 &DataArrayResponse{Data: make([]DataStructure, 1<<15)},
	} {
		f := tightCache
		f.Version = 11
		_, err := NewEncoder(f).Append(nil, x)
		if _, ok := errors.AsType[*EncodeError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type foreign struct{}

func (foreign) TypeID() byte { return TypeQueue }

func TestTypedNilsInsideAreNull(t *testing.T) {
	var queue *Destination
	var tx *XATransactionId
	m := &Message{Type: TypeMessage, TransactionID: tx, DataStructure: queue}
	for _, f := range benchFormats {
		got := mustDecode(t, NewDecoder(f.f), mustAppend(t, NewEncoder(f.f), m)).(*Message)
		if got.TransactionID != nil || got.DataStructure != nil {
			t.Errorf("%s: %+v", f.name, got)
		}
	}
}

func TestALongExceptionTextIsCutAndNotRefused(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 100000), strings.Repeat("é\x00😀", 20000)} {
		for _, f := range benchFormats {
			x := &ExceptionResponse{Exception: &Throwable{Class: "javax.jms.JMSException", Message: text}}
			got := mustDecode(t, NewDecoder(f.f), mustAppend(t, NewEncoder(f.f), x)).(*ExceptionResponse)
			m := got.Exception.Message
			if len(m) < 5000 || !strings.HasPrefix(text, strings.TrimSuffix(m, " ...")) {
				t.Errorf("%s: message of %d bytes: %.40q", f.name, len(m), m)
			}
		}
	}
}

func TestUnpairedSurrogatesSurvive(t *testing.T) {
	for _, raw := range []string{
		"\xed\xa0\xbd", "a\xed\xb8\x80b", "\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80",
	} {
		frame := append([]byte{TypeBrokerId, 1, 0, byte(len(raw))}, raw...)
		f := Format{Version: 12}
		x := mustDecode(t, NewDecoder(f), frame)
		if out := mustAppend(t, NewEncoder(f), x); !bytes.Equal(out, frame) {
			t.Errorf("%x came back as %x", frame, out)
		}
	}
}
