package manage

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
)

// wantLists looks for each list that a value may have in what it is as JSON.
func wantLists(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	lists, of := 0, reflect.TypeOf(v)
	for f := range of.Fields() {
		if f.Type.Kind() != reflect.Slice {
			continue
		}
		lists++
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if list, ok := fields[name].([]any); !ok || len(list) != 0 {
			t.Errorf("%s of a %s without any is %v", name, of.Name(), fields[name])
		}
	}
	if lists == 0 || strings.Contains(string(text), "null") {
		t.Errorf("%d lists in %s", lists, text)
	}
}

func TestAListWithoutElementsIsAnEmptyOne(t *testing.T) {
	var s Status
	s.FromBroker(broker.Status{}, nil)
	for _, v := range []any{Status{}, s, Bridge{}, FromBridge(bridge.Status{}, time.Second),
		*FromExplanation("b", &broker.Explanation{}), Destination{}, Subscription{}} {
		wantLists(t, v)
	}
}

func TestAListIsReadAsItWasWritten(t *testing.T) {
	want := Status{Bridges: []Bridge{{Name: "a", Demands: []Demand{{Destination: "Q"}}}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Status
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Bridges) != 1 || got.Bridges[0].Demands[0].Destination != "Q" {
		t.Errorf("%s is read as %+v", text, got)
	}
}
