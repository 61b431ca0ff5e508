package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// stopCommand is hopwire stop.
type stopCommand struct {
	brokerFlag
	All bool `short:"a" help:"All brokers of this user, also of several processes."`
}

// Run stops brokers and waits until they are gone.
func (c *stopCommand) Run(ctx context.Context, s *streams) error {
	them, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if !c.All {
		them = running(them)
	}
	if err := c.sure(them); err != nil {
		return err
	}
	// All at once: none sees another go and tries it again.
	stopped, err := every(ctx, them, func(ctx context.Context, a *asked) (string, error) {
		if err := a.Stop(ctx); err != nil {
			return "", err
		}
		return a.Name, a.AwaitEnd(ctx)
	})
	for _, name := range stopped {
		fmt.Fprintf(s.out, "broker %s stopped\n", name)
	}
	return err
}

// sure refuses to stop the brokers of several processes that nobody named.
func (c *stopCommand) sure(them []*asked) error {
	if c.All || len(c.Broker) > 0 {
		return nil
	}
	pids := map[int]bool{}
	for _, a := range them {
		pids[a.PID] = true
	}
	if len(pids) > 1 {
		return usageError{fmt.Sprintf("brokers of %d processes are running (%s); stop one with"+
			" --broker NAME, or --all", len(pids), names(them))}
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
	them, err := c.ask(ctx)
	if err != nil {
		return err
	}
	them = running(them)
	found, err := every(ctx, them, func(ctx context.Context, a *asked) (*manage.Explanation, error) {
		x, err := a.Explain(ctx, c.Queue, c.Message)
		if err != nil && message.KindOf(err) == message.NotFound {
			return nil, nil // another may have it
		}
		return x, err
	})
	found = slices.DeleteFunc(found, func(x *manage.Explanation) bool { return x == nil })
	for _, x := range found {
		printExplanation(s.out, x)
	}
	if len(found) > 0 || err != nil {
		return err
	}
	what := c.Queue
	if !strings.Contains(what, "://") {
		what = "queue " + what
	}
	if c.Message != "" {
		what = "message " + c.Message + " on " + what
	}
	if !strings.Contains(c.Queue, "://") {
		topics, err := every(ctx, them, func(ctx context.Context, a *asked) (string, error) {
			_, err := a.Explain(ctx, "topic://"+c.Queue, "")
			if err != nil && message.KindOf(err) == message.NotFound {
				return "", nil
			}
			return a.Name, err
		})
		topics = slices.DeleteFunc(topics, func(name string) bool { return name == "" })
		if err == nil && len(topics) > 0 {
			return message.Errorf(message.NotFound, "broker %s has no queue %s, but a topic; hopwire"+
				" explain topic://%[2]s tells of its durable subscriptions",
				strings.Join(topics, ", "), c.Queue)
		}
	}
	return message.Errorf(message.NotFound, "no running broker has %s (asked: %s)", what,
		names(them))
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
		if r.Remark != "" {
			fmt.Fprintf(out, "          %s\n", r.Remark)
		}
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
		fmt.Fprintf(out, "  bridge %s takes none: %s%s\n", w.Bridge, w.Reason,
			mark(w.Text != "", "; "+w.Text))
	}
}
