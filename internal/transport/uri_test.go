package transport

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUrisOfPlainSocketsAreRead(t *testing.T) {
	for _, c := range []struct{ text, address string }{
		{"tcp://localhost:61616", "localhost:61616"},
		{"nio://0.0.0.0:61617?maximumConnections=5", "0.0.0.0:61617"},
		{"TCP://host", "host:61616"},
		{"tcp://[::1]:1/", "[::1]:1"},
		{"tcp://[::1]", "[::1]:61616"},
	} {
		u, err := ParseURI(c.text)
		if err != nil || u.Address() != c.address {
			t.Errorf("%s: %s, %v", c.text, u.Address(), err)
		}
	}
}

func TestUrisThatCannotWorkSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		"ssl://h:1":              "not supported yet",
		"auto+nio+ssl://h:1":     "not supported yet",
		"vm://x":                 `"vm" is not known`,
		"h:61616":                `uri "h:61616": no tcp:// in front; use tcp://host:port`,
		"127.0.0.1:61616":        "no tcp:// in front",
		"":                       "it is empty; use tcp://host:port",
		"tcp:h:1":                "no // behind tcp:",
		"tcp://":                 "no host",
		"tcp://:1":               "no host",
		"tcp://h h:1":            `"h h" is no host`,
		"tcp://::1:61616":        "an IPv6 address stands in brackets",
		"tcp://a:1,tcp://b:2":    "one address stands here; several are a list in parentheses",
		"tcp://[::1:61616":       "brackets that do not match",
		"tcp://u:secret@h:x":     `uri "tcp://h:...": what stands behind the host's colon is no port`,
		"tcp://h:port":           `"tcp://h:..."`,
		"tcp://h:99999":          "no port",
		"tcp://h:1?soTimeout":    `soTimeout: "" is not a whole number from 0 to 2147483647`,
		"tcp://h:1?a=%zz":        "option 1: a %",
		"tcp://h:1?soTimeout=ab": `soTimeout: "ab" is not a whole number`,
	} {
		u, err := ParseURI(text)
		if err == nil {
			_, err = ParseOptions(u)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestOptionsOfActiveMQHaveTheirMeaning(t *testing.T) {
	u, err := ParseURI("tcp://h:1?maximumConnections=7&amp;transport.soWriteTimeout=2000&" +
		"wireFormat.maxFrameSize=104857600&maxInactivityDuration=1&tcpNoDelay=false&backlog=9&" +
		"transport.keepAlive=true&useKeepAlive=false&invented=1&connectionTimeout=5")
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParseOptions(u)
	if err != nil {
		t.Fatal(err)
	}
	if o.MaximumConnections != 7 || o.StallTimeout != 2*time.Second || o.TCPNoDelay ||
		!o.KeepAlive || o.SendKeepAlive || !o.InactivityMonitor ||
		o.ConnectionTimeout != 5*time.Millisecond ||
		o.WireFormat["maxFrameSize"] != "104857600" || o.WireFormat["maxInactivityDuration"] != "1" ||
		!slices.Equal(o.Ignored, []string{"invented"}) {
		t.Errorf("%+v", o)
	}
}

func TestAPlusInAnOptionIsABlankAsInActiveMQ(t *testing.T) {
	u, err := ParseURI("tcp://h:1?a=x+y%2Bz&%62=%26")
	if err != nil || u.Options["a"] != "x y+z" || u.Options["b"] != "&" {
		t.Errorf("%q, %v", u.Options, err)
	}
}

func TestErrorsShowAUriWithoutItsOptions(t *testing.T) {
	for _, text := range []string{
		"ftp://h:1?password=secret", "tcp://h:x?password=secret", "h?password=secret",
		"tcp://h:1?password=%secret", "tcp://h:1?soTimeout=x&password=secret",
	} {
		u, err := ParseURI(text)
		if err == nil {
			_, err = ParseOptions(u)
		}
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
