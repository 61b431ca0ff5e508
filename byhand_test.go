package hopwire

import (
	"context"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestANameHasNoOptions(t *testing.T) {
	for text, want := range map[string]string{
		"q": "queue://q", "topic://a.b": "topic://a.b",
		"q?consumer.x=1": "q?consumer.x=1: options are no part of a name: name queue://q",
		"a.>":            "queue://a.>", // as clients make them that send to it
		"a,b":            "queue://a,b is several destinations: name one",
	} {
		got, err := oneName(text)
		said := got.String()
		if err != nil {
			said = err.Error()
		}
		if said != want || (err != nil) != strings.Contains(want, " ") {
			t.Errorf("%s is %s, %v; want %s", text, got, err, want)
		}
		if err != nil && message.KindOf(err) != message.IllegalState {
			t.Errorf("%s: the kind of %v is %v", text, err, message.KindOf(err))
		}
	}
	b := run(t, `persistent="false"`, `<destinations><queue physicalName="q"/></destinations>`,
		Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const name = "q?consumer.x=1"
	_, explained := b.Explain(ctx, name, "")
	_, purged := b.Purge(ctx, name)
	_, removed := b.Remove(ctx, name)
	for verb, err := range map[string]error{"explain": explained, "purge": purged, "remove": removed} {
		if err == nil || !strings.Contains(err.Error(), "options are no part of a name") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
