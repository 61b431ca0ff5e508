package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"hopwire/client"
	"hopwire/internal/message"
	"hopwire/internal/terminal"
)

// yesNo is an option that is given alone, or followed by true or false as ActiveMQ's are.
type yesNo bool

// IsBool tells kong that the option may stand alone.
func (*yesNo) IsBool() bool { return true }

// Decode reads the option.
func (y *yesNo) Decode(ctx *kong.DecodeContext) error {
	*y = true
	next := ctx.Scan.Peek()
	text, _ := next.Value.(string)
	text = strings.ToLower(text)
	switch {
	case text == "true" || text == "false":
		ctx.Scan.Pop()
		*y = text == "true"
	case next.Type == kong.FlagValueToken:
		return fmt.Errorf("%v is neither true nor false", next.Value)
	}
	return nil
}

// millis is a time in milliseconds, as ActiveMQ's options are, or with a unit.
type millis struct{ time.Duration }

// Decode reads the option.
func (m *millis) Decode(ctx *kong.DecodeContext) error {
	text, err := ctx.Scan.PopValue("time")
	if err != nil {
		return err
	}
	word := text.String()
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		const most = int64(1<<63-1) / int64(time.Millisecond)
		if n < 0 || n > most {
			return fmt.Errorf("%s is from 0 to %d milliseconds", word, most)
		}
		m.Duration = time.Duration(n) * time.Millisecond
		return nil
	}
	m.Duration, err = time.ParseDuration(word)
	if err != nil || m.Duration < 0 {
		return fmt.Errorf("%q is no time; write milliseconds, or a unit as in 500ms, 10s", word)
	}
	return nil
}

// span is a time with a unit.
type span struct{ time.Duration }

// Decode reads the option.
func (s *span) Decode(ctx *kong.DecodeContext) error {
	text, err := ctx.Scan.PopValue("time")
	if err != nil {
		return err
	}
	word := text.String()
	s.Duration, err = time.ParseDuration(word)
	switch {
	case err == nil && s.Duration >= 0:
		return nil
	case isNumber(word):
		return fmt.Errorf("%s has no unit; write %ss or %sms", word, word, word)
	}
	return fmt.Errorf("%q is no time; write it with a unit, as in 500ms, 10s", word)
}

func isNumber(word string) bool {
	_, err := strconv.ParseUint(word, 10, 64)
	return err == nil
}

// dialFlags are the options of commands that connect as a client.
type dialFlags struct {
	BrokerURL string `name:"brokerUrl" aliases:"amqurl" default:"${brokerURL}" help:"${anyBrokerURL}"`
	User      string `name:"user" placeholder:"NAME" help:"User name."`
	Password  string `name:"password" placeholder:"WORD" help:"Password."`
}

// oneDestination is where a command sends to or takes from: an option or an argument.
type oneDestination struct {
	Option *string `name:"destination" placeholder:"DEST" help:"${anyDest}"`
	Arg    *string `arg:"" optional:"" name:"dest" help:"The same as --destination."`
}

// parse gives the destination.
func (d *oneDestination) parse() (*client.Destination, error) {
	text := "queue://TEST"
	switch {
	case d.Option != nil && d.Arg != nil:
		return nil, usageError{fmt.Sprintf("two destinations: %s and --destination %s", *d.Arg,
			*d.Option)}
	case d.Arg != nil:
		text = *d.Arg
	case d.Option != nil:
		text = *d.Option
	}
	if strings.TrimSpace(text) == "" { // as of a variable that is not set
		return nil, usageError{"the name is empty"}
	}
	return parseDestination(text)
}

// parseDestination reads a destination.
func parseDestination(text string) (*client.Destination, error) {
	to, err := client.ParseDestination(text)
	if err != nil {
		return nil, usageError{err.Error()}
	}
	return to, nil
}

// farewell is how long a command takes leave from a broker.
const farewell = 5 * time.Second

// lingering is a context that ends a farewell after ctx: for what is on its way when a command is
// interrupted, and is to be counted.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	long, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cancel) })
	return long, func() {
		stop()
		cancel()
	}
}

// telling prints what a broker says without having been asked.
func telling(errOut io.Writer) func(error) {
	return func(err error) { terminal.Fprintln(errOut, "hopwire:", err) }
}

// dial connects; the second result takes leave.
func dial(ctx context.Context, uri, user, password, clientID string, errOut io.Writer,
) (*client.Conn, func(), error) {
	return dialTelling(ctx, uri, user, password, clientID, errOut, telling(errOut))
}

// dialTelling is dial that tells what a broker says without having been asked.
func dialTelling(ctx context.Context, uri, user, password, clientID string, errOut io.Writer,
	tell func(error),
) (*client.Conn, func(), error) {
	w := &waits{out: errOut}
	options := append(w.options(), client.WithErrorHandler(func(err error) {
		if !errors.Is(err, client.ErrUnavailable) { // the end of the connection ends the command
			tell(err)
		}
	}))
	if user != "" || password != "" {
		options = append(options, client.WithLogin(user, password))
	}
	if clientID != "" {
		options = append(options, client.WithClientID(clientID))
	}
	w.begin(nil)
	conn, err := client.Dial(ctx, uri, options...)
	if err == nil {
		w.end(conn)
	} else {
		w.leave()
	}
	var refused *client.BrokerError
	switch {
	case errors.Is(err, client.ErrUnavailable):
		return nil, nil, message.Errorf(message.Unavailable, "%w", err)
	case errors.As(err, &refused):
		return nil, nil, fmt.Errorf("%w%s", err, loginCure(refused, user))
	case ctx.Err() != nil:
		return nil, nil, err
	case err != nil:
		return nil, nil, usageError{err.Error()}
	}
	return conn, func() {
		defer w.leave()
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		err := conn.Close(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("the broker did not answer the good-bye within %s", farewell)
		}
		if err != nil {
			terminal.Fprintln(errOut, "hopwire:", err)
		}
	}, nil
}

// loginCure is what to do about a refused login; "" where that is not about the user.
func loginCure(e *client.BrokerError, user string) string {
	switch {
	case !strings.Contains(e.Class, "Security"):
		return ""
	case user == "":
		return "; give --user and --password"
	}
	return "; see --user and --password"
}
