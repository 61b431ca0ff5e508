package gen

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreWhatTheSpecGives(t *testing.T) {
	spec, err := os.ReadFile("../../spec/commands.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./openwire", name)
		}
	}
	kept, err := filepath.Glob("../../*_gen.go")
	if err != nil || len(kept) != len(files) {
		t.Errorf("%d generated files, the generator writes %d", len(kept), len(files))
	}
}
