package openwire

import "time"

// Format is what two hellos agree on; both directions use it after the hellos.
type Format struct {
	Version      int           // 1..MaxVersion
	Tight        bool          // tight encoding, else loose
	Cache        bool          // object cache
	CacheSize    int           // slots of the object cache; 0 = 16383
	StackTrace   bool          // throwables carry stack and cause
	MaxFrameSize int64         // bytes of a frame without its size; 0 = no limit agreed
	TCPNoDelay   bool          // both sides ask for TCP_NODELAY
	Inactivity   time.Duration // silence that ends the connection; 0 = no monitor
	InitialDelay time.Duration // before the first check
}
