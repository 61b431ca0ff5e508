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
		"tcp://u:p@h:01":      {Scheme: "tcp", Host: "h", Port: "1"},
		"tcp://u:p/w@h:1/x":   {Scheme: "tcp", Host: "h", Port: "1", Path: "/x"},
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
		"tcp://a:1,b:2": "brackets", "tcp://h h": "no host", "tcp://[h": "brackets",
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
	} {
		if got := Shown(uri); got != want {
			t.Errorf("%s is shown as %s", uri, got)
		}
	}
}
