package hopwire

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
)

// ErrStopped is the cause of an error of Open when the broker was told to stop while it waited as a
// slave.
var ErrStopped = errors.New("stopped while it waited as slave")

// slave is a broker that may have to wait for its data folder, or for space there. While it does,
// it answers on a control socket of its own; that in the folder is the holder's.
type slave struct {
	setup  *Setup
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // of the wait, which Stop ends
	cancel context.CancelCauseFunc
	server *control.Server
	group  *rungroup.Group

	mu    sync.Mutex
	line  string // what it waits for; "" when it does not
	waits bool   // for the folder
	over  bool   // the store is open, or will not be
}

func newSlave(ctx context.Context, s *Setup) *slave {
	x := &slave{setup: s, log: s.options.Log.With("broker", s.Name())}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// wait begins the wait; line names the folder and who holds it.
func (x *slave) wait(line string) {
	x.log.Info("waiting as slave", "folder", x.setup.Folder(), "what", line)
	x.setup.options.OnWait(line)
	x.note(line, true)
}

// full notes that the disk is full, on any goroutine: a store that is being opened waits.
func (x *slave) full(line string) {
	x.log.Error(line)
	x.note(line, false)
}

// note notes what is waited for, unless the wait is over, and answers from now on.
func (x *slave) note(line string, forFolder bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	x.line, x.waits = line, x.waits || forFolder
	if x.server == nil {
		x.listen()
	}
}

func (x *slave) waitsFor() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.line
}

func (x *slave) listen() {
	server, socket, err := control.Listen(x.setup.Name(), "", x)
	if err != nil {
		x.log.Warn("hopwire status will not list this slave", "error", err)
		return
	}
	x.server, x.group = server, rungroup.New(context.Background())
	x.group.Go("control of a slave", func(context.Context) error { return server.Serve(socket) })
}

// end ends the wait and gives the outcome of opening the store.
func (x *slave) end(err error) error {
	defer x.cancel(nil)
	x.mu.Lock()
	x.over = true
	server := x.server
	x.mu.Unlock()
	if server != nil {
		_ = bounded(func(ctx context.Context) error { server.Close(ctx); return nil })
		if lost := x.group.Wait(); lost != nil {
			x.log.Warn("the control socket of a slave", "error", lost)
		}
	}
	switch {
	case x.waits && err == nil:
		x.log.Info("took over", "folder", x.setup.Folder())
	case x.waits:
		why := err
		if cause := context.Cause(x.ctx); cause != nil {
			why = cause // the log has told what it waited for
		}
		x.log.Info("stopped while it waited as slave", "folder", x.setup.Folder(), "why", why.Error())
	}
	return err
}

// Presence implements manage.Subject.
func (x *slave) Presence() *manage.Presence { return &manage.Presence{Waits: x.waitsFor()} }

// Status implements manage.Subject.
func (x *slave) Status(context.Context) (*manage.Status, error) {
	return &manage.Status{Broker: x.setup.Name(), Version: Version, PID: pid,
		Position: x.setup.options.Position, DataFolder: absolute(x.setup.Folder()),
		Waits: x.waitsFor()}, nil
}

// Explain implements manage.Subject.
func (x *slave) Explain(context.Context, string, string) (*manage.Explanation, error) {
	return nil, message.Errorf(message.Unavailable, "it does not run yet: %s", x.waitsFor())
}

// Decide implements manage.Subject.
func (x *slave) Decide(context.Context, string, bool) error {
	return message.Errorf(message.Unavailable, "it does not run yet: %s", x.waitsFor())
}

// Purge implements manage.Subject.
func (x *slave) Purge(context.Context, string) (*manage.Purged, error) {
	return nil, message.Errorf(message.Unavailable, "it does not run yet: %s", x.waitsFor())
}

// Remove implements manage.Subject.
func (x *slave) Remove(context.Context, string) (*manage.Removed, error) {
	return nil, message.Errorf(message.Unavailable, "it does not run yet: %s", x.waitsFor())
}

// RemoveDurable implements manage.Subject.
func (x *slave) RemoveDurable(context.Context, string, string) (*manage.Removed, error) {
	return nil, message.Errorf(message.Unavailable, "it does not run yet: %s", x.waitsFor())
}

// Stop implements manage.Subject.
func (x *slave) Stop() { x.cancel(askedError{}) }

// askedError is why a wait ended that somebody ended by the control socket.
type askedError struct{}

func (askedError) Error() string { return "asked to (hopwire stop)" }

// Is makes it an ErrStopped.
func (askedError) Is(target error) bool { return target == ErrStopped }
