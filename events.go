package hopwire

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"hopwire/internal/address"
	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// Limits of log lines about the same thing.
const (
	// quietTime is the time after a line in which its like are held back; then the last of them is
	// written, with their number.
	quietTime = 30 * time.Second
	// quietMost is what the quiet time of a bridge grows to while it says the same.
	quietMost = 10 * time.Minute
	// newsMost is how often a bridge may say something else in its quiet time.
	newsMost = 4
	// turnsMost is how often a bridge may begin or cease to run before lines about that are held
	// back, too, until it was calm: nothing came in the quiet times of a line up to calmTime.
	turnsMost = 10
	calmTime  = 2 * time.Minute
	// heldMost bounds the things that lines are held back about. Beyond it those of one kind share
	// a line, whatever they are about.
	heldMost = 1000
	// apartMost bounds, of each kind, the users, peers and the like whose lines are held back apart.
	// Beyond it the others share a line.
	apartMost = 100
)

// eventLog turns what the core and the bridges tell into log lines; it runs on the loop. Lines for
// debugging are not held back.
type eventLog struct {
	log  *slog.Logger
	env  clock
	held map[eventKey]*heldLine
	// apart[k] = how many of held are of kind k and have an of
	apart map[int]int
}

// clock is what an eventLog needs of the loop.
type clock interface {
	After(d time.Duration, f func()) loop.Timer
	Wall() int64 // milliseconds since 1970
}

// eventKey is what a line is about. kind is a core's or a bridge's; bridge is "" for the core's,
// and begins with "+" for those about a peer's bridge, with "*" for a bridge's own and with " " for
// those about a transaction.
type eventKey struct {
	bridge string
	kind   int
	reason message.Reason
	dest   message.Destination
	of     string // a user and a host, a peer and the like
}

// heldLine is a thing that was written about and is quiet now.
type heldLine struct {
	quiet  time.Duration
	timer  loop.Timer // its end, or when what turned has settled
	end    int64      // Wall, of the quiet
	n      int64      // held back in it
	last   line       // of them
	state  string     // as the last line had it
	turn   string     // likewise
	mixed  bool       // a line with another state was held back
	turned bool       // likewise with another turn
	news   int        // lines written in spite of the quiet
	turns  int        // those of turns, since it was calm
}

type line struct {
	level slog.Level
	text  string
	attrs []any
	state string // of a bridge, with its cause; "" for all else
	turn  string // RUNNING or DEGRADED when a bridge is; a change of it is news at once
	at    int64  // Wall, of the event
}

func newEventLog(log *slog.Logger, env clock) *eventLog {
	return &eventLog{log: log, env: env, held: map[eventKey]*heldLine{}, apart: map[int]int{}}
}

func (l *eventLog) enabled(level slog.Level) bool {
	return l.log.Enabled(context.Background(), level)
}

func (l *eventLog) write(x line, held int64) {
	if held > 0 {
		x.attrs = append(x.attrs, "sinceLastLine", held)
	}
	l.log.Log(context.Background(), x.level, x.text, x.attrs...)
}

// flush writes what is held back, in the order of its events. Nothing may be said meanwhile.
func (l *eventLog) flush() {
	held := slices.DeleteFunc(slices.Collect(maps.Values(l.held)), func(h *heldLine) bool {
		return h.n == 0
	})
	slices.SortStableFunc(held, func(x, y *heldLine) int { return cmp.Compare(x.last.at, y.last.at) })
	for _, h := range held {
		l.late(h)
		h.n = 0
	}
}

// late writes the last of the lines that were held back, with the time of its event.
func (l *eventLog) late(h *heldLine) {
	h.last.attrs = append(h.last.attrs, "at",
		time.UnixMilli(h.last.at).Format("2006-01-02T15:04:05.000Z07:00"))
	l.write(h.last, h.n-1)
}

// say writes a line, or holds it back while its like are quiet. A bridge that begins or ceases to
// run is heard at once, unless it flaps. One that says something else than the last time is heard,
// too, but not again and again.
func (l *eventLog) say(key eventKey, x line) {
	x.at = l.env.Wall()
	if x.level < slog.LevelInfo {
		l.write(x, 0)
		return
	}
	h := l.held[key]
	if h == nil && key.of != "" && l.apart[key.kind] >= apartMost {
		key.of = ""
		h = l.held[key]
	}
	if h == nil && len(l.held) >= heldMost {
		key = eventKey{bridge: key.bridge[:min(1, len(key.bridge))], kind: key.kind}
		h = l.held[key]
	}
	switch {
	case h == nil:
		l.write(x, 0)
		h = &heldLine{quiet: quietTime, state: x.state, turn: x.turn}
		l.held[key] = h
		if key.of != "" {
			l.apart[key.kind]++
		}
		l.await(key, h)
	case h.turns < turnsMost && (x.turn != h.turn || x.state != h.state && h.news < newsMost):
		l.write(x, h.n)
		if x.turn == h.turn {
			h.news++
		} else {
			h.turns++
		}
		h.n, h.state, h.turn, h.quiet, h.mixed = 0, x.state, x.turn, quietTime, false
		h.timer.Stop()
		l.await(key, h)
	default:
		l.hold(key, h, x)
	}
}

// hold keeps a line back. That something turned is told when it has settled, a quarter of the quiet
// time later, or at the end of that.
func (l *eventLog) hold(key eventKey, h *heldLine, x line) {
	before := h.turn
	if h.n > 0 {
		before = h.last.turn
	}
	h.n, h.last, h.mixed = h.n+1, x, h.mixed || x.state != h.state
	if x.turn == before {
		return
	}
	h.turned = true
	h.timer.Stop()
	left := time.Duration(h.end-x.at) * time.Millisecond
	l.wake(key, h, min(max(left, 0), max(h.quiet/4, quietTime)))
}

// await ends the quiet: for good when nothing was held back, or with the last line that was, and
// another quiet time. That of a bridge grows until it was silent in the longest: its tries may be
// farther apart than the first, or it flaps.
func (l *eventLog) await(key eventKey, h *heldLine) {
	h.end = l.env.Wall() + h.quiet.Milliseconds()
	l.wake(key, h, h.quiet)
}

func (l *eventLog) wake(key eventKey, h *heldLine, after time.Duration) {
	h.timer = l.env.After(after, func() {
		if h.n == 0 && (h.state == "" || h.quiet >= quietMost) {
			delete(l.held, key)
			if key.of != "" {
				l.apart[key.kind]--
			}
			return
		}
		if h.n > 0 {
			l.late(h)
			h.state, h.turn = h.last.state, h.last.turn
		} else if h.quiet >= calmTime {
			h.turns = 0
		}
		switch {
		case h.mixed && !h.turned:
			h.quiet = quietTime // it goes to and fro
		case h.state != "":
			h.quiet, h.news = min(2*h.quiet, quietMost), 0
		}
		h.n, h.mixed, h.turned = 0, false, false
		l.await(key, h)
	})
}

// eventWords are the texts and levels of the core's events.
var eventWords = map[broker.EventKind]struct {
	level slog.Level
	text  string
}{
	broker.ConnectionOpened:    {slog.LevelDebug, "connection opened"},
	broker.ConnectionClosed:    {slog.LevelDebug, "connection closed"},
	broker.ConnectionRefused:   {slog.LevelWarn, "connection refused"},
	broker.DestinationAdded:    {slog.LevelDebug, "destination added"},
	broker.DestinationRemoved:  {slog.LevelDebug, "destination removed"},
	broker.DestinationInactive: {slog.LevelInfo, "unused destinations removed"},
	broker.MessageDropped:      {slog.LevelWarn, "message dropped"},
	broker.MessageDead:         {slog.LevelWarn, "message dead-lettered"},
	broker.SendParked:          {slog.LevelWarn, "sends wait for space"},
	broker.SendRefused:         {slog.LevelWarn, "send refused"},
	broker.StoreTrouble:        {slog.LevelError, "store trouble"},
	broker.DuplicateKnown:      {slog.LevelInfo, "duplicate recognised"},
	broker.DoubtReleased:       {slog.LevelWarn, "copy in doubt released"},
	broker.ConsumerAborted:     {slog.LevelWarn, "slow consumer aborted"},
	broker.ConsumerWarning:     {slog.LevelWarn, "consumer"},
	broker.PeerWarning:         {slog.LevelWarn, "peer"},
	broker.AccessDenied:        {slog.LevelWarn, "access denied"},
	broker.BridgeCame:          {slog.LevelInfo, "a peer's bridge came"},
	broker.BridgeLeft:          {slog.LevelInfo, "a peer's bridge is gone"},
	broker.NotAsMeant:          {slog.LevelWarn, "not done as the sender meant it"},
	broker.SubscriptionRemoved: {slog.LevelWarn, "durable subscription"},
	broker.BranchFound:         {slog.LevelWarn, "prepared transaction waits for its outcome"},
	broker.BranchImposed:       {slog.LevelWarn, "prepared transaction ended by hand"},
	broker.ByHand:              {slog.LevelWarn, "done by hand"},
}

// core logs an event of the core.
func (l *eventLog) core(e broker.Event) {
	w := eventWords[e.Kind]
	if !l.enabled(w.level) {
		return
	}
	attrs := make([]any, 0, 8)
	if e.Reason != "" {
		attrs = append(attrs, "reason", string(e.Reason))
	}
	if !e.Dest.IsZero() {
		attrs = append(attrs, "destination", e.Dest.String())
	}
	if e.Text != "" {
		attrs = append(attrs, "what", e.Text)
	}
	key := eventKey{kind: int(e.Kind), reason: e.Reason, dest: e.Dest, of: e.Of}
	x := line{level: w.level, text: w.text}
	switch e.Kind {
	case broker.BranchFound, broker.BranchImposed:
		key.bridge = " " + e.Text // each is a thing of its own
	case broker.BridgeCame: // as bridges of ours
		x.turn, x.state = bridge.Running.String(), w.text
	case broker.BridgeLeft:
		key.kind, x.state = int(broker.BridgeCame), w.text
		attrs = append(attrs, "received", e.Count)
	}
	if e.By != "" {
		attrs = append(attrs, "by", e.By)
	}
	if e.Peer != "" {
		key.bridge = "+" + e.Peer
		attrs = append(attrs, "peer", e.Peer)
	}
	x.attrs = attrs
	if e.Kind == broker.ByHand || e.By != "" {
		l.write(x, 0) // somebody wants to know each
		return
	}
	l.say(key, x)
}

// bridgeWords are the texts and levels of the bridges' events.
var bridgeWords = map[bridge.EventKind]struct {
	level slog.Level
	text  string
}{
	bridge.StateChanged:      {slog.LevelInfo, "bridge"},
	bridge.DemandOpened:      {slog.LevelDebug, "bridge forwards a destination"},
	bridge.DemandClosed:      {slog.LevelDebug, "bridge no longer forwards a destination"},
	bridge.DemandRefused:     {slog.LevelWarn, "bridge cannot forward a destination"},
	bridge.ForwardRefused:    {slog.LevelWarn, "bridge's peer refused"},
	bridge.ArrivalRefused:    {slog.LevelWarn, "bridge refused its peer"},
	bridge.ForwardPoisoned:   {slog.LevelWarn, "message can never cross the bridge"},
	bridge.DoubtsResolved:    {slog.LevelInfo, "copies in doubt resolved"},
	bridge.DoubtsReleased:    {slog.LevelWarn, "copies in doubt released"},
	bridge.Dropped:           {slog.LevelDebug, "bridge's peer said what is of no use"},
	bridge.DemandNotDurable:  {slog.LevelWarn, "durable subscriber behind a bridge"},
	bridge.AdvisoriesAborted: {slog.LevelWarn, "slow consumer aborted by the peer"},
	bridge.Mirrored:          {slog.LevelWarn, "two bridges mirror each other"},
	bridge.SameName:          {slog.LevelWarn, "two brokers have one name"},
}

// levelOf is the level of a bridge's event. States that others follow at once are for debugging.
func levelOf(e bridge.Event) slog.Level {
	switch {
	case e.State == bridge.Degraded, e.State == bridge.Backoff, e.State == bridge.Gone:
		return slog.LevelWarn
	case e.Kind != bridge.StateChanged:
	case e.State == bridge.Connecting, e.State == bridge.RemoteInfo, e.State == bridge.Resolving,
		e.State == bridge.Stopping:
		return slog.LevelDebug
	}
	return bridgeWords[e.Kind].level
}

// bridge logs an event of a bridge. All states of one bridge are one thing to write about, so that
// the last line tells how it stands.
func (l *eventLog) bridge(e bridge.Event) {
	level := levelOf(e)
	if !l.enabled(level) {
		return
	}
	attrs := []any{"bridge", e.Connector}
	if e.PeerName != "" {
		attrs = append(attrs, "peer", e.PeerName)
	}
	if e.Kind == bridge.StateChanged {
		attrs = append(attrs, "state", e.State.String())
		if e.PeerName == "" && e.Text == "" && e.URI != "" { // static:(a,b) makes two of a name
			attrs = append(attrs, "address", address.Shown(e.URI))
		}
	}
	if !e.Destination.IsZero() {
		attrs = append(attrs, "destination", e.Destination.String())
	}
	if e.Reason != "" {
		attrs = append(attrs, "reason", string(e.Reason))
	}
	if e.Count > 0 {
		attrs = append(attrs, "count", e.Count)
	}
	if e.Text != "" {
		attrs = append(attrs, "what", e.Text)
	}
	key := eventKey{bridge: "*" + e.Connector + " " + e.URI, kind: int(e.Kind), reason: e.Reason,
		dest: e.Destination}
	if e.URI == "" {
		key.bridge += string(e.Peer)
	}
	x := line{level: level, text: bridgeWords[e.Kind].text, attrs: attrs}
	if e.Kind == bridge.StateChanged {
		key.reason, x.state = "", e.State.String()+" "+e.Text
		if e.State == bridge.Running || e.State == bridge.Degraded {
			x.turn = e.State.String()
		}
	}
	l.say(key, x)
}
