// Command hopwire is a message broker for networks of brokers. See hopwire --help.
package main

import (
	"os"

	"hopwire/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
