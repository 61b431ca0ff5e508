package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/terminal"
)

// stopCommand is hopwire stop.
type stopCommand struct {
	brokerFlag
	All   bool     `short:"a" help:"All brokers of this user, also of several processes."`
	Names []string `arg:"" optional:"" name:"broker" help:"The same as --broker."`
}

// Run stops brokers and waits until they are gone.
func (c *stopCommand) Run(ctx context.Context, s *streams) error {
	c.Broker = append(c.Broker, c.Names...)
	them, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if !c.All {
		them = running(them)
	}
	if err := c.sure(ctx, them); err != nil {
		return err
	}
	// All at once: none sees another go and tries it again.
	stopped, err := every(ctx, them, func(ctx context.Context, a *asked) (string, error) {
		if err := a.Stop(ctx); err != nil {
			return "", err
		}
		return a.among(them), a.AwaitEnd(ctx)
	})
	others := control.Others()
	for _, name := range stopped {
		terminal.Fprintf(s.out, "broker %s stopped\n", name)
		for _, line := range runOn(name, others) {
			terminal.Fprintln(s.out, line)
		}
	}
	return err
}

// sure refuses to stop the brokers of several processes that nobody named, or that all have the
// name given.
func (c *stopCommand) sure(ctx context.Context, them []*asked) error {
	if c.All {
		return nil
	}
	pids := map[int]bool{}
	for _, a := range them {
		pids[a.PID] = true
		if same := namesakes(a, them); len(c.Broker) > 0 && len(same) > 1 {
			return usageError{fmt.Sprintf("%d brokers named %s are running: %s; stop one with"+
				" --broker %s --pid PID, or all of them with --all", len(same), a.Name,
				places(ctx, same), a.Name)}
		}
	}
	if len(c.Broker) == 0 && len(pids) > 1 {
		return usageError{fmt.Sprintf("brokers of %d processes are running (%s); stop one with"+
			" --broker NAME or --pid PID, or all with --all", len(pids), names(them))}
	}
	return nil
}

// places tells brokers of one name from each other: by process, and by data folder or address.
func places(ctx context.Context, them []*asked) string {
	out := make([]string, len(them))
	atOnce(ctx, them, func(ctx context.Context, a *asked) {
		where := "which does not answer"
		if st, err := a.look(ctx); err == nil {
			where = place(st)
		}
		out[slices.Index(them, a)] = fmt.Sprintf("pid %d, %s", a.PID, where)
	})
	return strings.Join(out, "; ")
}

// look asks how a broker stands, unless it was found not to answer.
func (a *asked) look(ctx context.Context) (*manage.Status, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.Status(ctx)
}

// place is where a broker is: its data folder, or the first address of one that has none.
func place(st *manage.Status) string {
	switch {
	case st.DataFolder != "":
		return "data in " + st.DataFolder
	case len(st.Connectors) > 0:
		return "at " + st.Connectors[0].Address
	}
	return "without data folder and address"
}
