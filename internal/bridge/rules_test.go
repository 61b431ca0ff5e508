package bridge

import (
	"testing"

	"hopwire/internal/message"
)

func queue(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

func topic(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func TestListsDecideWhatIsCarried(t *testing.T) {
	r := rules{
		dynamic:  []message.Destination{queue("OK.>"), topic("news")},
		static:   []message.Destination{queue("fixed")},
		excluded: []message.Destination{queue("OK.SECRET.>")},
		temps:    true,
	}
	temp := message.Destination{Kind: message.TempQueue, Name: "ID:x:1"}
	for _, c := range []struct {
		d    message.Destination
		want string
		why  message.Reason
	}{
		{queue("OK.1"), "OK.1", ""},
		{queue("OK.SECRET.1"), "", message.Excluded},
		{queue("OTHER.1"), "", message.NotIncluded},
		{queue("fixed"), "fixed", ""},
		{queue(">"), "OK.>", ""},
		{queue("*.1"), "OK.1", ""},
		{topic("OK.1"), "", message.NotIncluded},
		{topic("news"), "news", ""},
		{temp, "ID:x:1", ""},
	} {
		got, why := r.permit(c.d)
		if why != c.why || len(got) > 0 != (c.want != "") || len(got) > 0 && got[0].Name != c.want {
			t.Errorf("permit(%v) = %v %q, want %q %q", c.d, got, why, c.want, c.why)
		}
	}
	if r.refuses(queue("OK.SECRET.1")) != message.Excluded {
		t.Error("a subscription wider than the exclusion must not carry what is excluded")
	}
}
