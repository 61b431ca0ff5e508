package openwire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"hopwire/openwire/primitive"
)

const inflateLimit = 10 << 20

// typed turns a value into the vectors' {t, v} form.
func typed(v any) any {
	number := func(t string, n int64) any {
		return map[string]any{"t": t, "v": json.Number(fmt.Sprint(n))}
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{"t": "null"}
	case bool:
		return map[string]any{"t": "bool", "v": v}
	case int8:
		return number("byte", int64(v))
	case primitive.Char:
		return number("char", int64(v))
	case int16:
		return number("short", int64(v))
	case int32:
		return number("int", int64(v))
	case int64:
		return number("long", v)
	case float32:
		return map[string]any{"t": "float", "v": fmt.Sprintf("%08x", math.Float32bits(v))}
	case float64:
		return map[string]any{"t": "double", "v": fmt.Sprintf("%016x", math.Float64bits(v))}
	case string:
		return map[string]any{"t": "string", "v": v}
	case []byte:
		return map[string]any{"t": "bytes", "v": hex.EncodeToString(v)}
	case primitive.Map:
		return map[string]any{"t": "map", "v": typedMap(v)}
	case primitive.List:
		return map[string]any{"t": "list", "v": typedList(v)}
	}
	panic(fmt.Sprintf("%T", v))
}

func typedMap(m primitive.Map) any {
	out := map[string]any{}
	for _, e := range m {
		out[e.Key] = typed(e.Value)
	}
	return out
}

func typedList(l primitive.List) any {
	out := []any{}
	for _, v := range l {
		out = append(out, typed(v))
	}
	return out
}

// withoutNullValues drops the explicit v of nulls, which the vectors have in some places.
func withoutNullValues(x any) any {
	switch x := x.(type) {
	case map[string]any:
		if x["t"] == "null" {
			delete(x, "v")
		}
		for _, v := range x {
			withoutNullValues(v)
		}
	case []any:
		for _, v := range x {
			withoutNullValues(v)
		}
	}
	return x
}

func TestVectorBodiesAndPropertiesDecodeAndEncode(t *testing.T) {
	bodies, properties := 0, 0
	for _, v := range vectorFile {
		if v.Type == "WireFormatInfo" || v.Body == nil && v.Properties == nil {
			continue
		}
		x, err := NewDecoder(v.format()).Decode(v.frame()[4:])
		if err != nil {
			t.Fatal(err)
		}
		m := x.(*Message)
		if v.Properties != nil {
			properties++
			checkProperties(t, v, m)
		}
		if v.Body != nil {
			bodies++
			checkBody(t, v, m)
		}
	}
	if bodies < 90 || properties < 8 {
		t.Errorf("%d bodies, %d properties", bodies, properties)
	}
}

func checkProperties(t *testing.T, v vector, m *Message) {
	t.Helper()
	p, err := m.Properties()
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	want := withoutNullValues(any(v.Properties)).(map[string]any)
	diff(t, v.String()+": properties", typedMap(p), any(want))
	for name, value := range want {
		got, ok := m.Property(name)
		if !ok {
			t.Errorf("%s: property %s not found", v, name)
		}
		diff(t, v.String()+": property "+name, typed(got), value)
	}
	if _, ok := m.Property("no such name"); ok {
		t.Errorf("%s: found a property that is not there", v)
	}
	n := &Message{Type: m.Type}
	if err := n.SetProperties(p); err != nil ||
		!bytes.Equal(n.MarshalledProperties, m.MarshalledProperties) {
		t.Errorf("%s: properties encoded\n got %x, %v\nwant %x", v, n.MarshalledProperties, err,
			m.MarshalledProperties)
	}
}

// checkBody decodes a body, builds the same one in a new message and compares the contents, then
// compresses that and decodes it again.
func checkBody(t *testing.T, v vector, m *Message) {
	t.Helper()
	raw, err := m.Body(inflateLimit)
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	n := &Message{}
	switch kind := v.Body["kind"]; kind {
	case "text":
		got, err := m.Text(inflateLimit)
		want, ok := v.Body["text"].(string)
		if err != nil || got != want || ok != (m.Content != nil) {
			t.Fatalf("%s: text %q, %v", v, got, err)
		}
		if ok {
			n.SetText(got)
		} else {
			n.Type = TypeTextMessage
		}
	case "bytes", "bytesTyped":
		got, err := m.Bytes(inflateLimit)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if kind == "bytes" && hex.EncodeToString(got) != v.Body["bytes"] {
			t.Fatalf("%s: bytes %x", v, got)
		}
		if kind == "bytesTyped" {
			diff(t, v.String(), readItems(got, v.Body["items"].([]any)), v.Body["items"])
		}
		n.SetBytes(got)
	case "map":
		got, err := m.Map(inflateLimit)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		diff(t, v.String(), typedMap(got), withoutNullValues(v.Body["entries"]))
		if err := n.SetMap(got); err != nil {
			t.Fatal(err)
		}
	case "stream":
		got, err := m.Stream(inflateLimit)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		diff(t, v.String(), typedList(got), withoutNullValues(v.Body["items"]))
		if err := n.SetStream(got); err != nil {
			t.Fatal(err)
		}
	case "object":
		got, err := m.Object(inflateLimit)
		want, _ := v.Body["javaSerialized"].(string)
		if err != nil || hex.EncodeToString(got) != want {
			t.Fatalf("%s: object %x, %v", v, got, err)
		}
		n.SetObject(got)
	case "blob":
		n.SetBlob(m.RemoteBlobURL, m.MIMEType, m.DeletedByBroker)
	default:
		t.Fatalf("%s: body kind %v", v, kind)
	}
	if !bytes.Equal(n.Content, raw) || n.Type != m.Type || (n.Content == nil) != (raw == nil) {
		t.Fatalf("%s: body encoded\n got %x\nwant %x", v, n.Content, raw)
	}
	n.Compress()
	if again, err := n.Body(inflateLimit); err != nil || !bytes.Equal(again, raw) {
		t.Fatalf("%s: compressed and inflated: %x, %v", v, again, err)
	}
}

// readItems reads the items of a typed bytes body as their types say.
func readItems(b []byte, items []any) any {
	out := []any{}
	for _, item := range items {
		var v any
		n := 1
		switch item.(map[string]any)["t"] {
		case "bool":
			v = b[0] != 0
		case "byte":
			v = int8(b[0])
		case "char":
			v, n = primitive.Char(binary.BigEndian.Uint16(b)), 2
		case "short":
			v, n = int16(binary.BigEndian.Uint16(b)), 2
		case "int":
			v, n = int32(binary.BigEndian.Uint32(b)), 4
		case "long":
			v, n = int64(binary.BigEndian.Uint64(b)), 8
		case "float":
			v, n = math.Float32frombits(binary.BigEndian.Uint32(b)), 4
		case "double":
			v, n = math.Float64frombits(binary.BigEndian.Uint64(b)), 8
		case "string":
			n = 2 + int(binary.BigEndian.Uint16(b))
			v, _ = primitive.UTF8(b[2:n])
		}
		b = b[n:]
		out = append(out, typed(v))
	}
	return out
}

func TestBodiesOfTheWrongKindOrSizeAreRefused(t *testing.T) {
	m := &Message{}
	m.SetText(strings.Repeat("x", 100000))
	if _, err := m.Bytes(inflateLimit); err == nil {
		t.Error("a text message gave bytes")
	}
	m.Compress()
	if len(m.Content) > 1000 {
		t.Errorf("compressed to %d bytes", len(m.Content))
	}
	if _, err := m.Text(99999); err == nil {
		t.Error("text above the inflate limit was given")
	}
	m.SetBytes(make([]byte, 100000))
	m.Compress()
	if _, err := m.Bytes(99999); err == nil {
		t.Error("bytes above the inflate limit were given")
	}
	if err := m.SetStream(primitive.List{primitive.Map{}}); err == nil {
		t.Error("a stream took a map")
	}
	if reflect.DeepEqual(m.Type, TypeStreamMessage) {
		t.Error("a failed SetStream changed the message")
	}
}
