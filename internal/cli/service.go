package cli

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"
)

// serviceManager is what systemd is told when it started the process (Type=notify); without one
// nothing is told.
type serviceManager struct {
	log *slog.Logger

	mu sync.Mutex
	up []bool // by position of the brokers
}

// started tells, when all brokers have, that the process is up, and in a line what it does. A
// broker that waits as a slave has started, too: its ports open when the other ends.
func (m *serviceManager) started(position int, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up[position] = true
	if slices.Contains(m.up, false) {
		return
	}
	line, _, _ := strings.Cut(what, "\n")
	m.tell(daemon.SdNotifyReady + "\nSTATUS=" + line)
}

func (m *serviceManager) stopping() { m.tell(daemon.SdNotifyStopping) }

func (m *serviceManager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}
