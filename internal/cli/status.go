package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/terminal"
)

// statusCommand is hopwire status.
type statusCommand struct {
	brokerFlag
	statusView
	JSON bool `help:"Print everything as one JSON array, for programs."`
}

// statusView is what is shown of a status, and how.
type statusView struct {
	All  bool   `short:"a" help:"${statusAll}"`
	Sort string `help:"${statusSort}" enum:"pending,name" default:"pending"`
}

// How many entries of a list status shows when not all are asked for.
const (
	listMost         = 20
	transactionsMost = 5
)

// few gives the first of a list, and how many are not among them.
func few[T any](v statusView, list []T, most int) (shown []T, more int) {
	if v.All || len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

// andMore tells that a list is longer, and what shows the rest.
func andMore(out io.Writer, more int, one, which, how string) {
	if more > 0 {
		terminal.Fprintf(out, "  and %s%s: %s\n", plural.Of(more, "more "+one), which, how)
	}
}

// showsAll is what shows all of a list.
const showsAll = "hopwire status --all"

// Run prints how brokers stand.
func (c *statusCommand) Run(ctx context.Context, s *streams) error {
	them, missing, err := c.find(ctx)
	if err != nil && c.JSON {
		return errors.Join(printJSON(s.out, nil), err)
	}
	if err != nil {
		return err
	}
	all, err := every(ctx, them, func(ctx context.Context, a *asked) (*manage.Status, error) {
		return a.Status(ctx)
	})
	err = errors.Join(missing, err)
	inOrder(all)
	if c.JSON {
		return errors.Join(printJSON(s.out, all), err)
	}
	for i, status := range all {
		if i > 0 {
			terminal.Fprintln(s.out)
		}
		printStatus(s.out, status, c.statusView)
	}
	if same := sameNames(all, control.Others()); len(same) > 0 {
		terminal.Fprintf(s.out, "\n%s\n", terminal.Lines(same))
	}
	return err
}

// printJSON prints what programs read: names stay what they are from version to version.
func printJSON(out io.Writer, all []*manage.Status) error {
	if all == nil {
		all = []*manage.Status{}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		_, err = terminal.Fprintf(out, "%s\n", terminal.JSON(text))
	}
	return err
}

// inOrder puts the brokers of a process in the order of their files, and the processes in that of
// their first brokers' names.
func inOrder(all []*manage.Status) {
	first := map[int]*manage.Status{}
	for _, s := range all {
		if f := first[s.PID]; f == nil || s.Position < f.Position {
			first[s.PID] = s
		}
	}
	slices.SortStableFunc(all, func(a, b *manage.Status) int {
		return cmp.Or(cmp.Compare(first[a.PID].Broker, first[b.PID].Broker), cmp.Compare(a.PID, b.PID),
			cmp.Compare(a.Position, b.Position))
	})
}

func printStatus(out io.Writer, st *manage.Status, v statusView) {
	if st.Waits != "" {
		terminal.Fprintf(out, "broker %s  %s  pid %d  waits: %s\n", st.Broker, st.Version, st.PID,
			st.Waits)
		return
	}
	terminal.Fprintf(out, "broker %s  %s  pid %d  up %s  %s  memory %s%s  store %s%s%s\n",
		st.Broker, st.Version, st.PID, age(st.UptimeMs), plural.Of(st.Connections, "connection"),
		taken(st.MemoryBytes, st.MemoryLimitBytes), frames(st),
		stored(st),
		mark(storeFull(st), " FULL"), spooled(st))
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	for _, c := range st.Connectors {
		if before(c.Name, c.Address) == "" {
			terminal.Fprintf(w, "  listens\t%s\n", c.Address)
			continue
		}
		terminal.Fprintf(w, "  listens\t%s\t%s\n", c.Name, c.Address)
	}
	bridges, more := few(v, v.bridges(st.Bridges), listMost)
	for _, b := range bridges {
		terminal.Fprintf(w, "  bridge\t%s\t%s\t%s\t%s\n", b.Name, bridgeWay(&b), b.State,
			bridgeNote(&b, v.All))
	}
	w.Flush()
	andMore(out, more, "bridge", "", showsAll)
	var refused []string
	for i := range st.Bridges {
		refused = append(refused, refusedBy(&st.Bridges[i])...)
	}
	refused, more = few(v, refused, listMost)
	for _, line := range refused {
		terminal.Fprintf(out, "  %s\n", line)
	}
	andMore(out, more, "refusal", " of bridges", showsAll)
	incoming, more := few(v, st.Incoming, listMost)
	for _, x := range incoming {
		terminal.Fprintf(out, "  bridge from %s (%s)%s, received %d, for %s\n", x.Peer, x.Address,
			mark(x.Away, ", AWAY"), x.Received, age(x.SinceMs))
	}
	andMore(out, more, "bridge", " of peers", showsAll)
	printDestinations(out, st.Destinations, v)
	subscriptions, more := few(v, v.subscriptions(st.Subscriptions), listMost)
	for i := range subscriptions {
		terminal.Fprintf(out, "  durable %s\n", subscription(&subscriptions[i]))
	}
	andMore(out, more, "durable subscription", "", showsAll)
	transactions, more := few(v, st.Transactions, transactionsMost)
	for i := range transactions {
		terminal.Fprintf(out, "  prepared %s\n", transaction(&transactions[i]))
	}
	andMore(out, more, "prepared transaction", "", "hopwire transactions")
	if len(st.Reasons) > 0 {
		terminal.Fprintf(out, "  refused, dropped or suppressed since start: %s\n",
			reasonList(st.Reasons))
	}
}

// stored tells what the store takes.
func stored(st *manage.Status) string {
	if !st.Persistent {
		return "none"
	}
	text := taken(st.StoreBytes, st.StoreLimitBytes)
	if free := st.StoreFreeBytes; free >= 0 && free < st.StoreLimitBytes-st.StoreBytes {
		text += onDisk(free)
	}
	return text
}

// taken tells how many bytes are taken, and how many may be.
func taken(n, limit int64) string {
	if limit == 0 {
		return plural.Bytes(n) + ", no limit"
	}
	return plural.Bytes(n) + " of " + plural.Bytes(limit)
}

// storeFull reports whether the store takes nothing: its disk is full, or its limit is reached.
func storeFull(st *manage.Status) bool {
	return st.StoreFull || st.StoreLimitBytes > 0 && st.StoreBytes >= st.StoreLimitBytes
}

// spooled tells of messages in the spool, if there are some, or it is full.
func spooled(st *manage.Status) string {
	if st.Spooled == 0 && !st.TempFull {
		return ""
	}
	return "  spooled " + plural.Of(st.Spooled, "message") + ", temp " +
		taken(st.TempBytes, st.TempLimitBytes) + mark(st.TempFull, " FULL")
}

// frames tells of large frames that are being read, if there are some.
func frames(st *manage.Status) string {
	if st.FrameBytes == 0 && st.FramesWaiting == 0 {
		return ""
	}
	text := fmt.Sprintf("  frames %s of %s", plural.Bytes(st.FrameBytes),
		plural.Bytes(st.FrameLimitBytes))
	if st.FramesWaiting > 0 {
		text += fmt.Sprintf(", %d %s", st.FramesWaiting, plural.Form(st.FramesWaiting, "waits", "wait"))
	}
	return text
}

// refusedBy tells of destinations whose messages do not cross a bridge, as somebody refuses it.
func refusedBy(b *manage.Bridge) (lines []string) {
	for _, p := range b.Parked {
		lines = append(lines, fmt.Sprintf("bridge %s: %s waits: %s, next try in %s; %s", b.Name,
			p.Destination, p.Reason, age(p.NextTryMs), p.Text))
	}
	for _, d := range b.Demands {
		if d.Error != "" {
			lines = append(lines, fmt.Sprintf("bridge %s: %s is not forwarded: refused here, %s: %s",
				b.Name, d.Destination, d.Reason, d.Error))
		}
	}
	return lines
}

// bridges puts those that do not run before the others.
func (v statusView) bridges(list []manage.Bridge) []manage.Bridge {
	if v.All || len(list) <= listMost {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b manage.Bridge) int {
		return first(a.State != bridge.Running.String(), b.State != bridge.Running.String())
	})
	return list
}

// subscriptions puts those that keep most first, or sorts them by name.
func (v statusView) subscriptions(list []manage.Subscription) []manage.Subscription {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b manage.Subscription) int {
		byName := cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Name, b.Name))
		if v.Sort == "name" {
			return byName
		}
		return cmp.Or(cmp.Compare(b.Size, a.Size), byName)
	})
	return list
}

// destinations gives those that are shown, what is stuck before what waits and both by how much
// that is, or by name.
func (v statusView) destinations(list []manage.Destination) []manage.Destination {
	list = slices.DeleteFunc(slices.Clone(list), func(d manage.Destination) bool {
		return !v.All && d.Parked == 0 && (d.Size == 0 && d.Consumers+d.Networks+d.Producers == 0 ||
			strings.HasPrefix(d.Name, "temp-"))
	})
	slices.SortStableFunc(list, func(a, b manage.Destination) int {
		if v.Sort == "name" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(first(a.Parked > 0, b.Parked > 0),
			first(waiting(&a) != "", waiting(&b) != ""),
			cmp.Compare(b.Size-int64(b.InFlight), a.Size-int64(a.InFlight)),
			cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// first compares two things of which those come first that something is true of.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// printDestinations writes a table, and below it why messages wait.
func printDestinations(out io.Writer, list []manage.Destination, v statusView) {
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', tabwriter.AlignRight)
	head := "  destination\tsize\tin flight\tconsumers\tnetwork\tproducers\tenqueued\tdequeued" +
		"\tforwarded\t\n"
	busy := v.destinations(list)
	idle := len(list) - len(busy)
	list, more := few(v, busy, listMost)
	for _, d := range list {
		counted := ""
		if len(d.Reasons) > 0 {
			counted = "  " + reasonList(d.Reasons)
		}
		terminal.Fprintf(w, "%s", terminal.Text(head))
		head = ""
		terminal.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", d.Name, d.Size, d.InFlight,
			d.Consumers, d.Networks, d.Producers, d.Enqueued, d.Dequeued, d.Forwarded, counted)
	}
	w.Flush()
	andMore(out, more, "destination", "", showsAll)
	if idle > 0 {
		terminal.Fprintf(out, "  %s without messages, consumers and producers: %s\n",
			plural.Of(idle, "destination"), showsAll)
	}
	for _, line := range waitingLines(list) {
		terminal.Fprintf(out, "  %s\n", line)
	}
}

// subscription is a durable subscription in a line.
func subscription(s *manage.Subscription) string {
	text := fmt.Sprintf("%s of %s on %s: %s", cut(s.Name), cut(s.ClientID), cut(s.Destination),
		plural.Of(s.Size, "message"))
	if s.InFlight > 0 {
		text += fmt.Sprintf(", %d in flight", s.InFlight)
	}
	if s.Consumer != "" {
		text += "; consumer at " + s.Consumer + " for " + age(s.SinceMs)
	} else {
		text += "; away for " + age(s.SinceMs)
	}
	if s.Selector != "" {
		text += "; selector " + s.Selector
	}
	return text + mark(s.NoLocal, "; noLocal")
}

func bridgeWay(b *manage.Bridge) string {
	arrow := "-> "
	if b.Duplex {
		arrow = "<-> "
	}
	switch {
	case b.Peer != "" && b.URI != "":
		return arrow + b.Peer + " (" + b.URI + ")"
	case b.Peer != "":
		return arrow + b.Peer
	case b.Addresses > 1 && b.State == bridge.Backoff.String():
		return fmt.Sprintf("%snext %s, of %d addresses", arrow, b.URI, b.Addresses)
	case b.Addresses > 1:
		return fmt.Sprintf("%s%s, of %d addresses", arrow, b.URI, b.Addresses)
	}
	return arrow + b.URI
}

func bridgeNote(b *manage.Bridge, all bool) string {
	if b.State == manage.NotHonoured {
		return "never connects; " + b.Error
	}
	counts := []string{fmt.Sprintf("forwarded %d", b.Forwarded)}
	if b.Duplex || b.Accepted {
		counts = append(counts, fmt.Sprintf("received %d", b.Received))
	}
	if b.InFlight > 0 {
		counts = append(counts, fmt.Sprintf("%d unanswered", b.InFlight))
	}
	if b.SilentMs > 0 {
		counts = append(counts, "nothing answered for "+age(b.SilentMs))
	}
	if b.InDoubt > 0 {
		counts = append(counts, fmt.Sprintf("%d in doubt", b.InDoubt))
	}
	notes := []string{strings.Join(counts, ", ")}
	if n := reasonList(happened(b.Reasons)); n != "" {
		notes = append(notes, n)
	}
	if len(b.Passed) > 0 && all {
		notes = append(notes, "passed over "+reasonList(b.Passed))
	}
	if b.State == bridge.Gone.String() {
		notes = append(notes, "for "+age(b.SinceMs)+", without a word")
	}
	if b.Unseen != "" {
		notes = append(notes, b.Unseen)
	}
	if b.Error != "" {
		notes = append(notes, lastTry(b.State, b.Error, b.Attempt, b.NextTryMs)...)
	}
	return strings.Join(notes, "; ")
}

// lastTry tells why a bridge's last link or try ended, and when it tries again.
func lastTry(state, err string, attempt int, nextTryMs int64) (notes []string) {
	if attempt > 1 {
		notes = append(notes, fmt.Sprintf("tried %d times", attempt))
	}
	if state == bridge.Backoff.String() {
		notes = append(notes, "next try in "+age(nextTryMs))
	}
	return append(notes, "last: "+err)
}

// happened leaves out what a bridge's state tells: how often it was down.
func happened(list []manage.ReasonCount) []manage.ReasonCount {
	return slices.DeleteFunc(slices.Clone(list), func(r manage.ReasonCount) bool {
		return r.Reason == string(message.BridgeDown)
	})
}

func reasonList(list []manage.ReasonCount) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, fmt.Sprintf("%s %d", r.Reason, r.Count))
	}
	return strings.Join(parts, ", ")
}

// shownMost is how many characters of a name are shown where it is one of many things in a line.
const shownMost = 200

// cut is a name that may be longer than anybody reads; --json has all of it.
func cut(name string) string {
	if len(name) <= shownMost {
		return name
	}
	runes := []rune(name)
	if len(runes) <= shownMost {
		return name
	}
	return fmt.Sprintf("%s... (%d bytes)", string(runes[:shownMost]), len(name))
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
