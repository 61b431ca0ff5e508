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
		{`--messageSize and --textMessageSize may be 104792064 at most, 100 MiB less 64 KiB`,
			[]string{"producer", "--messageSize", huge, "q"}},
		{`--messageSize and --textMessageSize may be 104792064 at most, 100 MiB less 64 KiB`,
			[]string{"producer", "--textMessageSize", huge, "q"}},
		{`destination "queue: sp ace": write queue://sp ace$`,
			[]string{"producer", "queue: sp ace "}},
		{`--msgTTL -5; it may not be negative`, []string{"producer", "--msgTTL", "-5", "q"}},
		{`--messageCount -5; it may not be neg`, []string{"producer", "--messageCount", "-5", "q"}},
		{`--sleep -5s; it may not be negative`, []string{"producer", "--sleep", "-5s", "q"}},
		{`the client id or the name is empty`, []string{"remove-durable", "", ""}},
		{`unexpected argument foo: status takes no argument; --broker NAME says which`,
			[]string{"status", "foo"}},
		{`unexpected argument b: explain takes one destination; --broker`, []string{"explain", "q", "b"}},
		{`unexpected argument b: purge takes one destination; --broker`, []string{"purge", "q", "b"}},
		{`unexpected argument b: remove-durable takes a client id and a name; --broker`,
			[]string{"remove-durable", "c", "n", "b"}},
		{`xbean:classpath:activemq.xml: there is no class path here; name the file, as xbean:conf/`,
			[]string{"start", "xbean:classpath:activemq.xml"}},
		{`classpath:a.xml: there is no class path here`, []string{"start", "classpath:a.xml"}},
		{`tcp://a:1,tcp://b:2: one address stands here; several are a list in parentheses`,
			[]string{"producer", "--brokerUrl", "tcp://a:1,tcp://b:2", "q"}},
		{`--payloadUrl file: names no file`, []string{"producer", "--payloadUrl", "file:", "q"}},
		{`--payloadUrl ftp:x: scheme ftp; use`, []string{"producer", "--payloadUrl", "ftp:x", "q"}},
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
