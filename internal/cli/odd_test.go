package cli

import (
	"strings"
	"testing"

	"hopwire/internal/manage"
)

func TestWhatIsWrongIsSaidInWordsThatHelp(t *testing.T) {
	const huge = "99999999999"
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--messageSize and --textMessageSize may be 104857600 at most$`,
			[]string{"producer", "--messageSize", huge, "q"}},
		{`--messageSize and --textMessageSize may be 104857600 at most$`,
			[]string{"producer", "--textMessageSize", huge, "q"}},
		{`destination "queue: sp ace": write queue://sp ace$`,
			[]string{"producer", "queue: sp ace "}},
		{`--msgTTL -5; it may not be negative`, []string{"producer", "--msgTTL", "-5", "q"}},
		{`--messageCount -5; it may not be neg`, []string{"producer", "--messageCount", "-5", "q"}},
		{`--sleep -5s; it may not be negative`, []string{"producer", "--sleep", "-5s", "q"}},
		{`the client id or the name is empty`, []string{"remove-durable", "", ""}},
		{`the client id or the name is empty`, []string{"remove-durable", "c", ""}},
	} {
		expect(t, exitUsage, `\Ahopwire: `+c.want, c.args...)
	}
}

func TestAStatusLineIsNoLongerThanAnybodyReads(t *testing.T) {
	s := manage.Subscription{Name: "n", ClientID: strings.Repeat("ü", 30_000),
		Destination: "topic://T"}
	got := subscription(&s)
	if len(got) > 600 || !strings.Contains(got, "üü... (60000 bytes) on topic://T: ") {
		t.Errorf("a client id of 60,000 bytes: %s", got)
	}
}
