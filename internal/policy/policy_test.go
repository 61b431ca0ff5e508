package policy

import (
	"strings"
	"testing"

	"hopwire/internal/message"
)

func queue(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

func topic(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func TestWildcardsTakeWhatActiveMQsTake(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no string
	}{
		{"A", "A", "B A.B a"},
		{"A.>", "A A.B A.B.C", "AB B.A"},
		{">", "A A.B", ""},
		{"*", "A", "A.B"},
		{"A.*", "A.B A.", "A A.B.C"},
		{"A.*.>", "A.B A.B.C A.B.C.D", "A B.A.B"},
		{"*.B", "A.B .B", "A.B.C B"},
		{"A.>.B", "A.>.B", "A.X.B A.B"},
		{"A.>.>", "A A.B A.B.C", "B"},
		{"A.*.>.>", "A.B A.B.C", "A B.A"},
		{">.>", "A A.B", ""},
		{"A.>.B.>", "A.>.B A.>.B.C", "A.X.B A"},
		{"A.B*", "A.B*", "A.BC A.B"},
		{"A,B.*", "A B.C", "B C"},
	}
	for _, tt := range tests {
		for name := range strings.FieldsSeq(tt.yes) {
			if !Matches(queue(tt.pattern), queue(name)) {
				t.Errorf("%s does not take %s", tt.pattern, name)
			}
			if Matches(queue(tt.pattern), topic(name)) {
				t.Errorf("queue %s takes topic %s", tt.pattern, name)
			}
		}
		for name := range strings.FieldsSeq(tt.no) {
			if Matches(queue(tt.pattern), queue(name)) {
				t.Errorf("%s takes %s", tt.pattern, name)
			}
		}
	}
}

// grow returns every name of up to depth of the elements.
func grow(elements []string, depth int) []string {
	all, last := []string{}, []string{""}
	for range depth {
		var next []string
		for _, head := range last {
			for _, e := range elements {
				name := e
				if head != "" {
					name = head + "." + e
				}
				next = append(next, name)
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// literal reports whether a pattern has a ">" that is none, since more than wildcards follows.
func literal(pattern string) bool {
	for strings.HasSuffix(pattern, ".>") {
		pattern = strings.TrimSuffix(pattern, ".>")
	}
	return strings.Contains(pattern, ">.")
}

// Patterns have up to three elements, names up to four, one element more than patterns know.
func TestOverlapAndCoversSayWhatEnumerationShows(t *testing.T) {
	names := grow([]string{"a", "b", "z"}, 4)
	patterns := grow([]string{"a", "b", "*", ">"}, 3)
	takes := make(map[string][]bool)
	for _, p := range patterns {
		for _, n := range names {
			takes[p] = append(takes[p], Matches(queue(p), queue(n)))
		}
	}
	for _, p := range patterns {
		for _, q := range patterns {
			if literal(p) || literal(q) {
				continue // it takes no name of the list
			}
			overlap, covers := false, true
			for i := range names {
				overlap = overlap || takes[p][i] && takes[q][i]
				covers = covers && (takes[p][i] || !takes[q][i])
			}
			if got := Overlap(queue(p), queue(q)); got != overlap {
				t.Errorf("Overlap(%s, %s) = %v", p, q, got)
			}
			if got := Covers(queue(p), queue(q)); got != covers {
				t.Errorf("Covers(%s, %s) = %v", p, q, got)
			}
		}
	}
}

func TestListTakesWhatAMemberTakes(t *testing.T) {
	l := List{queue("wc.foo"), topic("t.>"), queue("x,y.*")}
	if !l.Overlaps(queue("wc.>")) || l.Matches(queue("wc.>")) || l.Covers(queue("wc.>")) {
		t.Error("demand for wc.> overlaps the include wc.foo and is no part of it")
	}
	if !l.Matches(topic("t")) || l.Matches(queue("t")) || !l.Covers(topic("t.*")) {
		t.Error("kinds and patterns of members count")
	}
	if !l.Matches(queue("y.1")) || !l.Covers(queue("x,wc.foo")) || l.Covers(queue("x,wc.bar")) {
		t.Error("members of composites count")
	}
}

func TestMapPicksTheOneMostSpecificEntry(t *testing.T) {
	m := Map{Default: NewEntry()}
	for _, name := range []string{">", "A.>", "*.B", "A.*", "A.*.>", "A.B.C", "X,Y.>", "A.>"} {
		e := NewEntry()
		e.Destination = queue(name)
		m.Entries = append(m.Entries, e)
	}
	for name, want := range map[string]string{
		"A.B.C":   "A.B.C",
		"A.B":     "*.B", // A.* and *.B are unrelated: name order
		"A.C":     "A.*",
		"A.B.C.D": "A.*.>",
		"A":       "A.>",
		"Q":       ">",
		"X":       "X,Y.>",
		"Y.1":     "X,Y.>",
	} {
		if got := m.Find(queue(name)); got.Destination.Name != want {
			t.Errorf("%s: entry %q, want %q", name, got.Destination.Name, want)
		}
	}
	if m.Find(queue("A")) != m.Entries[1] {
		t.Error("of two equal patterns the first must stay")
	}
	if m.Find(topic("A.B.C")) != m.Default {
		t.Error("a topic without entry must get the default")
	}
	m.Default = nil
	if e := m.Find(topic("A")); e.Configured || e.MaxProducersToAudit != 1024 {
		t.Error("without default the built-in entry must apply")
	}
}

func TestPrefetchReplacesOnlyClientDefaults(t *testing.T) {
	e := NewEntry()
	e.Prefetch = Prefetch{Queue: 1, QueueBrowser: 2, Topic: 3, DurableTopic: 4}
	tests := []struct {
		d               message.Destination
		asked           int
		durable, browse bool
		want            int
	}{
		{queue("a"), 1000, false, false, 1},
		{queue("a"), 999, false, false, 999},
		{queue("a"), 500, false, true, 2},
		{topic("a"), 32767, false, false, 3},
		{topic("a"), 100, true, false, 4},
		{topic("a"), 1000, true, false, 4},
		{topic("a"), 1000, false, false, 1000},
		{queue("a"), 0, false, false, 0},
	}
	for _, tt := range tests {
		if got := e.Window(tt.d, tt.asked, tt.durable, tt.browse); got != tt.want {
			t.Errorf("%s asked %d: window %d, want %d", tt.d, tt.asked, got, tt.want)
		}
		if got := Unconfigured().Window(tt.d, tt.asked, tt.durable, tt.browse); got != tt.asked {
			t.Errorf("%s asked %d: window %d without policy", tt.d, tt.asked, got)
		}
	}
}

func TestDeadLettersGoWhereTheStrategySays(t *testing.T) {
	individual := NewDeadLetter(DeadLetterIndividual)
	perSub := individual
	perSub.PerDurableSubscriber, perSub.TopicSuffix = true, ".X"
	asTopic := individual
	asTopic.UseQueueForTopicMessages, asTopic.TopicPrefix = false, "DLT."
	shared, discard := NewDeadLetter(DeadLetterShared), NewDeadLetter(DeadLetterDiscard)
	tests := []struct {
		l       DeadLetter
		source  message.Destination
		durable string
		want    string
	}{
		{shared, queue("A"), "", "queue://ActiveMQ.DLQ"},
		{discard, queue("A"), "", ""},
		{individual, queue("A"), "", "queue://ActiveMQ.DLQ.Queue.A"},
		{individual, topic("T"), "c:s", "queue://ActiveMQ.DLQ.Topic.T"},
		{perSub, topic("T"), "c:s", "queue://ActiveMQ.DLQ.Topic.T.c:s.X"},
		{perSub, topic("T"), "", "queue://ActiveMQ.DLQ.Topic.T.X"},
		{asTopic, topic("T"), "", "topic://DLT.T"},
	}
	for _, tt := range tests {
		if got := tt.l.Target(tt.source, tt.durable).String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.source, got, tt.want)
		}
		into := tt.l.Target(tt.source, tt.durable)
		if !into.IsZero() && !tt.l.Puts(tt.source, into) {
			t.Errorf("%s: it is not seen that it is put into %s", tt.source, into)
		}
		if tt.l.Puts(tt.source, queue("A.c")) || tt.l.Kind == DeadLetterIndividual &&
			tt.l.Puts(topic("T.c"), into) {
			t.Errorf("%s: others are said to be put into %s, or it elsewhere", tt.source, into)
		}
	}
}

func TestPendingLimits(t *testing.T) {
	rate := NewPendingLimit(PendingPrefetchRate)
	rate.Multiplier = 2.5
	for want, l := range map[int]PendingLimit{-1: {}, 10: {PendingConstant, 10, 0}, 250: rate} {
		if got := l.Max(100); got != want {
			t.Errorf("%+v: %d, want %d", l, got, want)
		}
	}
}
