package openwire

import (
	"fmt"
	"math"
	"time"
)

// Format is what two hellos agree on; both directions use it after the hellos.
type Format struct {
	Version      int           // 1..MaxVersion
	Tight        bool          // tight encoding, else loose
	Cache        bool          // object cache
	CacheSize    int           // slots of the object cache; 0 = 16383
	StackTrace   bool          // throwables carry stack and cause
	MaxFrameSize int64         // bytes of a frame without its size prefix; 0 = none agreed
	TCPNoDelay   bool          // both sides ask for TCP_NODELAY
	Inactivity   time.Duration // silence that ends the connection; 0 = no monitor
	InitialDelay time.Duration // before the first check for silence
}

// Negotiate finds what both hellos allow: the lower version, cache size, frame limit and
// durations, and only what both enable. It fails with one line when the peer's version is 0 or
// less, an option has a wrong type, or both want frames without size.
func Negotiate(local, peer *WireFormatInfo) (Format, error) {
	if peer.Version < 1 {
		return Format{}, helloError(fmt.Sprintf(
			"the peer asks for version %d; versions 1 to %d are spoken here", peer.Version, MaxVersion))
	}
	if local.Version < 1 {
		return Format{}, fmt.Errorf("own hello has version %d", local.Version)
	}
	ours, err := local.Options()
	if err != nil {
		return Format{}, fmt.Errorf("own hello: %w", err)
	}
	theirs, err := peer.Options()
	if err != nil {
		return Format{}, err
	}
	if ours.SizePrefixDisabled && theirs.SizePrefixDisabled {
		return Format{}, helloError("frames without size prefix are not supported; " +
			"remove wireFormat.sizePrefixDisabled")
	}
	return Format{
		Version:      int(min(local.Version, peer.Version, MaxVersion)),
		Tight:        ours.TightEncodingEnabled && theirs.TightEncodingEnabled,
		Cache:        ours.CacheEnabled && theirs.CacheEnabled,
		CacheSize:    agreedCacheSize(ours.CacheSize, theirs.CacheSize),
		StackTrace:   ours.StackTraceEnabled && theirs.StackTraceEnabled,
		MaxFrameSize: lowerPositive(ours.MaxFrameSize, theirs.MaxFrameSize),
		TCPNoDelay:   ours.TCPNoDelayEnabled && theirs.TCPNoDelayEnabled,
		Inactivity:   min(ours.MaxInactivityDuration, theirs.MaxInactivityDuration),
		InitialDelay: min(ours.MaxInactivityDurationInitialDelay,
			theirs.MaxInactivityDurationInitialDelay),
	}, nil
}

// RequireVersion is the check of a connector's wireFormat.minmumWireFormatVersion against the
// version that the peer announced; minimum 0 allows all.
func RequireVersion(peer *WireFormatInfo, minimum int) error {
	if int(peer.Version) >= minimum {
		return nil
	}
	return helloError(fmt.Sprintf("the peer speaks version %d, this connector wants %d or newer; "+
		"lower wireFormat.minmumWireFormatVersion to allow it", peer.Version, minimum))
}

// agreedCacheSize is the lower of the two; either side's 0, or absence, means 16383 for both.
func agreedCacheSize(a, b int32) int {
	if a <= 0 || b <= 0 {
		return defaultCacheSize
	}
	return int(min(a, b, math.MaxInt16))
}

func lowerPositive(a, b int64) int64 {
	switch {
	case a <= 0:
		return max(b, 0)
	case b <= 0:
		return a
	}
	return min(a, b)
}
