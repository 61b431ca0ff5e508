package hopwire

import (
	"context"
	"log/slog"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// eventLog turns what the core and the bridges tell into log lines. Lines of one kind about one
// destination and reason come at most once in quietTime; those held back are counted in the next.
type eventLog struct {
	log  *slog.Logger
	held map[eventKey]*heldEvents
}

type eventKey struct {
	kind   broker.EventKind
	reason message.Reason
	dest   message.Destination
}

type heldEvents struct {
	last time.Time
	n    int64
}

const quietTime = 30 * time.Second

func newEventLog(log *slog.Logger) *eventLog {
	return &eventLog{log: log, held: map[eventKey]*heldEvents{}}
}

// eventWords are the texts and levels of the core's events.
var eventWords = map[broker.EventKind]struct {
	level slog.Level
	text  string
}{
	broker.ConnectionOpened:   {slog.LevelDebug, "connection opened"},
	broker.ConnectionClosed:   {slog.LevelDebug, "connection closed"},
	broker.ConnectionRefused:  {slog.LevelWarn, "connection refused"},
	broker.DestinationAdded:   {slog.LevelDebug, "destination added"},
	broker.DestinationRemoved: {slog.LevelDebug, "destination removed"},
	broker.MessageDropped:     {slog.LevelWarn, "message dropped"},
	broker.MessageDead:        {slog.LevelWarn, "message dead-lettered"},
	broker.SendParked:         {slog.LevelWarn, "sends wait for space"},
	broker.SendRefused:        {slog.LevelWarn, "send refused"},
	broker.StoreTrouble:       {slog.LevelError, "store trouble"},
	broker.DuplicateKnown:     {slog.LevelInfo, "duplicate recognised"},
	broker.DoubtReleased:      {slog.LevelWarn, "copy in doubt released"},
	broker.ConsumerWarning:    {slog.LevelWarn, "consumer"},
}

// core logs an event of the core; it runs on the loop.
func (l *eventLog) core(e broker.Event) {
	w := eventWords[e.Kind]
	if !l.log.Enabled(context.Background(), w.level) {
		return
	}
	key := eventKey{e.Kind, e.Reason, e.Dest}
	now := time.Now()
	h := l.held[key]
	if h == nil {
		if len(l.held) > 1000 {
			clear(l.held)
		}
		h = &heldEvents{}
		l.held[key] = h
	}
	limited := e.Reason != "" || e.Kind == broker.MessageDead
	if limited && now.Sub(h.last) < quietTime {
		h.n++
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
	if h.n > 0 {
		attrs = append(attrs, "sinceLastLine", h.n)
	}
	h.last, h.n = now, 0
	l.log.Log(context.Background(), w.level, w.text, attrs...)
}

// bridgeLevels are the levels of the bridges' events.
var bridgeLevels = map[bridge.EventKind]slog.Level{
	bridge.StateChanged:    slog.LevelInfo,
	bridge.DemandOpened:    slog.LevelDebug,
	bridge.DemandClosed:    slog.LevelDebug,
	bridge.DemandRefused:   slog.LevelWarn,
	bridge.ForwardRefused:  slog.LevelWarn,
	bridge.ForwardPoisoned: slog.LevelWarn,
	bridge.DoubtsResolved:  slog.LevelInfo,
	bridge.DoubtsReleased:  slog.LevelWarn,
	bridge.Dropped:         slog.LevelDebug,

	bridge.DemandNotDurable: slog.LevelWarn,
	bridge.Mirrored:         slog.LevelWarn,
}

// bridge logs an event of a bridge; it runs on the loop.
func (l *eventLog) bridge(e bridge.Event) {
	level := bridgeLevels[e.Kind]
	if e.State == bridge.Degraded || e.Err != nil {
		level = slog.LevelWarn
	}
	attrs := []any{"bridge", e.Connector}
	if e.PeerName != "" {
		attrs = append(attrs, "peer", e.PeerName)
	}
	if e.Kind == bridge.StateChanged {
		attrs = append(attrs, "state", e.State.String())
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
	if e.Err != nil {
		attrs = append(attrs, "error", e.Err.Error())
	}
	l.log.Log(context.Background(), level, "bridge", attrs...)
}
