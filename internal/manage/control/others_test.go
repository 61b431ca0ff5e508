package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hopwire/test/need"
)

// Lists of other users tell what their brokers are called; those that are not their user's, and
// entries of processes that are gone, tell nothing.
func TestBrokersOfOtherUsersAreSeenWhereTheirListsMayBeRead(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	for folder, owner := range map[string]int{"hopwire-7": 7, "hopwire-8": 9, "hopwire-x": 7,
		fmt.Sprint("hopwire-", os.Getuid()): os.Getuid()} {
		list := filepath.Join(dir, folder)
		if err := os.Mkdir(list, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, entry := range []string{fmt.Sprint("a%20b.", os.Getpid()), "gone.2147483646",
			"control.sock"} {
			if err := os.WriteFile(filepath.Join(list, entry), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(list, owner, -1); err != nil {
			t.Fatal(err)
		}
	}
	want := []Other{{7, "a b", os.Getpid()}}
	if got := others(dir, os.Getuid()); !slices.Equal(got, want) {
		t.Errorf("others are %v, want %v", got, want)
	}
}
