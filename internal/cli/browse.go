package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"hopwire/client"
	"hopwire/internal/plural"
	"hopwire/internal/terminal"
	"hopwire/openwire"
	"hopwire/openwire/primitive"
)

// browseCommand is hopwire browse.
type browseCommand struct {
	Args     []string `arg:"" optional:"" name:"dest" help:"${browseDest}"`
	Dest     []string `name:"destination" sep:"none" placeholder:"DEST" help:"${browseSame}"`
	URL      string   `name:"amqurl" aliases:"brokerUrl" default:"${brokerURL}" help:"${browseURL}"`
	User     string   `placeholder:"NAME" help:"User name."`
	Password string   `placeholder:"WORD" help:"Password."`
	Select   []string `name:"msgsel" sep:"none" help:"Selector; NAME='a*b?' is a pattern."`
	Exclude  []string `name:"xmsgsel" sep:"none" help:"Leave out what this selector fits."`
	Parts    []string `short:"V" help:"Parts to show: header, custom, body."`
	View     []string `help:"Names of the headers and properties to show."`
	Count    bool     `help:"Print only how many messages there are."`
}

// pageSize is the maxBrowsePageSize of a policyEntry of ActiveMQ that does not set it. Who sees
// fewer sees all, as a rule.
const pageSize = 400

// Run shows the messages of queues without taking them.
func (c *browseCommand) Run(ctx context.Context, s *streams) error {
	for _, part := range c.Parts {
		if !slices.Contains([]string{"header", "custom", "body"}, part) {
			return usageError{fmt.Sprintf("-V %s; use header, custom or body", part)}
		}
	}
	queues, err := c.queues()
	if err != nil {
		return err
	}
	conn, leave, err := dial(ctx, c.URL, c.User, c.Password, "", s.err)
	if err != nil {
		return err
	}
	defer leave()
	there, err := queuesOf(ctx, conn)
	if err != nil {
		return err
	}
	session, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	shown := 0
	for _, q := range queues {
		name := client.FormatDestination(q)
		if there.lacks(q) {
			terminal.Fprintf(s.out, "%s does not exist on this broker%s\n", name,
				nearest(q.PhysicalName, there.names))
			continue
		}
		n, cut, unsure, err := c.browse(ctx, session, q, s.out)
		if shown += n; ctx.Err() != nil {
			return interruptedError{"saw " + plural.Of(shown, "message")}
		}
		if err != nil {
			return err
		}
		bound := mark(cut != "", "at least ")
		if unsure != "" {
			bound = "about "
		}
		terminal.Fprintf(s.out, "%s: %s%s%s%s\n", name, bound, plural.Of(n, "message"), cut, unsure)
	}
	return nil
}

// queues reads the names. queue:NAME is ActiveMQ's form here, queue://NAME that of other places.
func (c *browseCommand) queues() ([]*client.Destination, error) {
	var out []*client.Destination
	for _, text := range append(slices.Clip(c.Args), c.Dest...) {
		if name, ok := strings.CutPrefix(text, "queue:"); ok {
			text = "queue://" + strings.TrimPrefix(name, "//")
		}
		d, err := client.ParseDestination(text)
		switch {
		case strings.TrimSpace(text) == "":
			return nil, usageError{"the name is empty"}
		case err != nil && !strings.HasPrefix(text, "topic:"):
			return nil, usageError{err.Error()}
		case err != nil, d.Type != openwire.TypeQueue && d.Type != openwire.TypeTempQueue:
			return nil, usageError{text + " is a topic, which keeps no messages; only queues can be" +
				" browsed"}
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, usageError{"no queue is named; hopwire browse NAME shows one"}
	}
	return out, nil
}

// browse shows one queue and counts what it showed; it tells why that may not be all, and why it
// may be too much.
func (c *browseCommand) browse(ctx context.Context, session *client.Session,
	queue *client.Destination, out io.Writer,
) (n int, cut, unsure string, err error) {
	excluded := map[string]bool{}
	for _, x := range c.Exclude {
		part, err := each(ctx, session, queue, selector([]string{x}), func(m *client.Message) error {
			excluded[m.ID] = true
			return nil
		})
		if err != nil {
			return 0, "", "", err
		}
		if part != "" {
			unsure = "; --xmsgsel may leave out too few, since" + strings.TrimPrefix(part, ";")
		}
	}
	cut, err = each(ctx, session, queue, selector(c.Select), func(m *client.Message) error {
		if excluded[m.ID] {
			return nil
		}
		if n++; c.Count {
			return nil
		}
		return c.show(out, m)
	})
	return n, cut, unsure, err
}

// each calls f with the messages of a queue that a selector fits, and tells why these may not be
// all.
func each(ctx context.Context, session *client.Session, queue *client.Destination, selector string,
	f func(*client.Message) error,
) (cut string, err error) {
	b, err := session.Browser(ctx, queue, client.WithSelector(selector))
	if err != nil {
		return "", err
	}
	for seen := 0; ; seen++ {
		m, err := b.Next(ctx)
		if errors.Is(err, io.EOF) {
			switch more, known := b.Cut(); {
			case more:
				cut = "; the queue's policy lets a browser see no more (maxBrowsePageSize)"
			case b.MayBeCut(), !known && seen >= pageSize:
				cut = "; the broker may let a browser see no more (maxBrowsePageSize)"
			}
			return cut, b.Close()
		}
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return "", errors.Join(err, b.Close())
		}
	}
}

var (
	conjunction = regexp.MustCompile(`'[^']*'|[^',]+|,|'`)
	wildcard    = regexp.MustCompile(`^\s*([\w$.]+)\s*=\s*'([^']*[*?][^']*)'\s*$`)
)

// selector makes a JMS selector of the short form: commas are AND, NAME='a*b?' is a pattern.
func selector(short []string) string {
	var terms []string
	for _, s := range short {
		term := ""
		for _, token := range append(conjunction.FindAllString(s, -1), ",") {
			if token != "," {
				term += token
				continue
			}
			if term = strings.TrimSpace(term); term != "" {
				terms = append(terms, like(term))
			}
			term = ""
		}
	}
	if len(terms) < 2 {
		return strings.Join(terms, "")
	}
	return "(" + strings.Join(terms, ") AND (") + ")"
}

// like turns a comparison with a pattern into LIKE.
func like(term string) string {
	parts := wildcard.FindStringSubmatch(term)
	if parts == nil {
		return term
	}
	pattern := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").
		Replace(parts[2])
	text := parts[1] + " LIKE '" + pattern + "'"
	if strings.Contains(pattern, `\`) {
		text += ` ESCAPE '\'`
	}
	return text
}

// show writes one message.
func (c *browseCommand) show(out io.Writer, m *client.Message) error {
	var lines []string
	add := func(part, name string, value terminal.Text) {
		asked := slices.Contains(c.Parts, part)
		// A body has no name of its own: who asks for it gets it, whatever else is named.
		named := slices.Contains(c.View, name) || part == "body" && asked
		if len(c.Parts) > 0 && !asked || len(c.View) > 0 && !named {
			return
		}
		lines = append(lines, fmt.Sprintf("%-6s  %s = %s", part, terminal.Safe(name), value))
	}
	for _, h := range headers(m) {
		add("header", h[0], shown(h[1]))
	}
	properties, err := m.Properties()
	if err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	for _, p := range properties {
		add("custom", p.Key, shown(plain(p.Value)))
	}
	body, err := m.Body()
	if err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	switch body := body.(type) {
	case nil:
	case string:
		add("body", "JMSText", terminal.Body(body, bodyIndent))
	default:
		add("body", "JMSBody", shown(plain(body)))
	}
	_, err = terminal.Fprintf(out, "%s\n\n", terminal.Text(strings.Join(lines, "\n")))
	return err
}

// bodyIndent is before each line of a text but the first, where the names of the others stand.
const bodyIndent = "        "

func shown(value string) terminal.Text { return terminal.Text(terminal.Safe(value)) }

// headers are the JMS headers of a message that say something.
func headers(m *client.Message) [][2]string {
	mode := "non-persistent"
	if m.Persistent {
		mode = "persistent"
	}
	all := [][2]string{
		{"JMSMessageID", m.ID},
		{"JMSDestination", client.FormatDestination(m.Destination)},
		{"OriginalDestination", client.FormatDestination(m.OriginalDestination())},
		{"JMSDeliveryMode", mode},
		{"JMSPriority", fmt.Sprint(m.Priority)},
		{"JMSRedelivered", fmt.Sprint(m.Redelivered())},
		{"JMSTimestamp", moment(m.Timestamp)},
		{"JMSExpiration", moment(m.Expiration)},
		{"JMSCorrelationID", m.CorrelationID},
		{"JMSReplyTo", client.FormatDestination(m.ReplyTo)},
		{"JMSType", m.Type},
		{"JMSXGroupID", m.GroupID},
		{"JMSXUserID", m.UserID},
	}
	return slices.DeleteFunc(all, func(h [2]string) bool { return h[1] == "" })
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// plain writes a value of a property or body.
func plain(value any) string {
	switch v := value.(type) {
	case []byte:
		return fmt.Sprintf("%x", v)
	case primitive.Char:
		return string(rune(v))
	case primitive.Map:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = e.Key + "=" + plain(e.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case primitive.List:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = plain(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
