// Command missing prints what the tests need and the machine lacks, by the names under which they
// are skipped then.
package main

import (
	"fmt"

	"hopwire/test/need"
)

func main() {
	lines := need.Missing()
	for _, line := range lines {
		fmt.Println(line)
	}
	if len(lines) > 0 {
		fmt.Println("tests that need it are skipped; to install it run, on Debian as root: make deps")
	}
}
