package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/rungroup"
	"hopwire/internal/terminal"
)

// show writes what happens: lines, and on a terminal a picture below them that refreshes.
type show struct {
	out   io.Writer
	live  bool
	world *world

	mu      sync.Mutex
	queue   string // the queue in the picture
	at      [2][]*receiver
	drawn   int // lines of the picture on the screen
	goround *rungroup.Group
	stop    context.CancelFunc
}

// refresh is how often the picture is drawn, and how long a moment is that a person can see.
const refresh = 120 * time.Millisecond

// say writes a line above the picture.
func (s *show) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	terminal.Fprintf(s.out, format+"\n", args...)
}

func (s *show) chapter(title string) { s.say("\n%s", title) }

// outcome writes what happened here, and what ActiveMQ does at this point.
func (s *show) outcome(held bool, here, activemq string) {
	verdict := "held"
	if !held {
		verdict = "DID NOT HOLD"
	}
	s.say("  here:            %s", wrap(here))
	s.say("  ActiveMQ 5.17.2: %s", wrap(activemq))
	s.say("  %s", verdict)
}

// wrap breaks a text behind the labels of outcome.
func wrap(text string) terminal.Text {
	const width, indent = 78, "                   "
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		if i > 0 && column+1+len(word) > width {
			b.WriteString("\n" + indent)
			column = 0
		} else if i > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(terminal.Safe(word))
		column += len(word)
	}
	return terminal.Text(b.String())
}

// watch changes what the picture shows.
func (s *show) watch(queue string, onA, onB []*receiver) {
	s.mu.Lock()
	s.queue, s.at = queue, [2][]*receiver{onA, onB}
	s.mu.Unlock()
	if !s.live {
		s.say("  queue %s: consumers on a: %s; on b: %s", queue, labels(onA), labels(onB))
	}
}

func labels(rs []*receiver) string {
	if len(rs) == 0 {
		return "none"
	}
	var out []string
	for _, r := range rs {
		out = append(out, r.label)
	}
	return strings.Join(out, ", ")
}

// moment is how long a pause is: on a terminal long enough to see, else long enough for a message
// too many to arrive.
func (s *show) moment() time.Duration {
	if s.live {
		return 8 * refresh
	}
	return 3 * refresh
}

// pause lets a person see what is there now.
func (s *show) pause(ctx context.Context) {
	t := time.NewTimer(s.moment())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// begin starts the picture.
func (s *show) begin(ctx context.Context) {
	if !s.live {
		return
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.goround = rungroup.New(ctx)
	s.goround.Go("picture", func(ctx context.Context) error {
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.draw(ctx)
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func (s *show) end() {
	if s.goround == nil {
		return
	}
	s.stop()
	if err := s.goround.Wait(); err != nil {
		s.say("picture: %v", err)
	}
}

// erase takes the picture off the screen; s.mu is held.
func (s *show) erase() {
	if s.drawn > 0 {
		terminal.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw puts the picture on the screen.
func (s *show) draw(ctx context.Context) {
	s.mu.Lock()
	queue := s.queue
	s.mu.Unlock()
	if queue == "" {
		return
	}
	var d [2]manage.Destination
	for i, side := range s.world.sides {
		var err error
		if d[i], err = side.queue(ctx, queue); err != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != queue {
		return
	}
	s.erase()
	picture := s.picture(d)
	terminal.Fprintf(s.out, "%s", terminal.Text(picture))
	s.drawn = strings.Count(picture, "\n")
}

// picture is the two brokers side by side.
func (s *show) picture(d [2]manage.Destination) string {
	const box = 27 // so that the picture fits into 80 columns
	row := func(a, middle, b string) string {
		return fmt.Sprintf("  | %-*.*s | %-7s | %-*.*s |\n", box, box, a, middle, box, box, b)
	}
	line := "  +" + strings.Repeat("-", box+2) + "+         +" + strings.Repeat("-", box+2) + "+\n"
	flying := func(d manage.Destination, arrow string) string {
		if d.Networks > 0 && d.InFlight > 0 {
			return arrow
		}
		return ""
	}
	lines := []string{
		line,
		row("broker a   "+s.queue, "", "broker b"),
		row(bar(d[0].Size), flying(d[0], "=====>"), bar(d[1].Size)),
		row(fmt.Sprintf("%d waiting or in flight", d[0].Size), flying(d[1], "<====="),
			fmt.Sprintf("%d waiting or in flight", d[1].Size)),
	}
	for i := range max(len(s.at[0]), len(s.at[1]), 1) {
		lines = append(lines, row(consumer(s.at[0], i), "", consumer(s.at[1], i)))
	}
	return strings.Join(append(lines, line), "")
}

func consumer(rs []*receiver, i int) string {
	if i >= len(rs) {
		return ""
	}
	return fmt.Sprintf("consumer %s: %d", rs[i].label, rs[i].count())
}

func bar(n int64) string {
	const widest = 26
	return strings.Repeat("#", int(min(widest, (n+15)/16)))
}

// queue gives the queue's state on this side.
func (s *side) queue(ctx context.Context, name string) (manage.Destination, error) {
	st, err := s.run.Status(ctx)
	if err != nil {
		return manage.Destination{}, err
	}
	for _, d := range st.Destinations {
		if d.Name == "queue://"+name {
			return d, nil
		}
	}
	return manage.Destination{}, nil
}

// deadLetters counts the dead letters of both brokers.
func (s *show) deadLetters(ctx context.Context) (int64, error) {
	n := int64(0)
	for _, side := range s.world.sides {
		d, err := side.queue(ctx, "ActiveMQ.DLQ")
		if err != nil {
			return 0, err
		}
		n += d.Size
	}
	return n, nil
}
