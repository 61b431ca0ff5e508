package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"hopwire/internal/bridge"
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
	for _, name := range stopped {
		fmt.Fprintf(s.out, "broker %s stopped\n", name)
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
		if err == nil {
			x.Broker = a.among(them)
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
			return a.among(them), err
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
	if x.Remark != "" {
		fmt.Fprintf(out, "  %s\n", x.Remark)
	}
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
		why := []string{w.Reason}
		if w.Text != "" {
			why = append(why, w.Text)
		}
		if w.State == bridge.Stopped.String() {
			why = append(why, "it is "+w.State)
		}
		if w.Error != "" {
			why = append(why, lastTry(w.State, w.Error, w.Attempt, w.NextTryMs)...)
		}
		fmt.Fprintf(out, "  bridge %s takes none: %s\n", w.Bridge, strings.Join(why, "; "))
	}
	for _, r := range x.Refused {
		fmt.Fprintf(out, "  DENIED since start: %d, last %s ago: user %s, who may not %s (%s)\n",
			r.Count, age(r.AgoMs), r.User, r.What, r.Who)
		fmt.Fprintf(out, "          released by %s\n", r.Releases)
	}
}
