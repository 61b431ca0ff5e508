package address

import (
	"slices"
	"strings"
	"testing"
)

func TestAddressesAreTakenApart(t *testing.T) {
	for text, want := range map[string]Address{
		"tcp://h:1":           {Scheme: "tcp", Host: "h", Port: "1"},
		"TCP://h\n":           {Scheme: "tcp", Host: "h"},
		"tcp://[::1]:1/p?a=b": {Scheme: "tcp", Host: "::1", Port: "1", Path: "/p", Query: "a=b"},
		"tcp://[::1]":         {Scheme: "tcp", Host: "::1"},
		"tcp://u:p@h:01":      {Scheme: "tcp", Host: "h", Port: "1", User: true},
		"tcp://u:p/w@h:1/x":   {Scheme: "tcp", Host: "h", Port: "1", Path: "/x", User: true},
		"ws://h:1/chat@room":  {Scheme: "ws", Host: "h", Port: "1", Path: "/chat@room"},
		"ws://h/@":            {Scheme: "ws", Host: "h", Path: "/@"},
		"ws://[::1]:1/a@b/c@": {Scheme: "ws", Host: "::1", Port: "1", Path: "/a@b/c@"},
		"ws://u:p@h:1/chat@r": {Scheme: "ws", Host: "h", Port: "1", Path: "/chat@r", User: true},
		"tcp://u:p/1/w@h:1/x": {Scheme: "tcp", Host: "h", Port: "1", Path: "/x", User: true},
		"vm:x?y":              {Scheme: "vm", Path: "x", Query: "y", Bare: true},
		"vm://":               {Scheme: "vm"},
	} {
		if got, err := Split(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "it is empty", "?x=y": "it is empty", "h": "no tcp://", "h:61616": "no tcp://",
		"10.0.0.1:1": "no tcp://", "tcp://h:": "no port", "tcp://h:65536": "no port",
		"tcp://a:1,b:2": "a list in parentheses", "tcp://h h": "no host", "tcp://[h": "brackets",
	} {
		if got, err := Split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, got, err, want)
		}
	}
	if (Address{Scheme: "tcp", Bare: true}).Reachable() == nil || (Address{}).Reachable() == nil ||
		(Address{Host: "h"}).Reachable() != nil {
		t.Error("what leads to a host must be told from what does not")
	}
}

func TestListsAreTakenApart(t *testing.T) {
	for rest, want := range map[string][]string{ // the tail comes last
		"(a,b)?x=y":             {"a", "b", "?x=y"},
		"//(a, f:(b,c)?d,)/p":   {"a", "f:(b,c)?d", "/p"},
		"a?x=y,b":               {"a?x=y", "b", ""},
		"tcp://a:1?x=(1,2),b:2": {"tcp://a:1?x=(1,2)", "b:2", ""},
	} {
		got, tail, err := Members(rest)
		if err != nil || !slices.Equal(append(got, tail), want) {
			t.Errorf("%s: %q, %q, %v", rest, got, tail, err)
		}
	}
	for _, rest := range []string{"", "()", "(,)", "(a", "((a)"} {
		if got, _, err := Members(rest); err == nil {
			t.Errorf("%s gives %q", rest, got)
		}
	}
}

func TestOptionsAreDecoded(t *testing.T) {
	got, err := Options("a=x+y%2Bz&amp;%62=%26&c=&&amp;d&e=1;f=2")
	want := []Option{{"a", "x y+z"}, {"b", "&"}, {"c", ""}, {"d", ""}, {"e", "1;f=2"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, query := range []string{"a=%zz", "%=x"} {
		if got, err := Options(query); err == nil {
			t.Errorf("%s gives %q", query, got)
		}
	}
}

func TestASecretIsNotShown(t *testing.T) {
	for uri, want := range map[string]string{
		"tcp://u:secret@h:1?password=secret":         "tcp://h:1",
		"tcp://u:sec/ret@h:1":                        "tcp://h:1",
		"failover:(tcp://a?p=secret,tcp://b)?c=d":    "failover:(tcp://a,tcp://b)",
		"static:(tcp://u:secret@a,tcp://secret@b:1)": "static:(tcp://a,tcp://b:1)",
		"static:(tcp://u:se,cret@h:1)":               "static:(tcp://h:1)",
		"static:(tcp://u:1,cret@h:1,tcp://b)":        "static:(tcp://h:1,tcp://b)",
		"tcp://u:se)cret@h:1":                        "tcp://h:1",
		"tcp://u:se(cr@e)t@h:1":                      "tcp://h:1",
		"tcp://u:se?cret@h:1?x=a@b":                  "tcp://b",
		"failover:(tcp://u:se?cret@h:1,tcp://b)?c=d": "failover:(tcp://h:1,tcp://b)",
		"tcp://h:1?user=a@b":                         "tcp://h:1",
		"failover:(tcp://h:1)?user=a@b&x=//secret":   "failover:(tcp://h:1)",
		"tcp://h?x=http://u:secret@h":                "tcp://h",
		"tcp://u:se//cret":                           "tcp://u:...",
		"tcp://u:secret":                             "tcp://u:...", // of one that a , cut
		"tcp://u:secret/path":                        "tcp://u:...",
		"tcp://u:se:cret":                            "tcp://u:...",
		"u:se?cret@h:1":                              "h:1",
		"failover:(u:secret@h:1,tcp://b)":            "failover:(h:1,tcp://b)",
	} {
		if got := Shown(uri); got != want {
			t.Errorf("%s is shown as %s, want %s", uri, got, want)
		}
	}
	for _, uri := range []string{"", "h", "h:1", "tcp://", "tcp://h:", "tcp://h:1/path",
		"tcp://h:99999", "tcp://h h:1", "tcp://::1:61616", "tcp://[::1:1", "tcp://[fe80::1%eth0]:1",
		"vm:x", "a//b//c", "static://(tcp://a:1,failover:(tcp://b,tcp://c:3))", "tcp://a:1,b:2",
		"tcp://h:1)", ":", "(", "//",
	} {
		if got := Shown(uri); got != uri {
			t.Errorf("%s, which has no secret, is shown as %s", uri, got)
		}
	}
}

func TestNoErrorShowsASecret(t *testing.T) {
	for _, text := range []string{"tcp://u:secret", "tcp://u:secret?x@h:1", "tcp://u:1secret",
		"tcp://u:se[secret", "tcp://u:[secret]", "tcp://u:secret:x", "tcp://u:secret/w",
	} {
		if _, err := Split(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"tcp://h:99999": `"99999" is no port`,
		"tcp://u:secret": "what stands behind the host's colon is no port"} {
		if _, err := Split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
