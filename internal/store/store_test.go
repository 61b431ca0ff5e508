package store_test

import (
	"maps"
	"slices"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Of each name the newest is left, in whatever order they come.
func TestOlderOnesOfANameAreFound(t *testing.T) {
	named := func(id store.DestID, name string) store.Header {
		return store.Header{ID: id, Destination: message.Destination{Kind: message.Queue, Name: name}}
	}
	sub := named(7, "a")
	sub.Subscription = &store.Subscription{ClientID: "a", Name: "a"}
	all := []store.Header{named(5, "a"), named(9, "a"), named(2, "b"), named(3, "a"), sub,
		named(8, "b")}
	for range 2 {
		got := slices.Sorted(maps.Keys(store.Older(slices.Values(all))))
		if !slices.Equal(got, []store.DestID{2, 3, 5}) {
			t.Errorf("older are %v", got)
		}
		slices.Reverse(all)
	}
}
