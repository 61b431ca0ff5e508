package broker

import (
	"slices"
	"strconv"
	"testing"
)

// What is told of refusals is the latest, by the last of each kind: one that goes on is not
// forgotten for those that began after it.
func TestTheLatestRefusalsAreKeptAndComeFirst(t *testing.T) {
	_, change := lawful("bob read Q")
	h := open(t, nil, change)
	amy := h.connect("a", "a", "amy", nil)
	q := queueNamed("Q")
	_ = amy.rights.allow(reading, q)
	_ = amy.rights.allow(writing, q)
	for n := range denialsMost - 2 {
		_ = amy.rights.allow(reading, queueNamed(strconv.Itoa(n)))
	}
	_ = amy.rights.allow(reading, q) // at the same moment as all others
	var told []string
	for _, r := range h.explained(q).Refused {
		told = append(told, r.What+" "+strconv.FormatInt(r.Count, 10))
	}
	if want := []string{"read from queue://Q 2", "write to queue://Q 1"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if r := h.explained(q).Refused[0]; !slices.Equal(r.Given, []string{"bob"}) || r.Stranger {
		t.Errorf("%v have the right, want bob", r.Given)
	}
	_ = amy.rights.allow(making, q)
	told = nil
	for _, r := range h.explained(q).Refused {
		told = append(told, r.What)
	}
	if want := []string{"create queue://Q", "read from queue://Q"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
