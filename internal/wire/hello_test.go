package wire

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// peerHello is the hello of a peer with ActiveMQ's defaults.
func peerHello(t *testing.T, version int, change func(*openwire.HelloOptions)) []byte {
	t.Helper()
	o := openwire.DefaultHelloOptions()
	if change != nil {
		change(&o)
	}
	w, err := openwire.NewHello(12, o)
	if err != nil {
		t.Fatal(err)
	}
	w.Version = int32(version)
	frame, err := w.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	return frame[4:]
}

func agree(t *testing.T, o Offer, frame []byte) (*Peer, error) {
	t.Helper()
	ours, err := openwire.NewHello(o.Version, o.Options)
	if err != nil {
		t.Fatal(err)
	}
	return o.agree(ours, frame, "tcp://1.2.3.4:5")
}

func TestLooseWithoutCacheUnlessTheUriAsksForMore(t *testing.T) {
	p, err := agree(t, DefaultOffer(), peerHello(t, 12, nil))
	if err != nil || p.Format.Tight || p.Format.Cache || p.Format.StackTrace ||
		p.Format.Version != 12 || p.HopwireLevel != 0 || p.MaxFrame() != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	o, err := OfferOf(map[string]string{
		"tightEncodingEnabled": "true", "cacheEnabled": "true",
		"stackTraceEnabled": "true", "maxInactivityDuration": "9000", "version": "9",
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err = agree(t, o, peerHello(t, 12, nil))
	if err != nil || !p.Format.Tight || !p.Format.Cache || p.Format.StackTrace ||
		p.Format.Version != 9 || p.Format.Inactivity != 9*time.Second {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestHopwireBrokersKnowEachOther(t *testing.T) {
	o := DefaultOffer()
	w, err := openwire.NewHello(o.Version, o.as(77).Options)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := w.AppendFrame(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := agree(t, o, frame[4:])
	if err != nil || p.HopwireLevel != Level || p.HopwireRun != 77 ||
		p.MaxFrame() != DefaultMaxFrameSize {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestVersionsAreNegotiatedDownAndNonsenseIsRefused(t *testing.T) {
	for version, want := range map[int]int{99: 12, 12: 12, 6: 6, 1: 1, 0: 0, -1: 0} {
		p, err := agree(t, DefaultOffer(), peerHello(t, version, nil))
		switch {
		case want == 0 && err == nil:
			t.Errorf("version %d was taken", version)
		case want > 0 && (err != nil || p.Format.Version != want):
			t.Errorf("version %d: %+v, %v", version, p, err)
		}
	}
	o, err := OfferOf(map[string]string{"minmumWireFormatVersion": "10"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agree(t, o, peerHello(t, 9, nil)); err == nil {
		t.Error("an older peer than minmumWireFormatVersion was taken")
	}
}

func TestImpossibleWireFormatOptionsAreNamed(t *testing.T) {
	for option, allowed := range map[string]string{
		"cacheSize=50":                       "use 0 or at least 100",
		"cacheSize=-1":                       `"-1" is not a whole number from 0 to 32767`,
		"version=13":                         `"13" is not a whole number from 1 to 12`,
		"minmumWireFormatVersion=x":          `"x" is not a whole number from 0 to 12`,
		"sizePrefixDisabled=true":            `"true" is not false`,
		"maxFrameSize=0":                     `"0" is not a whole number from 1 to`,
		"tightEncodingEnabled=perhaps":       `"perhaps" is not true or false`,
		"maxInactivityDuration=x":            `"x" is not a whole number from -2147483648 to 2147483647`,
		"maxInactivityDurationInitalDelay=y": `"y" is not a whole number from 0 to 2147483647`,
	} {
		name, value, _ := strings.Cut(option, "=")
		options := map[string]string{"cacheEnabled": "true", name: value}
		if _, err := OfferOf(options); err == nil || !strings.Contains(err.Error(), allowed) ||
			!strings.Contains(err.Error(), "wireFormat."+name) {
			t.Errorf("%s: %v, want %s", option, err, allowed)
		}
	}
	if o, err := OfferOf(map[string]string{"maxFrameSizeEnabled": "false"}); err != nil ||
		o.FrameLimit != 0 {
		t.Errorf("without a limit: %d, %v", o.FrameLimit, err)
	}
	if _, err := OfferOf(map[string]string{"somethingNew": "1"}); err != nil {
		t.Errorf("an unknown option: %v", err)
	}
}

func TestOptionsBehindANameAreCutOffAndAConsumersAreKept(t *testing.T) {
	for _, c := range []struct{ in, name, options string }{
		{"orders", "orders", ""},
		{"orders?consumer.prefetchSize=1", "orders", "consumer.prefetchSize=1"},
		{"a,b", "a,b", ""},
		{"a?x=1,topic://b?y=2", "a,topic://b", "x=1"},
	} {
		x := &openwire.ConsumerInfo{Destination: &openwire.Destination{
			Type:         openwire.TypeQueue,
			PhysicalName: c.in,
		}}
		got := NewDecoder(openwire.Format{Version: 12}).consumerInfoIn(x)
		want := message.Destination{Kind: message.Queue, Name: c.name}
		if got.Destination != want || got.DestinationOptions != c.options {
			t.Errorf("%q gives %v and %q", c.in, got.Destination, got.DestinationOptions)
		}
	}
}

func TestOldNetworkFiltersHaveOneTTL(t *testing.T) {
	for version, want := range map[int]int32{9: 3, 10: 5} {
		f := openwire.Format{Version: version}
		e := openwire.NewEncoder(f)
		frame, err := e.Append(nil, &openwire.ConsumerInfo{
			AdditionalPredicate: &openwire.NetworkBridgeFilter{
				NetworkTTL: 3, MessageTTL: 5,
				ConsumerTTL: 5,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewDecoder(f).Decode(frame[4:])
		if err != nil {
			t.Fatal(err)
		}
		if got := c.(*message.ConsumerInfo).Filter; got.MessageTTL != want || got.ConsumerTTL != want {
			t.Errorf("version %d: %+v", version, got)
		}
	}
}
