package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
)

// brokerFlag picks running brokers.
type brokerFlag struct {
	Broker string `short:"b" help:"Only the broker of this name." placeholder:"NAME"`
}

// clients gives the running brokers that are meant, at least one.
func (f brokerFlag) clients(ctx context.Context) ([]*control.Client, error) {
	all, err := control.Running(ctx)
	if err != nil {
		return nil, err
	}
	var out []*control.Client
	for _, c := range all {
		if f.Broker == "" || c.Name == f.Broker {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		if f.Broker != "" {
			return nil, message.Errorf(message.Unavailable, "no broker named %s is running for"+
				" this user; hopwire status lists those that are", f.Broker)
		}
		return nil, message.Errorf(message.Unavailable,
			"no broker is running for this user; hopwire start FILE runs one")
	}
	return out, nil
}

// statusCommand is hopwire status.
type statusCommand struct {
	brokerFlag
	All bool `short:"a" help:"Show empty and temporary destinations, too."`
}

// Run prints how brokers stand.
func (c *statusCommand) Run(ctx context.Context, s *streams) error {
	clients, err := c.clients(ctx)
	if err != nil {
		return err
	}
	for i, client := range clients {
		status, err := client.Status(ctx)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		printStatus(s.out, status, c.All)
	}
	return nil
}

func printStatus(out io.Writer, st *manage.Status, all bool) {
	fmt.Fprintf(out, "broker %s  %s  pid %d  up %s  %s  memory %s of %s  store %s%s\n",
		st.Broker, st.Version, st.PID, age(st.UptimeMs), count(st.Connections, "connection"),
		bytes(st.MemoryBytes),
		bytes(st.MemoryLimit), bytes(st.StoreBytes), mark(st.StoreFull, " FULL"))
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	for _, c := range st.Connectors {
		fmt.Fprintf(w, "  listens\t%s\t%s\n", c.Name, c.Address)
	}
	for _, b := range st.Bridges {
		fmt.Fprintf(w, "  bridge\t%s\t%s\t%s\t%s\n", b.Name, bridgeWay(&b), b.State, bridgeNote(&b))
	}
	w.Flush()
	w = tabwriter.NewWriter(out, 2, 8, 2, ' ', tabwriter.AlignRight)
	head := "  destination\tsize\tin flight\tconsumers\tnetwork\tproducers\tenqueued\tdequeued" +
		"\tforwarded\t reasons\t\n"
	for _, d := range st.Destinations {
		if !all && (d.Size == 0 && d.Consumers+d.Networks+d.Producers == 0 ||
			strings.HasPrefix(d.Name, "temp-")) {
			continue
		}
		fmt.Fprint(w, head)
		head = ""
		fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t %s\t\n", d.Name, d.Size, d.InFlight,
			d.Consumers, d.Networks, d.Producers, d.Enqueued, d.Dequeued, d.Forwarded,
			reasonList(d.Reasons))
	}
	w.Flush()
	if len(st.Reasons) > 0 {
		fmt.Fprintf(out, "  refused, dropped or suppressed since start: %s\n",
			reasonList(st.Reasons))
	}
}

func bridgeWay(b *manage.Bridge) string {
	arrow := "-> "
	if b.Duplex {
		arrow = "<-> "
	}
	to := b.Peer
	if to == "" {
		to = b.URI
	} else if b.URI != "" {
		to += " (" + b.URI + ")"
	}
	return arrow + to
}

func bridgeNote(b *manage.Bridge) string {
	counts := []string{fmt.Sprintf("forwarded %d", b.Forwarded)}
	if b.Duplex || b.Accepted {
		counts = append(counts, fmt.Sprintf("received %d", b.Received))
	}
	if b.InFlight > 0 {
		counts = append(counts, fmt.Sprintf("%d unanswered", b.InFlight))
	}
	if b.InDoubt > 0 {
		counts = append(counts, fmt.Sprintf("%d in doubt", b.InDoubt))
	}
	notes := []string{strings.Join(counts, ", ")}
	if b.Attempt > 1 && b.Error != "" {
		notes = append(notes, fmt.Sprintf("tried %d times", b.Attempt))
	}
	for _, t := range []string{b.Unseen, b.Error} {
		if t != "" {
			notes = append(notes, t)
		}
	}
	return strings.Join(notes, "; ")
}

func reasonList(list []manage.ReasonCount) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, fmt.Sprintf("%s %d", r.Reason, r.Count))
	}
	return strings.Join(parts, ", ")
}

func mark(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d > time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

func bytes(n int64) string {
	const units = "KMGT"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, u := float64(n)/(1<<10), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[u])
}

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
	for _, client := range clients {
		if err := client.Stop(ctx); err != nil {
			return err
		}
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
	Queue   string `arg:"" help:"Name of the queue, or temp-queue://NAME."`
	Message string `short:"m" help:"Only this message." placeholder:"ID"`
}

// Run prints why the queue's messages are where they are.
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
	what := "queue " + c.Queue
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
