package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
)

// stopCommand is hopwire stop.
type stopCommand struct {
	brokerFlag
	All bool `short:"a" help:"All brokers of this user, also of several processes."`
}

// Run stops brokers and waits until they are gone.
func (c *stopCommand) Run(ctx context.Context, s *streams) error {
	clients, err := c.clients(ctx)
	if err != nil {
		return err
	}
	if err := c.sure(ctx, clients); err != nil {
		return err
	}
	for _, client := range clients { // all at once: none sees another go and tries it again
		if err := client.Stop(ctx); err != nil {
			return err
		}
	}
	for _, client := range clients {
		if err := client.AwaitEnd(ctx); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "broker %s stopped\n", client.Name)
	}
	return nil
}

// sure refuses to stop the brokers of several processes that nobody named.
func (c *stopCommand) sure(ctx context.Context, clients []*control.Client) error {
	if c.All || c.Broker != "" {
		return nil
	}
	pids := map[int]bool{}
	var names []string
	for _, client := range clients {
		st, err := client.Status(ctx)
		if err != nil {
			return err
		}
		pids[st.PID] = true
		names = append(names, client.Name)
	}
	if len(pids) > 1 {
		return usageError{fmt.Sprintf("brokers of %d processes are running (%s); stop one with"+
			" --broker NAME, or --all", len(pids), strings.Join(names, ", "))}
	}
	return nil
}

// explainCommand is hopwire explain.
type explainCommand struct {
	brokerFlag
	Queue   string `arg:"" name:"destination" help:"A queue, or topic://NAME or temp-queue://NAME."`
	Message string `short:"m" help:"Only this message." placeholder:"ID"`
}

// Run prints why the messages of the queue or topic are where they are.
func (c *explainCommand) Run(ctx context.Context, s *streams) error {
	clients, err := c.clients(ctx)
	if err != nil {
		return err
	}
	found := false
	var asked []string
	for _, client := range clients {
		asked = append(asked, client.Name)
		x, err := client.Explain(ctx, c.Queue, c.Message)
		if err != nil && message.KindOf(err) == message.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		printExplanation(s.out, x)
	}
	if found {
		return nil
	}
	what := c.Queue
	if !strings.Contains(what, "://") {
		what = "queue " + what
	}
	if c.Message != "" {
		what = "message " + c.Message + " on " + what
	}
	return message.Errorf(message.NotFound, "no running broker has %s (asked: %s)", what,
		strings.Join(asked, ", "))
}

func printExplanation(out io.Writer, x *manage.Explanation) {
	d := &x.Destination
	fmt.Fprintf(out, "broker %s  %s: %s, %d in flight, %s, %s\n", x.Broker, d.Name,
		count(d.Size, "message"), d.InFlight, count(d.Consumers, "consumer"),
		count(d.Networks, "network consumer"))
	for _, r := range x.Rows {
		fmt.Fprintf(out, "  %6d  %s", r.Count, r.Reason)
		if r.Who != "" {
			fmt.Fprintf(out, "  (%s)", r.Who)
		}
		fmt.Fprintf(out, "\n          released by %s\n", r.Releases)
		if r.Example != "" {
			fmt.Fprintf(out, "          the oldest came %s ago; for example %s\n", age(r.SinceMs),
				r.Example)
		}
	}
	if x.StoredOnly > 0 {
		fmt.Fprintf(out, "  %6d  wait in the store behind these and are looked at when they are read\n",
			x.StoredOnly)
	}
	for _, w := range x.Ways {
		fmt.Fprintf(out, "  bridge %s takes none: %s\n", w.Bridge, w.Reason)
	}
}
