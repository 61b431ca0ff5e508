package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hopwire/internal/bridge"
	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/policy"
	"hopwire/internal/terminal"
)

// explainCommand is hopwire explain.
type explainCommand struct {
	brokerFlag
	Queue   string `arg:"" name:"destination" help:"${explainDest}"`
	Message string `short:"m" help:"Only this message." placeholder:"ID"`
	All     bool   `short:"a" help:"Every subscription and destination, however many there are."`
}

// Run prints why the messages of the queue or topic are where they are.
func (c *explainCommand) Run(ctx context.Context, s *streams) error {
	name, err := named(c.Queue)
	if err != nil {
		return err
	}
	several := name.IsPattern() || name.IsComposite()
	if several && c.Message != "" {
		return usageError{fmt.Sprintf("%s is several destinations; name the one that the message is on",
			name)}
	}
	them, missing, err := c.find(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.explain(ctx, s, running(them), name), missing)
}

// explain asks those that run.
func (c *explainCommand) explain(ctx context.Context, s *streams, them []*asked,
	name message.Destination,
) error {
	if name.IsPattern() || name.IsComposite() {
		return c.explainAll(ctx, s, them, name)
	}
	found, err := explained(ctx, them, c.Queue, c.Message)
	mostFirst(found)
	for _, x := range found {
		c.print(s.out, x)
	}
	if len(found) > 0 || err != nil {
		return err
	}
	return c.absent(ctx, them, name)
}

// explained asks all for one destination, or message; another than the one may have it.
func explained(ctx context.Context, them []*asked, name, id string) ([]*manage.Explanation, error) {
	found, err := every(ctx, them, func(ctx context.Context, a *asked) (*manage.Explanation, error) {
		x, err := a.Explain(ctx, name, id)
		if err != nil && message.KindOf(err) == message.NotFound {
			return nil, nil
		}
		if err == nil {
			x.Broker = a.among(them)
		}
		return x, err
	})
	return slices.DeleteFunc(found, func(x *manage.Explanation) bool { return x == nil }), err
}

// mostFirst puts first what has most messages, or sends that wait.
func mostFirst(found []*manage.Explanation) {
	slices.SortStableFunc(found, func(x, y *manage.Explanation) int {
		return cmp.Compare(y.Destination.Size+int64(y.Destination.Parked),
			x.Destination.Size+int64(x.Destination.Parked))
	})
}

// explainAll explains those destinations of a pattern or list that have messages, or sends that
// wait, of each broker those with most first.
func (c *explainCommand) explainAll(ctx context.Context, s *streams, them []*asked,
	name message.Destination,
) error {
	type taken struct {
		of    *asked
		dests []manage.Destination // with something to explain
		all   int
	}
	list, err := every(ctx, them, func(ctx context.Context, a *asked) (t taken, err error) {
		st, err := a.Status(ctx)
		if err != nil {
			return t, err
		}
		t.of = a
		for _, d := range (statusView{All: true}).destinations(st.Destinations) {
			if !takes(name, d.Name) {
				continue
			}
			t.all++
			if d.Size > 0 || d.Parked > 0 || strings.HasPrefix(d.Name, "topic://") &&
				slices.ContainsFunc(st.Subscriptions, func(x manage.Subscription) bool {
					to, _ := message.ParseDestination(x.Destination, message.Topic)
					return x.Size > 0 && takes(to, d.Name)
				}) {
				t.dests = append(t.dests, d)
			}
		}
		return t, nil
	})
	all := 0
	for _, t := range list {
		all += t.all
		shown, more := few(statusView{All: c.All}, t.dests, listMost)
		for _, d := range shown {
			found, failed := explained(ctx, []*asked{t.of}, d.Name, "")
			if err = errors.Join(err, failed); failed != nil {
				break // others answer yet
			}
			for _, x := range found {
				x.Broker = t.of.among(them)
				c.print(s.out, x)
			}
		}
		andMore(s.out, more, "destination", " of broker "+t.of.among(them)+" that "+c.Queue+" fits",
			"name some, or hopwire explain --all")
		if quiet := t.all - len(t.dests); quiet > 0 {
			terminal.Fprintf(s.out, "broker %s  %s fits %s that %s\n", t.of.among(them), name,
				plural.Of(quiet, mark(len(t.dests) > 0, "more ")+"destination"),
				map[bool]string{true: "has no messages", false: "have no messages"}[quiet == 1])
		}
	}
	if all == 0 && err == nil {
		return message.Errorf(message.NotFound, "no running broker has a destination that %s fits"+
			" (asked: %s)", name, names(them))
	}
	return err
}

// takes reports whether a pattern or list takes a destination.
func takes(name message.Destination, dest string) bool {
	d, _ := message.ParseDestination(dest, message.Queue)
	return slices.ContainsFunc(name.Split(), func(m message.Destination) bool {
		return m == d || policy.Matches(m, d)
	})
}

// absent is why a destination, or a message, is not found: what has its name, or nearly.
func (c *explainCommand) absent(ctx context.Context, them []*asked, name message.Destination,
) error {
	what := name.String()
	if !strings.Contains(c.Queue, "://") {
		what = "queue " + c.Queue
	}
	if c.Message != "" {
		return message.Errorf(message.NotFound, "no running broker has message %s on %s (asked: %s)",
			c.Message, what, names(them))
	}
	list, err := every(ctx, them, func(ctx context.Context, a *asked) (*manage.Status, error) {
		return a.Status(ctx)
	})
	if err != nil {
		return err
	}
	other := message.Destination{Kind: message.Topic, Name: name.Name}
	if name.IsTopic() {
		other.Kind = message.Queue
	}
	var near, have, subs []string
	topic := ""
	for _, st := range list {
		dests := destinationsOf(st)
		near = append(near, dests...)
		if slices.Contains(dests, other.String()) {
			have = append(have, st.Broker)
		}
		for i := range st.Subscriptions {
			if x := &st.Subscriptions[i]; x.Name == c.Queue || x.ClientID == c.Queue {
				topic = x.Destination
				subs = append(subs, fmt.Sprintf("%s of %s", x.Name, x.ClientID))
			}
		}
	}
	kinds := map[bool][2]string{false: {"queue", "topic"}, true: {"topic", "queue"}}[name.IsTopic()]
	switch {
	case len(have) > 0 && !name.IsTopic():
		return message.Errorf(message.NotFound, "%s no queue %s, but a topic; hopwire explain"+
			" %s tells of its durable subscriptions", haveOf(have), name.Name, other)
	case len(have) > 0:
		return message.Errorf(message.NotFound, "%s no %s %s, but a %s; see hopwire explain"+
			" %s", haveOf(have), kinds[0], name.Name, kinds[1], name.Name)
	case len(subs) > 0:
		return message.Errorf(message.NotFound, "no running broker has %s, but durable subscription %s;"+
			" hopwire explain '%s' tells what it keeps", what, strings.Join(subs, ", "), topic)
	}
	if strings.ContainsAny(name.Name, "*>") {
		what += " (in patterns * is a whole element and > all that follow: A.*, A.>)"
	}
	return message.Errorf(message.NotFound, "no running broker has %s (asked: %s)%s%s", what,
		names(them), nearest(name.String(), near), beside(control.Others()))
}

// haveOf is "broker a has", or "brokers a, b have".
func haveOf(brokers []string) string {
	return plural.Form(len(brokers), "broker", "brokers") + " " + strings.Join(brokers, ", ") + " " +
		plural.Form(len(brokers), "has", "have")
}

// print prints one explanation.
func (c *explainCommand) print(out io.Writer, x *manage.Explanation) {
	d := &x.Destination
	terminal.Fprintf(out, "broker %s  %s: %s, %d in flight, %s, %s\n", x.Broker, d.Name,
		plural.Of(d.Size, "message"), d.InFlight, plural.Of(d.Consumers, "consumer"),
		plural.Of(d.Networks, "network consumer"))
	if x.Remark != "" {
		terminal.Fprintf(out, "  %s\n", x.Remark)
	}
	if strings.HasPrefix(d.Name, "topic://") && d.Size == 0 {
		terminal.Fprintf(out, "  a topic keeps messages for durable subscriptions alone, and has none"+
			" for them now; who is not there when a message comes does not get it\n")
	}
	most := listMost
	if c.All {
		most = len(x.Rows)
	}
	printRows(out, x.Rows, most)
	if n := x.Spooled; n > 0 {
		terminal.Fprintf(out, "  %6d  of all %s in the spool alone, which ends with the broker\n",
			n, plural.Form(n, "is", "are"))
	}
	if n := x.StoredOnly; n > 0 {
		where := "the store"
		if x.Spooled > 0 {
			where = "the store or the spool"
		}
		terminal.Fprintf(out, "  %6d  %s in %s, and %s looked at when read\n", n,
			plural.Form(n, "waits", "wait"), where, plural.Form(n, "is", "are"))
		if x.StoredOldest != nil {
			printOldest(out, n, *x.StoredOldest)
		}
	}
	for _, w := range x.Ways {
		why := []string{w.Reason}
		if w.Text != "" {
			why = append(why, w.Text)
		}
		if w.State == bridge.Stopped.String() {
			why = append(why, "it is "+w.State)
		}
		if w.State == bridge.Gone.String() {
			why = append(why, "the peer has been AWAY for "+age(w.SinceMs))
		}
		if w.Error != "" {
			why = append(why, lastTry(w.State, w.Error, w.Attempt, w.NextTryMs)...)
		}
		terminal.Fprintf(out, "  bridge %s takes none: %s\n", w.Bridge, strings.Join(why, "; "))
	}
	for _, r := range x.Refused {
		user := "user " + r.User
		if r.User == "" {
			user = "somebody without a user name"
		}
		terminal.Fprintf(out, "  DENIED since start: %d, last %s ago: %s, who may not %s (%s)\n",
			r.Count, age(r.AgoMs), user, r.What, r.Who)
		terminal.Fprintf(out, "          released by %s\n", r.Releases)
	}
}
