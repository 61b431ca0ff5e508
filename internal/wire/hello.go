package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/openwire"
	"hopwire/openwire/primitive"
)

// Level is the HopwireLink level that this code speaks.
const Level = 1

// Properties of the hello by which Hopwire brokers know each other, and that one was started anew.
const (
	levelOption = "HopwireLink"
	runOption   = "HopwireRun"
)

// DefaultMaxFrameSize is the largest frame taken when the connector says nothing, in bytes: what
// ActiveMQ's own activemq.xml had for years.
const DefaultMaxFrameSize = 100 << 20

// Offer is what one side puts into its hello.
type Offer struct {
	Version    int // the newest spoken
	MinVersion int // the oldest of the peer; 0 is any
	Options    openwire.HelloOptions
	// FrameLimit is the largest frame that is read, in bytes without the size prefix; 0 is no
	// limit but the 2 GiB of the protocol.
	FrameLimit int64
}

// DefaultOffer is loose encoding without object cache (see the package comment), ActiveMQ's times,
// and frames up to DefaultMaxFrameSize.
func DefaultOffer() Offer {
	o := openwire.DefaultHelloOptions()
	o.TightEncodingEnabled, o.CacheEnabled, o.StackTraceEnabled = false, false, false
	o.MaxFrameSize = DefaultMaxFrameSize
	o.Extra = primitive.Map{{Key: levelOption, Value: int32(Level)}}
	return Offer{Version: openwire.MaxVersion, Options: o, FrameLimit: DefaultMaxFrameSize}
}

// as gives the offer of a broker that was started and has a number since.
func (o Offer) as(run int64) Offer {
	o.Options.Extra = append(slices.Clip(o.Options.Extra), primitive.Entry{Key: runOption, Value: run})
	return o
}

// OfferOf applies the wireFormat.* options of a URI, given without the prefix. Unknown names are
// tolerated, as ActiveMQ does; values of the wrong form are errors that name the option.
func OfferOf(options map[string]string) (Offer, error) {
	o := DefaultOffer()
	for name, value := range options {
		if allowed := o.set(name, value); allowed != "" {
			return o, message.Errorf(message.Protocol, "wireFormat.%s: %q is not %s", name, value, allowed)
		}
	}
	if !o.Options.MaxFrameSizeEnabled {
		o.FrameLimit = 0
	}
	if o.Options.CacheEnabled && o.Options.CacheSize > 0 && o.Options.CacheSize < 100 {
		return o, message.Errorf(message.Limit,
			"wireFormat.cacheSize=%d would hang a Java peer; use 0 or at least 100", o.Options.CacheSize)
	}
	return o, nil
}

// set gives an option its value, or says what it takes; "" is that it took this one, or that there
// is no such option.
func (o *Offer) set(name, value string) (allowed string) {
	h := &o.Options
	var n int64
	switch name {
	case "version":
		allowed = integer(value, 1, openwire.MaxVersion, &n)
		o.Version = int(n)
		return allowed
	case "minmumWireFormatVersion", "minimumWireFormatVersion":
		allowed = integer(value, 0, openwire.MaxVersion, &n)
		o.MinVersion = int(n)
		return allowed
	case "tightEncodingEnabled":
		return boolean(value, &h.TightEncodingEnabled)
	case "cacheEnabled":
		return boolean(value, &h.CacheEnabled)
	case "cacheSize":
		allowed = integer(value, 0, math.MaxInt16, &n)
		h.CacheSize = int32(n)
		return allowed
	case "tcpNoDelayEnabled":
		return boolean(value, &h.TCPNoDelayEnabled)
	case "sizePrefixDisabled":
		if !strings.EqualFold(value, "false") {
			return "false: frames need their size"
		}
	case "maxInactivityDuration":
		allowed = integer(value, math.MinInt32, math.MaxInt32, &n)
		h.MaxInactivityDuration = time.Duration(max(n, 0)) * time.Millisecond
		return allowed
	case "maxInactivityDurationInitalDelay":
		allowed = integer(value, 0, math.MaxInt32, &n)
		h.MaxInactivityDurationInitialDelay = time.Duration(n) * time.Millisecond
		return allowed
	case "maxFrameSize":
		allowed = integer(value, 1, math.MaxInt64, &n)
		h.MaxFrameSize, o.FrameLimit = n, n
		return allowed
	case "host":
		h.Host = value
	case "maxFrameSizeEnabled":
		return boolean(value, &h.MaxFrameSizeEnabled)
	}
	return ""
}

// integer reads a number, or says which it may be.
func integer(text string, low, high int64, to *int64) (allowed string) {
	n, err := strconv.ParseInt(text, 10, 64)
	*to = n
	if err != nil || n < low || n > high {
		return fmt.Sprintf("a whole number from %d to %d", low, high)
	}
	return ""
}

func boolean(text string, to *bool) (allowed string) {
	b, err := strconv.ParseBool(strings.ToLower(text))
	*to = b
	if err != nil {
		return "true or false"
	}
	return ""
}

// Peer is what the hellos told.
type Peer struct {
	Remote       string // its address
	Format       openwire.Format
	Options      openwire.HelloOptions // what it offered
	Version      int                   // what it offered
	HopwireLevel int                   // the lower of both levels; 0 when it is no Hopwire broker
	HopwireRun   int64                 // another after each start; 0 when it does not tell
}

// MaxFrame is the largest frame that the peer takes, in bytes; 0 is no limit.
func (p *Peer) MaxFrame() int64 {
	if p.Options.MaxFrameSize <= 0 || p.Options.MaxFrameSize > math.MaxInt32 {
		return 0
	}
	return p.Options.MaxFrameSize
}

// agree reads the peer's hello against ours.
func (o *Offer) agree(ours *openwire.WireFormatInfo, frame []byte, remote string) (*Peer, error) {
	theirs, err := openwire.DecodeHello(frame)
	if err != nil {
		return nil, err
	}
	if err := openwire.RequireVersion(theirs, o.MinVersion); err != nil {
		return nil, err
	}
	f, err := openwire.Negotiate(ours, theirs)
	if err != nil {
		return nil, err
	}
	p := &Peer{Remote: remote, Format: f, Version: int(theirs.Version)}
	if p.Options, err = theirs.Options(); err != nil {
		return nil, err
	}
	for _, e := range p.Options.Extra {
		switch n := e.Value.(type) {
		case int32:
			if e.Key == levelOption && n > 0 {
				p.HopwireLevel = int(min(n, Level))
			}
		case int64:
			if e.Key == runOption {
				p.HopwireRun = n
			}
		}
	}
	return p, nil
}
