package bridge

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestPropertiesOfARealBroker(t *testing.T) {
	o := optionsOf("#\n#Mon Nov 30 00:29:53 UTC 2026\nconsumerTTL=2\n" +
		"suppressDuplicateQueueSubscriptions=true\nlocalUri=vm\\://netE\nprefetchSize=500\n" +
		"consumerPriorityBase=-7\nmessageTTL=-1\nclientIdToken=_\n" +
		"uri=static\\:(tcp\\://127.0.0.1\\:62012)\n" +
		"destinationFilter=ActiveMQ.Advisory.Consumer.Topic.NET.>\nsyncDurableSubs=true\n" +
		"dynamicallyIncludedDestinations=[topic\\://NET.>, queue\\://x?forceDurable\\=true]\n" +
		"advisoryAckPercentage=what\nname=ncsync\nbrokerName=netE\n")
	want := DefaultOptions(5)
	want.Name, want.ConsumerTTL, want.MessageTTL, want.PrefetchSize = "ncsync", 2, -1, 500
	want.SuppressDuplicateQueueSubscriptions, want.ConsumerPriorityBase = true, -7
	want.DestinationFilter = "ActiveMQ.Advisory.Consumer.Topic.NET.>"
	want.DynamicallyIncluded = []message.Destination{topic("NET.>"), queue("x")}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
}

func TestSettingsTravelButCredentialsDoNot(t *testing.T) {
	o := DefaultOptions(6)
	o.Name, o.Duplex, o.StaticBridge, o.MessageTTL = "n:=# \\é", true, true, 9
	o.Excluded = []message.Destination{queue("a.>"), topic("b")}
	o.UserName, o.Password, o.RemotePassword = "u", "secret", "secret"
	o.InDoubtTimeout = NeverTimeout
	o.DestinationFilter = "ActiveMQ.Advisory.Consumer.>"
	text := o.properties(peerInfo)
	if strings.Contains(text, "secret") {
		t.Errorf("a password travels:\n%s", text)
	}
	got := optionsOf(text)
	o.UserName, o.Password, o.RemotePassword = "", "", ""
	if !reflect.DeepEqual(got, o) {
		t.Errorf("got  %+v\nwant %+v\n%s", got, o, text)
	}
}

func TestSetByAttributeName(t *testing.T) {
	o := DefaultOptions(5)
	for _, c := range [][2]string{{"networkTTL", "3"}, {"messageTTL", "5"}, {"inDoubtTimeout",
		"never"}, {"initialReconnectDelay", "250"}, {"alwaysSyncSend", "FALSE"}} {
		if known, err := o.Set(c[0], c[1]); !known || err != nil {
			t.Errorf("%s: %v %v", c[0], known, err)
		}
	}
	if o.ConsumerTTL != 3 || o.MessageTTL != 5 || o.InDoubtTimeout != NeverTimeout ||
		o.InitialReconnectDelay != 250*time.Millisecond || o.AlwaysSyncSend {
		t.Errorf("%+v", o)
	}
	if known, _ := o.Set("nonsense", "1"); known {
		t.Error("nonsense is known")
	}
	if _, err := o.Set("prefetchSize", "many"); err == nil {
		t.Error("many is a number")
	}
}

func TestInDoubtTimeoutForEverHasTwoNames(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{{"-1", NeverTimeout}, {" -1 ", NeverTimeout}, {"never", NeverTimeout}, {"1", time.Millisecond},
		{"300000", 5 * time.Minute}} {
		text, want := c.text, c.want
		o := DefaultOptions(5)
		if _, err := o.Set("inDoubtTimeout", text); err != nil || o.InDoubtTimeout != want {
			t.Errorf("%q: %v, %v, want %v", text, o.InDoubtTimeout, err, want)
		}
		if err := o.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"0", "-2"} {
		o := DefaultOptions(5)
		if _, err := o.Set("inDoubtTimeout", text); err == nil && o.Validate() == nil {
			t.Errorf("%q is taken as %v", text, o.InDoubtTimeout)
		}
	}
}

func TestValidateNamesTheAttribute(t *testing.T) {
	for name, edit := range map[string]func(*Options){
		"prefetchSize":          func(o *Options) { o.PrefetchSize = 0 },
		"name":                  func(o *Options) { o.Name = "" },
		"messageTTL":            func(o *Options) { o.MessageTTL = -2 },
		"inDoubtTimeout":        func(o *Options) { o.InDoubtTimeout = 0 },
		"advisoryAckPercentage": func(o *Options) { o.AdvisoryAckPercentage = 101 },
	} {
		o := DefaultOptions(5)
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		edit(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPriorityFallsWithTheHops(t *testing.T) {
	o := DefaultOptions(6)
	for hops, want := range []int8{1: -5, 2: -8, 3: -9} {
		if got := o.priority(hops); hops > 0 && got != want {
			t.Errorf("%d hops: %d, want %d", hops, got, want)
		}
	}
	o = DefaultOptions(5)
	if got := o.priority(1); got != 0 {
		t.Errorf("not decreased: %d", got)
	}
}
