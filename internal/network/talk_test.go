package network

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func drawKeys(t *rapid.T) []DoubtKey {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) DoubtKey {
		var k DoubtKey
		k.Destination.Kind = message.Kind(rapid.IntRange(1, 4).Draw(t, "kind"))
		k.Destination.Name = rapid.StringN(1, 20, -1).Draw(t, "name")
		copy(k.Key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
		return k
	}), 1, 40).Draw(t, "keys")
}

func TestTalkSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		talk := Talk{ID: rapid.Uint64().Draw(t, "id"),
			Kind: TalkKind(rapid.IntRange(1, 3).Draw(t, "kind")),
			Seen: rapid.Bool().Draw(t, "seen")}
		switch talk.Kind {
		case Known:
			talk.Known = rapid.SliceOfN(rapid.Bool(), 1, MaxTalkKeys).Draw(t, "known")
		case Ask:
			talk.Keys = drawKeys(t)
			talk.Links = rapid.SliceOfN(rapid.Map(rapid.StringN(1, 20, -1),
				func(s string) message.ConnectionID { return message.ConnectionID(s) }),
				0, 3).Draw(t, "links")
			if len(talk.Links) == 0 {
				talk.Links = nil
			}
		}
		got, err := ParseTalk(talk.Encode())
		if err != nil || !reflect.DeepEqual(got, talk) {
			t.Fatalf("%q came back as %+v %v", talk.Encode(), got, err)
		}
	})
}

func TestTalkFitsAnOpenWireString(t *testing.T) {
	for _, name := range []string{"q", strings.Repeat("x", 300), strings.Repeat("é", 900)} {
		keys := make([]DoubtKey, 1500)
		for i := range keys {
			keys[i].Destination = message.Destination{Kind: message.Queue, Name: name}
			if i%2 == 0 && len(name) > 1 {
				keys[i].Destination.Name += "2"
			}
		}
		var links []message.ConnectionID
		for l := message.ConnectionID("ID:x"); LinksFit(append(links, l)); {
			links = append(links, l)
		}
		n := FitsTalk(links, keys)
		ask := Talk{Kind: Ask, ID: 1 << 63, Links: links, Keys: keys[:n]}
		if size := len(ask.Encode()); size > 65535 || n < 1 || n > MaxTalkKeys {
			t.Errorf("%d keys in %d bytes", n, size)
		}
	}
	if n := FitsTalk(nil, make([]DoubtKey, 1200)); n != MaxTalkKeys {
		t.Errorf("short names: %d keys", n)
	}
}

func TestTalkThatMakesNoSenseIsAProtocolError(t *testing.T) {
	for _, text := range []string{"", "hopwire/1", "hopwire/2 ask 1", "hopwire/1 ask x\n",
		"hopwire/1 sing 1",
		"hopwire/1 settled 1\nqueue \"q\" " + strings.Repeat("A", 22),
		"hopwire/1 known 1", "hopwire/1 known 1 012", "hopwire/1 ask 1\nqueue q",
		"hopwire/1 ask 1\nlink x", "hopwire/1 ask 1\nlink \"\"",
		"hopwire/1 ask 1\nqueue \"q\" short", "hopwire/1 ask 1\nbarrel \"q\" " +
			strings.Repeat("A", 22), "hopwire/1 known 1 " + strings.Repeat("0", 501)} {
		if _, err := ParseTalk(text); message.KindOf(err) != message.Protocol {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseTalk(f *testing.F) {
	f.Add("hopwire/1 known 7 0110")
	f.Add(Talk{Kind: Ask, ID: 7, Keys: []DoubtKey{{Destination: message.Destination{
		Kind: message.Queue, Name: "a b\n\"é"}}}}.Encode())
	f.Fuzz(func(t *testing.T, text string) {
		talk, err := ParseTalk(text)
		if err != nil {
			return
		}
		again, err := ParseTalk(talk.Encode())
		if err != nil || !reflect.DeepEqual(again, talk) {
			t.Fatalf("%+v came back as %+v %v", talk, again, err)
		}
	})
}
