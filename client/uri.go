package client

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/address"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

// endpoint is one broker's address and how to talk to it.
type endpoint struct {
	addr           string // host:port
	hello          openwire.HelloOptions
	version        int
	connectTimeout time.Duration
	keepAlive      bool // TCP keep-alive
	monitor        bool // watch for silence
}

// failover is how lost connections are replaced.
type failover struct {
	initialDelay    time.Duration
	maxDelay        time.Duration
	maxAttempts     int // -1 is no limit
	startupAttempts int // -1 is no limit
	randomize       bool
	timeout         time.Duration // how long calls wait for a connection; 0 or less is no limit
	multiplier      float64
	exponential     bool
}

// target is what a URI says.
type target struct {
	uri       string
	endpoints []endpoint
	failover  *failover // nil: one connection, and its loss is final
	settings  settings
}

// setter gives an option its value.
type setter func(value string) error

func parseURI(uri string) (*target, error) {
	t := &target{uri: uri, settings: defaultSettings()}
	if rest, ok := strings.CutPrefix(uri, "failover:"); ok {
		if err := t.parseFailover(rest); err != nil {
			return nil, fmt.Errorf("%s: %w", address.Shown(uri), err)
		}
		return t, nil
	}
	if err := t.parseTCP(uri); err != nil {
		return nil, fmt.Errorf("%s: %w", address.Shown(uri), err)
	}
	return t, nil
}

func (t *target) parseFailover(rest string) error {
	t.failover = &failover{
		initialDelay: 10 * time.Millisecond, maxDelay: 30 * time.Second, maxAttempts: -1,
		startupAttempts: -1, randomize: true, multiplier: 2, exponential: true,
	}
	list, tail, err := address.Members(rest)
	if err != nil {
		return err
	}
	query, found := strings.CutPrefix(tail, "?")
	if !found && tail != "" {
		return fmt.Errorf("%q after the list of brokers; options begin with '?'", address.Shown(tail))
	}
	f := t.failover
	options := t.jmsOptions()
	options["initialReconnectDelay"] = milliseconds(&f.initialDelay)
	options["maxReconnectDelay"] = milliseconds(&f.maxDelay)
	options["maxReconnectAttempts"] = number(&f.maxAttempts)
	options["startupMaxReconnectAttempts"] = number(&f.startupAttempts)
	options["randomize"] = truth(&f.randomize)
	options["timeout"] = milliseconds(&f.timeout)
	options["backOffMultiplier"] = decimal(&f.multiplier)
	options["useExponentialBackOff"] = truth(&f.exponential)
	if err := apply(query, options); err != nil {
		return err
	}
	for _, one := range list {
		if err := t.parseTCP(one); err != nil {
			return fmt.Errorf("%q: %w", address.Shown(one), err)
		}
		t.endpoints[len(t.endpoints)-1].hello.Host = ""
	}
	return nil
}

func (t *target) parseTCP(uri string) error {
	u, err := address.Split(uri)
	switch {
	case err != nil:
		return err
	case u.Scheme != "tcp":
		return fmt.Errorf("scheme %q; use tcp://host:port or failover:(tcp://...)", u.Scheme)
	}
	if err := u.Reachable(); err != nil {
		return err
	}
	e := endpoint{
		addr:    net.JoinHostPort(u.Host, cmp.Or(u.Port, transport.DefaultPort)),
		hello:   openwire.DefaultHelloOptions(),
		version: openwire.MaxVersion, connectTimeout: 30 * time.Second, monitor: true,
	}
	e.hello.Host = u.Host
	options := t.jmsOptions()
	h := &e.hello
	options["wireFormat.tightEncodingEnabled"] = truth(&h.TightEncodingEnabled)
	options["wireFormat.cacheEnabled"] = truth(&h.CacheEnabled)
	options["wireFormat.cacheSize"] = number32(&h.CacheSize)
	options["wireFormat.stackTraceEnabled"] = truth(&h.StackTraceEnabled)
	options["wireFormat.tcpNoDelayEnabled"] = truth(&h.TCPNoDelayEnabled)
	options["wireFormat.maxInactivityDuration"] = milliseconds(&h.MaxInactivityDuration)
	options["wireFormat.maxInactivityDurationInitalDelay"] = milliseconds(
		&h.MaxInactivityDurationInitialDelay)
	options["wireFormat.maxFrameSize"] = number64(&h.MaxFrameSize)
	options["wireFormat.maxFrameSizeEnabled"] = truth(&h.MaxFrameSizeEnabled)
	options["wireFormat.version"] = number(&e.version)
	options["wireFormat.host"] = word(&h.Host)
	options["connectionTimeout"] = milliseconds(&e.connectTimeout)
	options["keepAlive"] = truth(&e.keepAlive)
	options["useInactivityMonitor"] = truth(&e.monitor)
	if err := apply(u.Query, options); err != nil {
		return err
	}
	if e.version < 1 || e.version > openwire.MaxVersion {
		return fmt.Errorf("wireFormat.version=%d; it may be 1 to %d", e.version, openwire.MaxVersion)
	}
	if _, err := openwire.NewHello(e.version, e.hello); err != nil {
		return err
	}
	t.endpoints = append(t.endpoints, e)
	return nil
}

// jmsOptions are the options of the connection itself.
func (t *target) jmsOptions() map[string]setter {
	s := &t.settings
	p, r := &s.prefetch, &s.redelivery
	const prefetch, redelivery = "jms.prefetchPolicy.", "jms.redeliveryPolicy."
	return map[string]setter{
		"jms.userName":                    word(&s.user),
		"jms.password":                    word(&s.password),
		"jms.clientID":                    word(&s.clientID),
		"jms.useAsyncSend":                truth(&s.asyncSend),
		"jms.alwaysSyncSend":              truth(&s.alwaysSync),
		"jms.useCompression":              truth(&s.compress),
		"jms.dispatchAsync":               truth(&s.dispatchAsync),
		"jms.exclusiveConsumer":           truth(&s.exclusive),
		"jms.sendTimeout":                 milliseconds(&s.sendTimeout),
		prefetch + "queuePrefetch":        number32(&p.Queue),
		prefetch + "topicPrefetch":        number32(&p.Topic),
		prefetch + "queueBrowserPrefetch": number32(&p.Browser),
		prefetch + "durableTopicPrefetch": number32(&p.Durable),
		prefetch + "all": func(value string) error {
			var all int32
			err := number32(&all)(value)
			*p = Prefetch{all, all, all, all}
			return err
		},
		redelivery + "maximumRedeliveries":    number(&r.Maximum),
		redelivery + "initialRedeliveryDelay": milliseconds(&r.Initial),
		redelivery + "redeliveryDelay":        milliseconds(&r.Delay),
		redelivery + "maximumRedeliveryDelay": milliseconds(&r.MaxDelay),
		redelivery + "useExponentialBackOff":  truth(&r.Exponential),
		redelivery + "backOffMultiplier":      decimal(&r.Multiplier),
	}
}

// apply sets the options of a query; one that is not known is an error.
func apply(query string, options map[string]setter) error {
	given, err := address.Options(query)
	if err != nil {
		return err
	}
	for _, o := range given {
		set, ok := options[o.Name]
		if !ok {
			return fmt.Errorf("unknown option %s; known are %s", o.Name, alike(o.Name, options))
		}
		if err := set(o.Value); err != nil {
			return fmt.Errorf("option %s: %w", o.Name, err)
		}
	}
	return nil
}

// alike lists the known options that share the most of a name's dotted prefix.
func alike(key string, options map[string]setter) string {
	prefix := key[:strings.LastIndexByte(key, '.')+1]
	var same, plain []string
	for name := range options {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			same = append(same, name)
		}
		if !strings.HasPrefix(name, "jms.") {
			plain = append(plain, name)
		}
	}
	if same == nil {
		plain = append(plain, "jms.*")
		same = plain
	}
	slices.Sort(same)
	return strings.Join(same, ", ")
}

func word(to *string) setter {
	return func(value string) error { *to = value; return nil }
}

func truth(to *bool) setter {
	return func(value string) error {
		b, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		*to = b
		return nil
	}
}

// whole reads a whole number of so many bits.
func whole(value string, bits int) (int64, error) {
	n, err := strconv.ParseInt(value, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number of %d bits", value, bits)
	}
	return n, nil
}

func number(to *int) setter {
	return func(value string) error {
		n, err := whole(value, strconv.IntSize)
		*to = int(n)
		return err
	}
}

func number32(to *int32) setter {
	return func(value string) error {
		n, err := whole(value, 32)
		*to = int32(n)
		return err
	}
}

func number64(to *int64) setter {
	return func(value string) (err error) { *to, err = whole(value, 64); return err }
}

func decimal(to *float64) setter {
	return func(value string) error {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("%q is no number", value)
		}
		*to = f
		return nil
	}
}

func milliseconds(to *time.Duration) setter {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no number of milliseconds", value)
		case n > math.MaxInt64/int64(time.Millisecond):
			return fmt.Errorf("more milliseconds than fit")
		}
		*to = time.Duration(n) * time.Millisecond
		return nil
	}
}
