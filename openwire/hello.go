package openwire

import (
	"fmt"
	"math"
	"time"

	"hopwire/openwire/primitive"
)

// HelloLimit is the size in bytes of the largest frame accepted before a FrameReader is told that
// the hello is done.
const HelloLimit = 64 << 10

// helloLimits bound the options of a hello, as ActiveMQ 6.3 does.
var helloLimits = primitive.Limits{Entries: 64, ValueBytes: 512, Flat: true}

var magic = [8]byte([]byte("ActiveMQ"))

// HelloOptions are the options of a hello. A missing option is false, 0 or "". The names on the
// wire are ActiveMQ's, "MaxInactivityDurationInitalDelay" included; their types are binding.
type HelloOptions struct {
	TightEncodingEnabled bool
	CacheEnabled         bool
	CacheSize            int32 // slots; 0 makes both sides use 16383; never send 1 to 99
	StackTraceEnabled    bool
	TCPNoDelayEnabled    bool
	SizePrefixDisabled   bool // not supported: Negotiate fails when both sides want it

	MaxInactivityDuration             time.Duration // whole milliseconds, 0 = no monitor
	MaxInactivityDurationInitialDelay time.Duration // whole milliseconds

	MaxFrameSize        int64 // bytes, 0 = not said
	MaxFrameSizeEnabled bool

	Host            string // the host a client dialled
	ProviderName    string
	ProviderVersion string
	PlatformDetails string

	Extra primitive.Map // options of other names
}

// DefaultHelloOptions are ActiveMQ's defaults, except that stack traces are not offered: once
// agreed, every exception must carry one.
func DefaultHelloOptions() HelloOptions {
	return HelloOptions{
		TightEncodingEnabled:              true,
		CacheEnabled:                      true,
		CacheSize:                         1024,
		TCPNoDelayEnabled:                 true,
		MaxInactivityDuration:             30 * time.Second,
		MaxInactivityDurationInitialDelay: 10 * time.Second,
		MaxFrameSize:                      math.MaxInt64,
		MaxFrameSizeEnabled:               true,
		ProviderName:                      "Hopwire",
		PlatformDetails:                   "Go",
	}
}

// NewHello makes the hello of a side that speaks up to version. Strings that are "" are left out.
func NewHello(version int, o HelloOptions) (*WireFormatInfo, error) {
	if o.CacheEnabled && o.CacheSize > 0 && o.CacheSize < cacheSlack {
		return nil, fmt.Errorf("hello: CacheSize %d would hang a Java peer; use 0 or at least %d",
			o.CacheSize, cacheSlack)
	}
	m := primitive.Map{
		{Key: "TightEncodingEnabled", Value: o.TightEncodingEnabled},
		{Key: "CacheEnabled", Value: o.CacheEnabled},
		{Key: "CacheSize", Value: o.CacheSize},
		{Key: "StackTraceEnabled", Value: o.StackTraceEnabled},
		{Key: "TcpNoDelayEnabled", Value: o.TCPNoDelayEnabled},
		{Key: "SizePrefixDisabled", Value: o.SizePrefixDisabled},
		{Key: "MaxInactivityDuration", Value: o.MaxInactivityDuration.Milliseconds()},
		{Key: "MaxInactivityDurationInitalDelay",
			Value: o.MaxInactivityDurationInitialDelay.Milliseconds()},
		{Key: "MaxFrameSize", Value: o.MaxFrameSize},
		{Key: "MaxFrameSizeEnabled", Value: o.MaxFrameSizeEnabled},
	}
	for _, s := range []primitive.Entry{
		{Key: "Host", Value: o.Host}, {Key: "ProviderName", Value: o.ProviderName},
		{Key: "ProviderVersion", Value: o.ProviderVersion},
		{Key: "PlatformDetails", Value: o.PlatformDetails},
	} {
		if s.Value != "" {
			m = append(m, s)
		}
	}
	raw, err := primitive.AppendMap(nil, append(m, o.Extra...))
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	return &WireFormatInfo{Magic: magic, Version: int32(version), MarshalledProperties: raw}, nil
}

// AppendFrame appends the hello as a frame; it is always loose, whatever is agreed later.
func (x *WireFormatInfo) AppendFrame(dst []byte) ([]byte, error) {
	return NewEncoder(Format{Version: 1}).Append(dst, x)
}

// DecodeHello decodes a connection's first frame, without its size prefix, and checks its magic
// and its options: at most 64, keys and values up to 512 bytes, of the right types. Lengths that
// lie are refused before anything is allocated. Errors are *ProtocolError.
func DecodeHello(frame []byte) (*WireFormatInfo, error) {
	if len(frame) == 0 || frame[0] != TypeWireFormatInfo {
		name := "something else"
		if len(frame) > 0 && typeNames[frame[0]] != "" {
			name = "a " + typeNames[frame[0]]
		}
		return nil, &ProtocolError{Reason: "the first frame is " + name +
			", a peer must begin with a WireFormatInfo"}
	}
	x, err := NewDecoder(Format{Version: 1}).Decode(frame)
	if err != nil {
		return nil, err
	}
	hello := x.(*WireFormatInfo)
	if hello.Magic != magic {
		return nil, &ProtocolError{TypeWireFormatInfo, 1, fmt.Sprintf("the magic is %q, want %q",
			hello.Magic[:], magic[:])}
	}
	if _, err := hello.Options(); err != nil {
		return nil, err
	}
	return hello, nil
}

// Options decodes the options; an error is a *ProtocolError that names the option.
func (x *WireFormatInfo) Options() (HelloOptions, error) {
	var o HelloOptions
	m, err := primitive.ParseMapWithin(x.MarshalledProperties, helloLimits)
	if err != nil {
		return o, helloError(err.Error())
	}
	var inactivity, delay int64
	for _, e := range m {
		ok := true
		switch e.Key {
		case "TightEncodingEnabled":
			o.TightEncodingEnabled, ok = e.Value.(bool)
		case "CacheEnabled":
			o.CacheEnabled, ok = e.Value.(bool)
		case "CacheSize":
			o.CacheSize, ok = e.Value.(int32)
		case "StackTraceEnabled":
			o.StackTraceEnabled, ok = e.Value.(bool)
		case "TcpNoDelayEnabled":
			o.TCPNoDelayEnabled, ok = e.Value.(bool)
		case "SizePrefixDisabled":
			o.SizePrefixDisabled, ok = e.Value.(bool)
		case "MaxInactivityDuration":
			inactivity, ok = e.Value.(int64)
		case "MaxInactivityDurationInitalDelay":
			delay, ok = e.Value.(int64)
		case "MaxFrameSize":
			o.MaxFrameSize, ok = e.Value.(int64)
		case "MaxFrameSizeEnabled":
			o.MaxFrameSizeEnabled, ok = e.Value.(bool)
		case "Host":
			o.Host, ok = textOption(e.Value)
		case "ProviderName":
			o.ProviderName, ok = textOption(e.Value)
		case "ProviderVersion":
			o.ProviderVersion, ok = textOption(e.Value)
		case "PlatformDetails":
			o.PlatformDetails, ok = textOption(e.Value)
		default:
			o.Extra = append(o.Extra, e)
		}
		if !ok {
			return o, helloError(fmt.Sprintf("option %s has a value of type %T", e.Key, e.Value))
		}
	}
	o.MaxInactivityDuration = millis(inactivity)
	o.MaxInactivityDurationInitialDelay = millis(delay)
	return o, nil
}

// textOption takes null for "".
func textOption(v any) (s string, ok bool) {
	if v == nil {
		return "", true
	}
	s, ok = v.(string)
	return s, ok
}

func helloError(reason string) error {
	return &ProtocolError{TypeWireFormatInfo, 0, reason}
}

// millis turns milliseconds of a peer into a duration from 0 to the longest there is.
func millis(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
