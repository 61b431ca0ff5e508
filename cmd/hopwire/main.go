// Command hopwire is a message broker for networks of brokers. See hopwire --help.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"hopwire/internal/cli"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a pipe that nobody reads is an error of who writes
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
