package disk

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/storetest"
)

func encode(m *message.Message) []byte {
	rec, _ := appendRecord(nil, nil, m, 0)
	return append(append(rec, m.Properties...), m.Content...)
}

func noBody(uint64) ([]byte, error) { return nil, errRecord }

func TestARecordKeepsEveryField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 2000 {
		m := storetest.Message(r, true)
		v := reflect.ValueOf(m).Elem()
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				seen[v.Type().Field(i).Name] = true
			}
		}
		got, err := decodeMessage(encode(m), noBody)
		if err != nil {
			t.Fatalf("%v: %+v", err, m)
		}
		if err := storetest.SameMessage(got, m); err != nil {
			t.Fatal(err)
		}
		if got.Size() != m.Size() {
			t.Fatalf("size is %d, was %d", got.Size(), m.Size())
		}
	}
	for field := range reflect.TypeFor[message.Message]().Fields() {
		if name := field.Name; !seen[name] && name != "Header" && name != "Data" {
			t.Errorf("no test message sets %s", name)
		}
	}
}

func TestADamagedRecordIsAnErrorNotAMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := storetest.Message(r, false)
	m.Content = []byte("body")
	rec := encode(m)
	for n := range rec {
		if _, err := decodeMessage(rec[:n], noBody); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a record", n, len(rec))
		}
	}
	if _, err := decodeMessage(append(bytes.Clone(rec), 0), noBody); err == nil {
		t.Error("a byte too much is not seen")
	}
	rec[0] = 9
	_, err := decodeMessage(rec, noBody)
	if want := "its version is 9, this program knows 1"; err == nil || err.Error() != want {
		t.Errorf("other version: %v, want %s", err, want)
	}
}

func TestADamagedReferenceIsAnError(t *testing.T) {
	rec := appendReference(nil, 1<<40)
	if source, err := decodeReference(rec); err != nil || source != 1<<40 || !isReference(rec) {
		t.Errorf("%x is read as %d, %v", rec, source, err)
	}
	for n := 1; n < len(rec); n++ {
		if _, err := decodeReference(rec[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a reference", n, len(rec))
		}
	}
	if _, err := decodeReference(append(rec, 0)); err == nil {
		t.Error("a byte too much is not seen")
	}
	if isReference(encode(&message.Message{})) {
		t.Error("a message is taken for a reference")
	}
}

func FuzzDecodeMessage(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		f.Add(encode(storetest.Message(r, false)), []byte("apart"))
	}
	f.Fuzz(func(t *testing.T, rec, apart []byte) {
		m, err := decodeMessage(rec, func(uint64) ([]byte, error) { return apart, nil })
		if err != nil {
			return
		}
		again, err := decodeMessage(encode(m), noBody)
		if err != nil {
			t.Fatalf("what was read cannot be written and read: %v", err)
		}
		if err := storetest.SameMessage(again, m); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add([]byte{recordVersion, 1, 1, 'q', 10, 2, 3, 4, 1, 1, 'p', 5})
	f.Add([]byte{subscriptionVersion, 10, 2, 3, 4, 0, 7})
	f.Fuzz(func(t *testing.T, rec []byte) {
		h, err := decodeHeader(1, rec)
		if err != nil {
			return
		}
		again, err := decodeHeader(1, appendHeader(nil, &h))
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

func TestDamagedTermsAreAnError(t *testing.T) {
	want := terms{message.Destination{Kind: message.Topic, Name: "t.>"},
		store.Subscription{ClientID: "c", Name: "n", Selector: "a > 1", NoLocal: true}}
	rec := appendTerms(nil, &want)
	if got, err := decodeTerms(rec); err != nil || got != want {
		t.Errorf("%+v is read as %+v, %v", want, got, err)
	}
	for n := range rec {
		if _, err := decodeTerms(rec[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for terms", n, len(rec))
		}
	}
	if _, err := decodeTerms(append(rec, 0)); err == nil {
		t.Error("a byte too much is not seen")
	}
}
