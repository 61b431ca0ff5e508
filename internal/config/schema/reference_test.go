package schema

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

// TestTheReferenceSaysWhatTheSchemaSays keeps docs/configuration.md what the tables say.
func TestTheReferenceSaysWhatTheSchemaSays(t *testing.T) {
	const page = "../../../docs/configuration.md"
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
		t.Error("docs/configuration.md is not that of the schema; " +
			"go test ./internal/config/schema -update")
	}
}
