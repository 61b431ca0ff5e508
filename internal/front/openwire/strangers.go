package openwire

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"hopwire/internal/wire"
)

const (
	// strangerEvery is how often one source is reported.
	strangerEvery = time.Hour
	// strangersKept bounds the sources that are remembered; more are counted together.
	strangersKept = 1000
)

// strangers reports who knocks and is no OpenWire peer: one line per source and hour, so that
// port scanners and health checks do not fill the log.
type strangers struct {
	log  *slog.Logger
	seen map[string]time.Time
	more time.Time // of the line for sources beyond the limit
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
	if at, ok := s.seen[host]; ok && now.Sub(at) < strangerEvery {
		return
	}
	if len(s.seen) >= strangersKept {
		for h, at := range s.seen {
			if now.Sub(at) >= strangerEvery {
				delete(s.seen, h)
			}
		}
	}
	if len(s.seen) >= strangersKept {
		if now.Sub(s.more) < strangerEvery {
			return
		}
		s.more, host = now, "more sources"
	} else {
		if s.seen == nil {
			s.seen = map[string]time.Time{}
		}
		s.seen[host] = now
	}
	s.log.Info(what, slog.String("connector", connector),
		slog.String("source", host), slog.String("reason", err.Error()))
}
