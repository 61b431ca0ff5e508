package openwire

import (
	"bytes"
	"testing"
)

func TestVectorsDecodeToTheirFieldsAndEncodeToTheirBytes(t *testing.T) {
	if len(vectorFile) != 8839 {
		t.Fatalf("%d vectors, want 8839", len(vectorFile))
	}
	var e *Encoder
	var d, scratch *Decoder
	var message Message
	var ack MessageAck
	for _, v := range vectorFile {
		if v.Seq == 0 {
			e, d, scratch = NewEncoder(v.format()), NewDecoder(v.format()), NewDecoder(v.format())
		}
		frame := v.frame()
		want := normal(any(v.Fields))
		got, err := d.Decode(bytes.Clone(frame[4:]))
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		diff(t, v.String()+": decoded", fieldsOf(got, v.Version), want)
		out, err := e.Append(nil, got)
		if err != nil || !bytes.Equal(out, frame) {
			t.Fatalf("%s: encoded, error %v\n got %x\nwant %x", v, err, out, frame)
		}
		if got := decodeScratch(t, v, scratch, frame[4:], &message, &ack); got != nil {
			diff(t, v.String()+": decoded into scratch", fieldsOf(got, v.Version), want)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// decodeScratch decodes messages and acks by the path that reuses memory, and others as usual so
// that the cache stays in step.
func decodeScratch(t *testing.T, v vector, d *Decoder, frame []byte, m *Message,
	a *MessageAck) DataStructure {
	t.Helper()
	var err error
	var x DataStructure
	switch {
	case isMessage(frame[0]):
		x, err = m, d.DecodeMessage(frame, m)
	case frame[0] == TypeMessageAck:
		x, err = a, d.DecodeAck(frame, a)
	default:
		_, err = d.Decode(frame)
	}
	if err != nil {
		t.Fatalf("%s: into scratch: %v", v, err)
	}
	return x
}

func TestStructuresBuiltFromFieldsEncodeToTheVectorsBytes(t *testing.T) {
	var e *Encoder
	for _, v := range vectorFile {
		if v.Seq == 0 {
			e = NewEncoder(v.format())
		}
		out, err := e.Append([]byte("before"), fromFields(normal(any(v.Fields)), v.Version))
		if err != nil || !bytes.Equal(out[6:], v.frame()) {
			t.Fatalf("%s: error %v\n got %x\nwant %s", v, err, out[6:], v.Hex)
		}
	}
}
