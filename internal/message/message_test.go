package message

import (
	"testing"

	"hopwire/openwire/primitive"
)

func TestAMessageIDHasTheTextFormOfActiveMQ(t *testing.T) {
	for _, c := range []struct {
		text string
		id   MessageID
	}{
		{"ID:host-1-2-3:1:2:3:4", MessageID{Producer: ProducerID{"ID:host-1-2-3:1", 2, 3}, Sequence: 4}},
		{"foreign", MessageID{Text: "foreign"}},
		{"a:b:c:d", MessageID{Text: "a:b:c:d"}},
		{":1:2:3", MessageID{Text: ":1:2:3"}},
	} {
		if got := ParseMessageID(c.text); got != c.id {
			t.Errorf("%q is %+v, want %+v", c.text, got, c.id)
		}
		if got := c.id.String(); got != c.text {
			t.Errorf("%+v is written %q, want %q", c.id, got, c.text)
		}
	}
}

func TestDestinationsAreReadFromTheirTextForms(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Destination
		options string
	}{
		{"q", Destination{Queue, "q"}, ""},
		{"topic://a.b", Destination{Topic, "a.b"}, ""},
		{" queue://q?consumer.prefetchSize=1 ", Destination{Queue, "q"}, "consumer.prefetchSize=1"},
		{"temp-queue://ID:x:1", Destination{TempQueue, "ID:x:1"}, ""},
		{"temp-topic://ID:x:1", Destination{TempTopic, "ID:x:1"}, ""},
	} {
		got, options := ParseDestination(c.text, Queue)
		if got != c.want || options != c.options {
			t.Errorf("%q is %v with %q, want %v with %q", c.text, got, options, c.want, c.options)
		}
	}
}

func TestACompositeHasItsMembersOnceAndInOrder(t *testing.T) {
	d := Destination{Queue, "b, topic://a,b,, queue://c"}
	got := d.Split()
	want := []Destination{{Queue, "b"}, {Topic, "a"}, {Queue, "c"}}
	if len(got) != len(want) {
		t.Fatalf("members %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("members %v, want %v", got, want)
		}
	}
}

func TestOnlyWildcardElementsMakeAPattern(t *testing.T) {
	for name, want := range map[string]bool{"a.>": true, "*": true, "a.*.b": true, "a.B*": false,
		"a>b": false, "a": false, "a.>,b": false} {
		if got := (Destination{Queue, name}).IsPattern(); got != want {
			t.Errorf("%q is a pattern: %v, want %v", name, got, want)
		}
	}
}

// TestAReceiptKeyTellsAResendFromAReturn is the duplicate rule: the key changes with everything
// that makes it another arrival, and only with that.
func TestAReceiptKeyTellsAResendFromAReturn(t *testing.T) {
	q := Destination{Queue, "q"}
	m := Message{ID: ParseMessageID("ID:p:1:1:1:7"), BrokerPath: []BrokerID{"a"}}
	key := Receipt(&m, q, m.BrokerPath, "b")
	same := m
	same.RedeliveryCounter, same.BrokerInTime = 3, 99
	if Receipt(&same, q, []BrokerID{"x", "a"}, "b") != key {
		t.Error("a resend by another route has another key")
	}
	other := m
	other.OriginalDestination = Destination{Topic, "t"}
	for what, k := range map[string]ReceiptKey{
		"a return":                     Receipt(&m, q, []BrokerID{"a", "b", "c"}, "b"),
		"another destination":          Receipt(&m, Destination{Queue, "r"}, m.BrokerPath, "b"),
		"a topic of the name":          Receipt(&m, Destination{Topic, "q"}, m.BrokerPath, "b"),
		"another original destination": Receipt(&other, q, m.BrokerPath, "b"),
	} {
		if k == key {
			t.Errorf("%s has the same key", what)
		}
	}
}

func TestASelectorSeesHeadersAndProperties(t *testing.T) {
	m := &Message{Destination: Destination{Queue, "q"}, Priority: 7, Persistent: true,
		CorrelationID: "c", ID: ParseMessageID("ID:p:1:1:1:7")}
	if err := m.SetProperties(Property{"n", int32(5)}, Property{"s", "x"}); err != nil {
		t.Fatal(err)
	}
	if err := m.SetProperties(Property{"n", int32(6)}); err != nil {
		t.Fatal(err)
	}
	v := View{Message: m, Redelivery: 2}
	for name, want := range map[string]any{"n": int32(6), "s": "x", "none": nil,
		"JMSPriority": int32(7), "JMSDeliveryMode": "PERSISTENT", "JMSCorrelationID": "c",
		"JMSMessageID": "ID:p:1:1:1:7", "JMSRedelivered": true, "JMSXDeliveryCount": int32(3),
		"JMSType": nil, "JMSDestination": "queue://q"} {
		if got := v.Field(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestAMapMessageHoldsItsEntries(t *testing.T) {
	m := &Message{}
	if err := m.SetMap([]Property{{"a", int64(1)}, {"b", "x"}}); err != nil {
		t.Fatal(err)
	}
	got, err := primitive.ParseMap(m.Content)
	if err != nil || len(got) != 2 || m.Body != MapBody {
		t.Errorf("map %v, body %d, %v", got, m.Body, err)
	}
}
