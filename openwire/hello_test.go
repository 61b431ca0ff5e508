package openwire

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"hopwire/openwire/primitive"
)

func hello(t *testing.T, version int, change func(*HelloOptions)) *WireFormatInfo {
	t.Helper()
	o := DefaultHelloOptions()
	if change != nil {
		change(&o)
	}
	w, err := NewHello(version, o)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := w.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeHello(frame[4:])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHelloOptionsSurviveTheWire(t *testing.T) {
	o := DefaultHelloOptions()
	o.Host, o.ProviderVersion = "hé", "1"
	o.Extra = primitive.Map{{Key: "HopwireLink", Value: int32(2)}}
	got, err := hello(t, 12, func(p *HelloOptions) { *p = o }).Options()
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "options", got, o)
}

func TestNegotiationTakesTheLowerAndWhatBothEnable(t *testing.T) {
	base := Format{Version: 12, Tight: true, Cache: true, CacheSize: 1024, TCPNoDelay: true,
		MaxFrameSize: math.MaxInt64, Inactivity: 30 * time.Second, InitialDelay: 10 * time.Second}
	for _, c := range []struct {
		name    string
		version int
		peer    func(*HelloOptions)
		want    func(*Format)
	}{
		{"equal", 12, nil, func(*Format) {}},
		{"older peer", 6, nil, func(f *Format) { f.Version = 6 }},
		{"newer peer", 99, nil, func(*Format) {}},
		{"loose", 12, func(o *HelloOptions) { o.TightEncodingEnabled = false },
			func(f *Format) { f.Tight = false }},
		{"no cache", 12, func(o *HelloOptions) { o.CacheEnabled = false },
			func(f *Format) { f.Cache = false }},
		{"smaller cache", 12, func(o *HelloOptions) { o.CacheSize = 100 },
			func(f *Format) { f.CacheSize = 100 }},
		{"larger caches", 12, func(o *HelloOptions) { o.CacheSize = 1 << 30 }, func(*Format) {}},
		{"cache 0", 12, func(o *HelloOptions) { o.CacheSize = 0 },
			func(f *Format) { f.CacheSize = 16383 }},
		{"no monitor", 12, func(o *HelloOptions) { o.MaxInactivityDuration = 0 },
			func(f *Format) { f.Inactivity = 0 }},
		{"frame limit", 12, func(o *HelloOptions) { o.MaxFrameSize = 1 << 20 },
			func(f *Format) { f.MaxFrameSize = 1 << 20 }},
		{"frame limit absent", 12, func(o *HelloOptions) { o.MaxFrameSize = 0 }, func(*Format) {}},
		{"negative times", 12, func(o *HelloOptions) { o.MaxInactivityDurationInitialDelay = -1e9 },
			func(f *Format) { f.InitialDelay = 0 }},
	} {
		want := base
		c.want(&want)
		got, err := Negotiate(hello(t, 12, nil), hello(t, c.version, c.peer))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, want)
		}
	}
}

func TestStackTracesNeedBothSides(t *testing.T) {
	on := func(o *HelloOptions) { o.StackTraceEnabled = true }
	for want, local := range map[bool]func(*HelloOptions){true: on, false: nil} {
		f, err := Negotiate(hello(t, 12, local), hello(t, 12, on))
		if err != nil || f.StackTrace != want {
			t.Errorf("stack trace %t, %v; want %t", f.StackTrace, err, want)
		}
	}
}

func TestAHelloWithoutOptionsIsLooseWithoutCache(t *testing.T) {
	peer, err := DecodeHello([]byte("\x01ActiveMQ\x00\x00\x00\x03\x00"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Negotiate(hello(t, 12, nil), peer)
	want := Format{Version: 3, CacheSize: 16383, MaxFrameSize: math.MaxInt64}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestNegotiationRefusesWithOneLine(t *testing.T) {
	both := func(o *HelloOptions) { o.SizePrefixDisabled = true }
	for _, c := range []struct {
		version int
		options func(*HelloOptions)
		want    string
	}{
		{0, nil, "version 0;"}, {-1, nil, "version -1;"}, {12, both, "sizePrefixDisabled"},
	} {
		_, err := Negotiate(hello(t, 12, both), hello(t, c.version, c.options))
		wantError(t, err, c.want)
	}
	wantError(t, RequireVersion(hello(t, 9, nil), 10), "minmumWireFormatVersion")
	if err := RequireVersion(hello(t, 10, nil), 10); err != nil {
		t.Error(err)
	}
	if _, err := NewHello(12, HelloOptions{CacheEnabled: true, CacheSize: 99}); err == nil {
		t.Error("a hello with CacheSize 99 was made: it hangs Java peers")
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	var p *ProtocolError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), text) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want a one-line ProtocolError with %q", err, text)
	}
}

func helloWith(t *testing.T, m primitive.Map) []byte {
	t.Helper()
	raw, err := primitive.AppendMap(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	w := &WireFormatInfo{Magic: magic, Version: 12, MarshalledProperties: raw}
	frame, err := w.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	return frame[4:]
}

func TestLyingAndStrangeHellosAreRefusedWithoutMemory(t *testing.T) {
	many := primitive.Map{}
	for i := range 65 {
		many = append(many, primitive.Entry{Key: strings.Repeat("k", i+1)})
	}
	long := strings.Repeat("x", 513)
	for _, c := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"2 GB of options", []byte("\x01ActiveMQ\x00\x00\x00\x0c\x01\x7f\xff\xff\xf0"), "length"},
		{"2 G entries", []byte("\x01ActiveMQ\x00\x00\x00\x0c\x01\x00\x00\x00\x04\x7f\xff\xff\xf0"),
			"count"},
		{"short", []byte("\x01ActiveMQ\x00"), "ends too early"},
		{"magic", []byte("\x01ActiveXX\x00\x00\x00\x0c\x00"), "magic"},
		{"another command", []byte("\x03\x00"), "ConnectionInfo"},
		{"empty", nil, "something else"},
		{"65 options", helloWith(t, many), "more entries"},
		{"long value", helloWith(t, primitive.Map{{Key: "Host", Value: long}}), "limit"},
		{"long key", helloWith(t, primitive.Map{{Key: long}}), "limit"},
		{"nested", helloWith(t, primitive.Map{{Key: "m", Value: primitive.Map{}}}), "not allowed"},
		{"wrong type", helloWith(t, primitive.Map{{Key: "CacheSize", Value: int64(1)}}), "CacheSize"},
	} {
		var err error
		grown := allocated(func() { _, err = DecodeHello(c.frame) })
		if !strings.Contains(errorText(err), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if grown > 64<<10 {
			t.Errorf("%s: %d bytes allocated", c.name, grown)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

func TestVectorHellosHaveTheirProperties(t *testing.T) {
	n := 0
	for _, v := range vectorFile {
		if v.Case != "clientHello" && v.Case != "brokerHello" {
			continue
		}
		n++
		w, err := DecodeHello(v.frame()[4:])
		if err != nil {
			t.Fatal(err)
		}
		m, err := primitive.ParseMap(w.MarshalledProperties)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, v.String(), typedMap(m), any(v.Properties))
		o, err := w.Options()
		if err != nil || !o.TightEncodingEnabled || o.CacheSize != 1024 ||
			o.MaxInactivityDuration != 30*time.Second || o.ProviderVersion != "5.17.2" {
			t.Errorf("%s: %+v, %v", v, o, err)
		}
		if !bytes.Equal(w.Magic[:], []byte("ActiveMQ")) {
			t.Errorf("magic %q", w.Magic)
		}
	}
	if n != 2 {
		t.Errorf("%d hellos in the vectors, want 2", n)
	}
}
