package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"hopwire"
)

// startCommand is hopwire start.
type startCommand struct {
	Files []string `arg:"" name:"file" help:"Configuration files, one broker each." type:"path"`

	Compat int               `help:"Defaults of ActiveMQ 5 or 6." enum:"0,5,6" default:"0"`
	Define map[string]string `short:"D" help:"Value of a $${name} placeholder."`

	NoWait               bool   `help:"Exit when a data folder is in use; do not wait as slave."`
	IgnoreSecurity       bool   `help:"Start although access is restricted less than written."`
	IgnoreUnknownPlugins bool   `help:"Start without plugins of unknown classes."`
	StrictListeners      bool   `help:"Refuse to be open to the network without authentication."`
	LogLevel             string `help:"One of ${enum}." enum:"debug,info,warn,error" default:"info"`
}

// Run runs the brokers until a signal or hopwire stop.
func (c *startCommand) Run(ctx context.Context, s *streams) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usageError{err.Error()}
	}
	options := hopwire.Options{
		Compat: c.Compat, Defines: c.Define, NoWait: c.NoWait,
		IgnoreSecurity: c.IgnoreSecurity, IgnoreUnknownPlugins: c.IgnoreUnknownPlugins,
		StrictListeners: c.StrictListeners,
		Log:             slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: level})),
		OnWait:          func(line string) { fmt.Fprintln(s.out, line) },
	}
	var setups []*hopwire.Setup
	for _, f := range c.Files {
		setup, err := hopwire.Load(f, options)
		if err != nil {
			return fileError{err}
		}
		setups = append(setups, setup)
	}
	fmt.Fprintln(s.out, hopwire.About())
	return runBrokers(ctx, s.out, setups)
}

// runBrokers starts brokers and waits until all have ended.
func runBrokers(ctx context.Context, out io.Writer, setups []*hopwire.Setup) error {
	var brokers []*hopwire.Broker
	stop := func() {
		for _, b := range brokers {
			b.Stop()
		}
		for _, b := range brokers {
			_ = b.Wait() // the caller has the error that counts
		}
	}
	for _, setup := range setups {
		b, err := setup.Open(ctx)
		if err != nil {
			stop()
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // a slave that waited
				fmt.Fprintln(out, "stopped")
				return nil
			}
			return err
		}
		brokers = append(brokers, b)
	}
	for i, b := range brokers {
		b.StartBridges()
		fmt.Fprint(out, describe(setups[i], b))
	}
	fmt.Fprintln(out, "ready")
	unhook := context.AfterFunc(ctx, func() {
		for _, b := range brokers {
			b.Stop()
		}
	})
	defer unhook()
	var failed error
	for _, b := range brokers {
		if err := b.Wait(); err != nil && failed == nil {
			failed = err
			stop()
		}
	}
	if failed == nil {
		fmt.Fprintln(out, "stopped")
	}
	return failed
}

// describe tells in a few lines what a broker is.
func describe(setup *hopwire.Setup, b *hopwire.Broker) string {
	var t strings.Builder
	fmt.Fprintf(&t, "broker %s  (%s)\n", b.Name(), setup.File())
	for _, a := range b.Addresses() {
		fmt.Fprintf(&t, "  listens   %s\n", a)
	}
	if dir := b.DataFolder(); dir != "" {
		fmt.Fprintf(&t, "  store     %s\n", dir)
	} else {
		fmt.Fprintf(&t, "  store     none: persistent messages end with the process\n")
	}
	for _, n := range b.Bridges() {
		fmt.Fprintf(&t, "  bridge    %s to %s: %s\n", n.Name, n.URI, n.State)
	}
	for _, l := range setup.Compatibility() {
		fmt.Fprintf(&t, "  compat    %s\n", l)
	}
	for _, l := range setup.Notices() {
		fmt.Fprintf(&t, "  %s\n", l)
	}
	return t.String()
}
