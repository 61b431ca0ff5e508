package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"hopwire"
	"hopwire/internal/rungroup"
)

// readTime is how long files may take to be read: a pipe may be one that nobody writes.
var readTime = 30 * time.Second

// load reads a broker's file, unless a signal comes before that has ended.
func load(ctx context.Context, file string, options hopwire.Options) (*hopwire.Setup, error) {
	type result struct {
		setup *hopwire.Setup
		err   error
	}
	read := make(chan result, 1)
	rungroup.New(context.Background()).Go("read "+file, func(context.Context) error {
		setup, err := hopwire.Load(file, options)
		read <- result{setup, err}
		return nil
	})
	late := time.NewTimer(readTime)
	defer late.Stop()
	select {
	case r := <-read:
		if r.err != nil {
			return nil, fileError{r.err}
		}
		return r.setup, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s was being read: %w", file, context.Cause(ctx))
	case <-late.C:
		return nil, fileError{fmt.Errorf("%s, or a file that it names, was not read within %s%s", file,
			readTime, pipeAsked(file))}
	}
}

// pipeAsked asks about a file that was not read, if it is no regular one.
func pipeAsked(file string) string {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		return ""
	}
	return ": is it a pipe that nobody writes to?"
}
