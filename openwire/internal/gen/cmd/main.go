// Command cmd rewrites the *_gen.go files of package openwire; it runs in the package's folder.
package main

import (
	"fmt"
	"os"

	"hopwire/openwire/internal/gen"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openwire/internal/gen:", err)
		os.Exit(1)
	}
}

func run() error {
	spec, err := os.ReadFile("spec/commands.json")
	if err != nil {
		return err
	}
	files, err := gen.Generate(spec)
	if err != nil {
		return err
	}
	for name, src := range files {
		if err := os.WriteFile(name, src, 0o644); err != nil {
			return err
		}
	}
	return nil
}
