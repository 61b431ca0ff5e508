package recall

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// mail is message number n with a body of so many bytes, of which each counts 1024 more.
func mail(n int64, body int) *message.Message {
	return &message.Message{ID: message.MessageID{Sequence: n}, Content: make([]byte, body)}
}

// kept gives the numbers of what a memory has, the image in brackets.
func kept(k *Memory) string {
	var out []string
	if m := k.Image(); m != nil {
		out = append(out, fmt.Sprintf("[%d]", m.ID.Sequence))
	}
	for m := range k.Kept() {
		out = append(out, fmt.Sprint(m.ID.Sequence))
	}
	return strings.Join(out, " ")
}

// check compares what a memory has, and what it counts with what is there.
func check(t *testing.T, k *Memory, when, want string) {
	t.Helper()
	if got := kept(k); got != want {
		t.Errorf("%s: kept %q, want %q", when, got, want)
	}
	sum := int64(0)
	for _, e := range k.kept[k.start:] {
		sum += e.m.Size()
	}
	if k.image != nil {
		sum += k.image.Size()
	}
	if k.Bytes() != sum {
		t.Errorf("%s: %d bytes are counted, %d are there", when, k.Bytes(), sum)
	}
}

func TestAPolicyKeepsWhatItSays(t *testing.T) {
	wrapped := policy.Recovery{Kind: policy.RecoverFixedCount, MaxMessages: 1}
	for _, c := range []struct {
		name  string
		p     policy.Recovery
		keeps bool
		want  string // after message n of 100 n bytes came at second n, up to 5
	}{
		{"none", policy.NewRecovery(policy.RecoverNothing), false, ""},
		{"last image", policy.NewRecovery(policy.RecoverLastImage), true, "5"},
		{"default count", policy.NewRecovery(policy.RecoverFixedCount), true, "1 2 3 4 5"},
		{"count 2", policy.Recovery{Kind: policy.RecoverFixedCount, MaxMessages: 2}, true, "4 5"},
		{"default size", policy.NewRecovery(policy.RecoverFixedSize), true, "1 2 3 4 5"},
		{"size of two", policy.Recovery{Kind: policy.RecoverFixedSize, MaxBytes: 2*1024 + 900}, true,
			"4 5"},
		{"size of one and a half", policy.Recovery{Kind: policy.RecoverFixedSize,
			MaxBytes: 2*1024 + 899}, true, "5"},
		{"too small a size", policy.Recovery{Kind: policy.RecoverFixedSize, MaxBytes: 1523}, true, ""},
		{"default time", policy.NewRecovery(policy.RecoverTimed), true, "1 2 3 4 5"},
		{"two seconds", policy.Recovery{Kind: policy.RecoverTimed, Duration: 2 * time.Second}, true,
			"4 5"},
		{"no time", policy.Recovery{Kind: policy.RecoverTimed}, true, ""},
		{"retained", policy.NewRecovery(policy.RecoverRetained), false, ""},
		{"retained and one", policy.Recovery{Kind: policy.RecoverRetained, Wrapped: &wrapped}, true, "5"},
	} {
		k := New(c.p)
		for n := range int64(5) {
			k.Add(mail(n+1, int(n+1)*100), time.Duration(n+1)*time.Second)
		}
		check(t, k, c.name, c.want)
		if Keeps(c.p) != c.keeps {
			t.Errorf("%s: Keeps is not %t", c.name, c.keeps)
		}
	}
}

func TestAMemoryForgetsWhatIsTooOld(t *testing.T) {
	k := New(policy.Recovery{Kind: policy.RecoverTimed, Duration: 10 * time.Second})
	if _, ok := k.Due(); ok {
		t.Error("an empty memory is due")
	}
	for n := range int64(4) {
		k.Add(mail(n, 10), time.Duration(n)*time.Second)
	}
	k.Trim(10*time.Second - 1)
	check(t, k, "just before", "0 1 2 3")
	if at, ok := k.Due(); !ok || at != 10*time.Second {
		t.Errorf("due at %v, %t", at, ok)
	}
	k.Trim(11 * time.Second)
	check(t, k, "a second after", "2 3")
	k.Trim(time.Hour)
	check(t, k, "an hour after", "")
}

func TestAMemoryForgetsWhatExpired(t *testing.T) {
	k := New(policy.NewRecovery(policy.RecoverFixedCount))
	for n := range int64(5) {
		m := mail(n, 10)
		if n%2 == 0 {
			m.Expiration = 100 + n
		}
		k.Add(m, 0)
	}
	image := mail(9, 10)
	image.Expiration = 102
	k.Retain(image)
	if n := k.Expire(101); n != 1 {
		t.Errorf("%d expired", n)
	}
	check(t, k, "the first expired", "[9] 1 2 3 4")
	if n := k.Expire(104); n != 3 {
		t.Errorf("%d expired", n)
	}
	check(t, k, "all expired that may", "1 3")
	k.Add(mail(7, 10), 0)
	check(t, k, "and goes on", "1 3 7")
}

func TestAMemoryGivesUpTheOldestFirstAndTheImageLast(t *testing.T) {
	k := New(policy.NewRecovery(policy.RecoverFixedCount))
	for n := range int64(3) {
		k.Add(mail(n, 0), 0)
	}
	k.Retain(mail(9, 0))
	for _, c := range []struct {
		bytes, want int64
		left        string
	}{{0, 0, "[9] 0 1 2"}, {1, 1, "[9] 1 2"}, {1025, 2, "[9]"}, {1, 1, ""}, {1, 0, ""}} {
		if n := k.Shed(c.bytes); n != c.want {
			t.Errorf("for %d bytes %d messages were given up, not %d", c.bytes, n, c.want)
		}
		check(t, k, "shed", c.left)
	}
}

func TestTheImageIsNotKeptTwice(t *testing.T) {
	k := New(policy.NewRecovery(policy.RecoverFixedCount))
	k.Add(mail(1, 0), 0)
	k.Retain(mail(2, 0))
	k.Add(mail(2, 0), 0)
	k.Add(mail(3, 0), 0)
	check(t, k, "retained", "[2] 1 3")
	k.Retain(nil)
	check(t, k, "retained no more", "1 2 3")
}

func TestALongLifeTakesNoMoreRoom(t *testing.T) {
	k := New(policy.Recovery{Kind: policy.RecoverFixedCount, MaxMessages: 3})
	for n := range int64(10_000) {
		k.Add(mail(n, 0), 0)
	}
	check(t, k, "at the end", "9997 9998 9999")
	if cap(k.kept) > 300 {
		t.Errorf("room for %d", cap(k.kept))
	}
}

func TestAMarkIsTrueInAnyCase(t *testing.T) {
	for _, c := range []struct {
		value any
		want  bool
	}{{true, true}, {false, false}, {"true", true}, {"TRUE", true}, {"yes", false}, {int32(1), false},
		{nil, false}} {
		m := mail(1, 10)
		if err := m.SetProperties(message.Property{Name: Retain, Value: c.value}); err != nil {
			t.Fatal(err)
		}
		if Marked(m) != c.want {
			t.Errorf("%v: marked is not %t", c.value, c.want)
		}
	}
	if m := mail(1, 10); Marked(m) {
		t.Error("a message without properties is marked")
	}
	m := mail(1, 10)
	if err := m.SetProperties(message.Property{Name: "text", Value: Retain}); err != nil {
		t.Fatal(err)
	}
	if Marked(m) {
		t.Error("a message that names the property elsewhere is marked")
	}
}

func TestAMarkIsTakenOffAndTold(t *testing.T) {
	m := mail(1, 10)
	if err := m.SetProperties(message.Property{Name: Retain, Value: true},
		message.Property{Name: "n", Value: int32(7)}); err != nil {
		t.Fatal(err)
	}
	before := string(m.Properties)
	plain, image, err := Unmark(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]*message.Message{"plain": plain, "image": image} {
		_, marked := x.Property(Retain)
		told, _ := x.Property(Retained)
		n, _ := x.Property("n")
		if marked || told == true != (name == "image") || n != int32(7) || len(x.Content) != 10 {
			t.Errorf("%s: marked %t, told %v, n %v", name, marked, told, n)
		}
	}
	if string(m.Properties) != before {
		t.Error("the message itself changed")
	}
	m.Content = nil
	if _, image, err = Unmark(m); image != nil || err != nil {
		t.Errorf("without body: %v, %v", image, err)
	}
}
