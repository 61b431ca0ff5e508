package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
)

// brokerFlag picks running brokers.
type brokerFlag struct {
	Broker []string `short:"b" sep:"none" help:"${brokerFlag}" placeholder:"NAME"`
	PID    int      `name:"pid" help:"${pidFlag}" placeholder:"PID"`
}

// asked is a running broker that a command asks.
type asked struct {
	*control.Client
	waits string // what it waits for, when it does not run yet
	err   error  // why it cannot be asked
}

// ask gives the running brokers that are meant, all of them, and has heard whether they answer.
func (f brokerFlag) ask(ctx context.Context) ([]*asked, error) {
	out, missing, err := f.find(ctx)
	if err == nil {
		err = missing
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// find gives those of the brokers that are meant which run, at least one, and tells which do not.
func (f brokerFlag) find(ctx context.Context) (out []*asked, missing, err error) {
	all, err := control.Running(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		named := len(f.Broker) == 0 || slices.Contains(f.Broker, c.Name)
		if named && (f.PID == 0 || c.PID == f.PID) {
			out = append(out, &asked{Client: c})
		}
	}
	for _, name := range f.Broker {
		if !slices.ContainsFunc(out, func(a *asked) bool { return a.Name == name }) {
			var near []string
			for _, c := range all {
				near = append(near, c.Name)
			}
			missing = errors.Join(missing, message.Errorf(message.Unavailable, "no broker named %s is"+
				" running%s for this user; hopwire status lists those that are%s%s", name, f.process(),
				elsewhereOf(name, control.Others()), nearest(name, near)))
		}
	}
	switch {
	case len(out) == 0 && missing != nil:
		return nil, nil, missing
	case len(out) == 0 && f.PID != 0:
		return nil, nil, message.Errorf(message.Unavailable, "no broker is running%s for this user;"+
			" hopwire status lists those that are", f.process())
	case len(out) == 0:
		return nil, nil, message.Errorf(message.Unavailable,
			"no broker is running for this user (looked in %s%s)%s; hopwire start FILE runs one",
			control.ListFolder(), whereTemp(), beside(control.Others()))
	}
	atOnce(ctx, out, func(ctx context.Context, a *asked) {
		p, err := a.Ping(ctx)
		if a.err = err; err == nil {
			a.waits = p.Waits
		}
	})
	return out, missing, ctx.Err()
}

// whereTemp is why the list of running brokers is looked for where it is: brokers that were started
// with another TMPDIR are on another.
func whereTemp() string {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		return ", as TMPDIR is " + dir
	}
	return ", as TMPDIR is not set"
}

// process names the process that is meant, in an error.
func (f brokerFlag) process() string {
	if f.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" in process %d", f.PID)
}

// atOnce does something with all of them at the same time.
func atOnce(ctx context.Context, them []*asked, f func(context.Context, *asked)) {
	g := rungroup.New(ctx)
	for i, a := range them {
		g.Go(fmt.Sprintf("broker %d", i), func(ctx context.Context) error {
			f(ctx, a)
			return nil
		})
	}
	_ = g.Wait() // f keeps what went wrong
	g.Stop()
}

// every asks all that answer at the same time, and gives their answers in order, with what went
// wrong with the others.
func every[T any](ctx context.Context, them []*asked, f func(context.Context, *asked) (T, error),
) ([]T, error) {
	answers := make([]T, len(them))
	for _, a := range them {
		if err := context.Cause(ctx); err != nil && a.err == nil {
			a.err = err // nobody is asked
		}
	}
	atOnce(ctx, them, func(ctx context.Context, a *asked) {
		if a.err != nil {
			return
		}
		i := slices.Index(them, a)
		answers[i], a.err = f(ctx, a)
	})
	var out []T
	var errs []error
	for i, a := range them {
		if a.err != nil {
			errs = append(errs, a.err)
			continue
		}
		out = append(out, answers[i])
	}
	return out, errors.Join(errs...)
}

// names lists brokers in an error.
func names(them []*asked) string {
	var out []string
	for _, a := range them {
		out = append(out, a.among(them))
	}
	return strings.Join(out, ", ")
}

// among is the broker's name, with its process where others of them have the same name.
func (a *asked) among(them []*asked) string {
	if len(namesakes(a, them)) == 1 {
		return a.Name
	}
	return fmt.Sprintf("%s pid %d", a.Name, a.PID)
}

// namesakes are those of a broker's name, itself among them.
func namesakes(a *asked, them []*asked) []*asked {
	return slices.DeleteFunc(slices.Clone(them), func(b *asked) bool { return b.Name != a.Name })
}

// running leaves out brokers that wait for others; if all do, none.
func running(them []*asked) []*asked {
	out := slices.DeleteFunc(slices.Clone(them), func(a *asked) bool { return a.waits != "" })
	if len(out) == 0 {
		return them
	}
	return out
}
