package config

import (
	"os"
	"testing"
)

// TestTheReferenceIsThatOfTheRegistry keeps docs/configuration.md what the registry says.
func TestTheReferenceIsThatOfTheRegistry(t *testing.T) {
	const page = "../../docs/configuration.md"
	want := Reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md differs from the registry; go test ./internal/config -update")
	}
}
