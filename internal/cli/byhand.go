package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/rungroup"
	"hopwire/internal/terminal"
)

// forceFlag is asking before something is lost, or not.
type forceFlag struct {
	Force bool `short:"f" help:"Do not ask. Without a terminal it is needed."`
}

// purgeCommand is hopwire purge.
type purgeCommand struct {
	brokerFlag
	forceFlag
	Queue string `arg:"" name:"destination" help:"${purgeDest}"`
}

// Run drops what waits in a queue; of a topic what its durable subscriptions keep and cannot be
// read.
func (c *purgeCommand) Run(ctx context.Context, s *streams) error {
	name, err := oneNamed(c.Queue)
	if err != nil {
		return err
	}
	do := func(ctx context.Context, a *asked) (string, error) {
		p, err := a.Purge(ctx, name.String())
		if err != nil {
			return "", err
		}
		return purged(name.String(), p), nil
	}
	return ofDestination(ctx, s, c.brokerFlag, c.forceFlag, "purge", name, do)
}

// purged tells what became of a queue.
func purged(name string, p *manage.Purged) string {
	text := fmt.Sprintf("%s: %s dropped", name, plural.Of(p.Dropped, "message"))
	var stay []string
	for _, x := range []struct {
		n   int64
		why string
	}{
		{p.InFlight, "in flight to a consumer or peer"},
		{p.Transacted, "in open or prepared transactions"},
		{p.InDoubt, "in doubt: a peer may have them"},
	} {
		if x.n > 0 {
			stay = append(stay, fmt.Sprintf("%d %s", x.n, x.why))
		}
	}
	if len(stay) > 0 {
		text += "; not purged: " + strings.Join(stay, ", ")
	}
	if p.Parked > 0 {
		text += fmt.Sprintf("; %s that waited for room may come in now", plural.Of(p.Parked, "send"))
	}
	return text
}

// deleteCommand is hopwire delete.
type deleteCommand struct {
	brokerFlag
	forceFlag
	Destination string `arg:"" name:"destination" help:"A queue, or topic://NAME."`
}

// Run deletes a queue or topic that nobody uses.
func (c *deleteCommand) Run(ctx context.Context, s *streams) error {
	name, err := oneNamed(c.Destination)
	if err != nil {
		return err
	}
	do := func(ctx context.Context, a *asked) (string, error) {
		r, err := a.Remove(ctx, name.String())
		if err != nil {
			return "", err
		}
		return name.String() + " is deleted" + dropped(r), nil
	}
	return ofDestination(ctx, s, c.brokerFlag, c.forceFlag, "delete", name, do)
}

// dropped tells what went with something that was removed.
func dropped(r *manage.Removed) string {
	text := ", " + plural.Of(r.Dropped, "message") + " dropped"
	if r.InDoubt > 0 {
		text += fmt.Sprintf(", %d of them in doubt: a peer may have them", r.InDoubt)
	}
	if r.Remark != "" {
		text += "; " + r.Remark
	}
	return text
}

// removeDurableCommand is hopwire remove-durable.
type removeDurableCommand struct {
	brokerFlag
	forceFlag
	ClientID string `arg:"" name:"clientID" help:"The client id of the subscriber."`
	Name     string `arg:"" name:"name" help:"The name of its subscription."`
}

// Run ends a durable subscription.
func (c *removeDurableCommand) Run(ctx context.Context, s *streams) error {
	if c.ClientID == "" || c.Name == "" {
		return usageError{"the client id or the name is empty; hopwire status lists both as NAME of ID"}
	}
	key := c.Name + " of " + c.ClientID
	them, text, err := c.having(ctx, "durable subscription "+key, subscriptionsOf,
		func(st *manage.Status) string {
			for i := range st.Subscriptions {
				if x := &st.Subscriptions[i]; x.Name == c.Name && x.ClientID == c.ClientID {
					return fmt.Sprintf("%s, %s", x.Destination, plural.Of(x.Size, "message"))
				}
			}
			return ""
		})
	if err != nil {
		return err
	}
	if err := c.sure(ctx, s, "end durable subscription "+key+" of "+text); err != nil {
		return err
	}
	return doEach(ctx, s, them, func(ctx context.Context, a *asked) (string, error) {
		r, err := a.RemoveDurable(ctx, c.ClientID, c.Name)
		if err != nil {
			return "", err
		}
		return "durable subscription " + key + " is removed" + dropped(r), nil
	})
}

// ofDestination has the brokers that are meant do something to one destination, when whoever sits
// there is sure.
func ofDestination(ctx context.Context, s *streams, which brokerFlag, force forceFlag, verb string,
	name message.Destination, do func(context.Context, *asked) (string, error),
) error {
	them, text, err := which.having(ctx, name.String(), destinationsOf,
		func(st *manage.Status) string { return has(st, name.String()) })
	if err != nil {
		return err
	}
	if err := force.sure(ctx, s, verb+" "+name.String()+" of "+text); err != nil {
		return err
	}
	return doEach(ctx, s, them, do)
}

// named reads the name of a destination, a pattern or a list, which has no options.
func named(text string) (message.Destination, error) {
	if strings.TrimSpace(text) == "" {
		return message.Destination{}, usageError{"the name is empty"}
	}
	if _, err := parseDestination(text); err != nil {
		return message.Destination{}, err
	}
	name, _ := message.ParseDestination(text, message.Queue)
	if before, _, has := strings.Cut(strings.TrimSpace(text), "?"); has {
		return name, usageError{fmt.Sprintf("%s: options are for consumers, and no part of a name;"+
			" write %s", text, before)}
	}
	return name, nil
}

// oneNamed reads the name of one destination.
func oneNamed(text string) (message.Destination, error) {
	name, err := named(text)
	if err != nil {
		return name, err
	}
	if name.IsPattern() || name.IsComposite() {
		return name, usageError{fmt.Sprintf("%s is several destinations: name one at a time", name)}
	}
	return name, nil
}

// has tells what a broker has of a destination; "" when it has none of that name.
func has(st *manage.Status, name string) string {
	for i := range st.Destinations {
		if d := &st.Destinations[i]; d.Name == name {
			return fmt.Sprintf("%s, %d in flight, %s", plural.Of(d.Size, "message"), d.InFlight,
				plural.Of(d.Consumers+d.Networks, "consumer"))
		}
	}
	return ""
}

func destinationsOf(st *manage.Status) (names []string) {
	for i := range st.Destinations {
		names = append(names, st.Destinations[i].Name)
	}
	return names
}

func subscriptionsOf(st *manage.Status) (names []string) {
	for i := range st.Subscriptions {
		x := &st.Subscriptions[i]
		names = append(names, "durable subscription "+x.Name+" of "+x.ClientID)
	}
	return names
}

// having gives the brokers that have something, and a text that names them with what they have. One
// broker is enough; of several, those that were named.
func (f brokerFlag) having(ctx context.Context, what string, all func(*manage.Status) []string,
	look func(*manage.Status) string,
) (have []*asked, text string, err error) {
	them, err := f.ask(ctx)
	if err != nil {
		return nil, "", err
	}
	them = running(them)
	type found struct {
		*asked
		*manage.Status
	}
	list, err := every(ctx, them, func(ctx context.Context, a *asked) (found, error) {
		st, err := a.Status(ctx)
		return found{a, st}, err
	})
	if err != nil {
		return nil, "", err
	}
	var texts, near []string
	for _, x := range list {
		near = append(near, all(x.Status)...)
		if had := look(x.Status); had != "" {
			have = append(have, x.asked)
			texts = append(texts, fmt.Sprintf("%s (%s)", x.among(them), had))
		}
	}
	switch {
	case len(have) == 0:
		return nil, "", message.Errorf(message.NotFound, "no running broker has %s (asked: %s)%s%s",
			what, names(them), nearest(what, near), beside(control.Others()))
	case len(have) > 1 && (len(f.Broker) == 0 || !distinctNames(have)):
		return nil, "", usageError{fmt.Sprintf("%s is at brokers %s; name one with --broker NAME%s",
			what, strings.Join(texts, ", "), mark(!distinctNames(have), " and --pid PID")+
				mark(distinctNames(have), ", or each that is meant"))}
	}
	return have, "broker " + strings.Join(texts, ", broker "), nil
}

func distinctNames(them []*asked) bool {
	return !slices.ContainsFunc(them, func(a *asked) bool { return len(namesakes(a, them)) > 1 })
}

// doEach has brokers do something and prints what became of it.
func doEach(ctx context.Context, s *streams, them []*asked,
	do func(context.Context, *asked) (string, error),
) error {
	done, err := every(ctx, them, func(ctx context.Context, a *asked) (string, error) {
		text, err := do(ctx, a)
		return "broker " + a.among(them) + ": " + text, err
	})
	for _, line := range done {
		terminal.Fprintln(s.out, line)
	}
	if err != nil && ctx.Err() != nil {
		return interruptedError{"a broker that was asked goes on with it"}
	}
	return err
}

// sure asks whether that is to be done; where nobody can be asked it is not.
func (f forceFlag) sure(ctx context.Context, s *streams, what string) error {
	switch {
	case f.Force:
		return nil
	case !isSeen(s.in):
		return usageError{what + ": there is no terminal to ask on, nothing was changed; --force does it"}
	}
	return confirm(ctx, s, what)
}

// confirm wants a yes. A signal is none.
func confirm(ctx context.Context, s *streams, what string) error {
	terminal.Fprintf(s.err, "%s? It cannot be undone. [y/N] ", what)
	answer := make(chan string, 1)
	rungroup.New(context.Background()).Go("answer", func(context.Context) error {
		line, _ := bufio.NewReader(s.in).ReadString('\n') // without one it is no yes
		answer <- line
		return nil
	})
	no := interruptedError{"nothing was changed"}
	select {
	case <-ctx.Done():
		terminal.Fprintln(s.err)
		return no
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		if !strings.HasSuffix(line, "\n") {
			terminal.Fprintln(s.err)
		}
		return errors.New(no.done)
	}
}

// isSeen reports whether somebody sits before what is read.
func isSeen(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	null, no := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && (no != nil || !os.SameFile(info, null))
}
