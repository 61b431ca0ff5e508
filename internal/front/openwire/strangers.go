package openwire

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"hopwire/internal/wire"
)

const (
	// strangerEvery is how often one source is reported.
	strangerEvery = time.Hour
	// reasonsMost is how many reasons of one source are told: a scanner tries many protocols.
	reasonsMost = 5
	// strangersKept bounds the sources that are remembered; more are counted together.
	strangersKept = 1000
)

// strangers reports who knocks and is no OpenWire peer: one line per source, reason and hour, so
// that port scanners and health checks do not fill the log.
type strangers struct {
	log  *slog.Logger
	seen map[string]stranger
	more time.Time // of the line for sources beyond the limit
}

// stranger is a source that was reported.
type stranger struct {
	since   time.Time
	reasons []string // at most reasonsMost
}

// left tells of a connection that ended before the hellos agreed.
func (s *strangers) left(remote, connector string, err error) {
	if err == nil || came(err) || errors.Is(err, wire.ErrStopping) {
		s.log.Debug("a connection came and went", slog.String("connector", connector),
			slog.String("remote", remote))
		return
	}
	s.report("a connection was no OpenWire peer", remote, connector, err)
}

// came reports whether the peer just closed, or cut the line.
func came(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// silent tells of a peer that said hello and then did not log in.
func (s *strangers) silent(remote, connector string, err error) {
	s.report("a connection did not log in and was closed", remote, connector, err)
}

// ended tells of a connection that ended after the hellos. Ends by the broker itself and by the
// peer's closing are told by the broker's events.
func (s *strangers) ended(remote, connector string, err error) {
	if err == nil || came(err) {
		return
	}
	s.log.Debug("a connection ended", slog.String("connector", connector),
		slog.String("remote", remote),
		slog.String("reason", err.Error()))
}

func (s *strangers) report(what, remote, connector string, err error) {
	now := time.Now()
	host := remote
	if h, _, e := net.SplitHostPort(strings.TrimPrefix(remote, "tcp://")); e == nil {
		host = h
	}
	known, ok := s.seen[host]
	if ok = ok && now.Sub(known.since) < strangerEvery; !ok {
		known = stranger{since: now}
	}
	if slices.Contains(known.reasons, err.Error()) || len(known.reasons) >= reasonsMost {
		return
	}
	known.reasons = append(known.reasons, err.Error())
	if len(s.seen) >= strangersKept {
		for h, other := range s.seen {
			if now.Sub(other.since) >= strangerEvery {
				delete(s.seen, h)
			}
		}
	}
	if !ok && len(s.seen) >= strangersKept {
		if now.Sub(s.more) < strangerEvery {
			return
		}
		s.more, host = now, "more sources"
	} else {
		if s.seen == nil {
			s.seen = map[string]stranger{}
		}
		s.seen[host] = known
	}
	s.log.Info(what, slog.String("connector", connector),
		slog.String("source", host), slog.String("reason", err.Error()))
}
