package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"hopwire"
	"hopwire/internal/plural"
	"hopwire/internal/terminal"
)

// repairCommand is hopwire repair.
type repairCommand struct {
	Files []string `arg:"" name:"file" help:"${startFile}"`

	Compat int               `help:"${startCompat}" enum:"0,5,6" default:"0"`
	Define map[string]string `short:"D" mapsep:"none" placeholder:"NAME=VALUE" help:"${startDefine}"`
}

// Help is what the help of the command ends with.
func (repairCommand) Help() string { return words["repairHelp"] }

// Run repairs the stores of brokers that do not run.
func (c *repairCommand) Run(ctx context.Context, s *streams) error {
	var setups []*hopwire.Setup
	for _, f := range c.Files {
		file, err := fileOf(f)
		if err != nil {
			return err
		}
		// What the file says of access is not asked here: nothing listens.
		setup, err := load(ctx, file, hopwire.Options{Compat: c.Compat, Defines: c.Define,
			IgnoreSecurity: true, IgnoreUnknownPlugins: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		setups = append(setups, setup)
	}
	if err := distinct(setups); err != nil {
		return err
	}
	for _, setup := range setups {
		r, err := setup.Repair(ctx)
		if err != nil {
			return err
		}
		terminal.Fprintf(s.out, "broker %s, store %s", setup.Name(), setup.Folder())
		tellRepaired(s.out, r)
	}
	return nil
}

// tellRepaired tells what became of a store.
func tellRepaired(out io.Writer, r *hopwire.Repaired) {
	switch {
	case r.Kept == "" && r.Format != "":
		terminal.Fprintf(out, ": %s; nothing else was damaged\n", r.Format)
		return
	case r.Kept == "":
		terminal.Fprintln(out, ": nothing to repair")
		return
	}
	copied, lost, whole, unknown := int64(0), r.Dropped, 0, r.Cut
	terminal.Fprintln(out)
	for i := range r.Destinations {
		d := &r.Destinations[i]
		copied += d.Copied
		switch {
		case d.Made:
			unknown = true
			terminal.Fprintf(out, "  %s: %s copied; how many there were is not known, as its header"+
				" could not be read\n", d.Name(), plural.Of(d.Copied, "message"))
		case d.Lost > 0 || d.More:
			lost, unknown = lost+d.Lost, unknown || d.More
			terminal.Fprintf(out, "  %s: %s copied, %s could not be read\n", d.Name(),
				plural.Of(d.Copied, "message"), atLeast(d.Lost, d.More))
		default:
			whole++
		}
	}
	if r.Format != "" {
		terminal.Fprintf(out, "  %s\n", r.Format)
	}
	for _, line := range r.Others {
		terminal.Fprintf(out, "  %s\n", line)
	}
	if whole > 0 {
		but := ""
		if r.Cut {
			but = " but for writes that are lost, of which nothing tells"
		}
		terminal.Fprintf(out, "  %s whole%s\n", plural.Form(whole, "1 destination is", fmt.Sprintf(
			"%d destinations are", whole)), but)
	}
	unread := atLeast(lost, unknown) + " could not be read"
	if unknown && lost == 0 {
		unread = "how many could not be read is not known"
	}
	terminal.Fprintf(out, "  in all %s copied, %s\n", plural.Of(copied, "message"), unread)
	terminal.Fprintf(out, "  the store from before (%d MiB) is in %s; when nobody needs it any more:"+
		" rm -r %s\n", (r.KeptBytes+1<<20-1)>>20, r.Kept, quoted(r.Kept))
}

func atLeast(n int64, more bool) string {
	if more {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

// quoted gives a path as a POSIX shell takes it for one word that is no option.
func quoted(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("/._-+:,@%", c)
	}
	if path != "" && !strings.ContainsFunc(path, func(c rune) bool { return !plain(c) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
