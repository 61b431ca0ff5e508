package cli

import (
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
)

// serviceManager is what systemd is told when it started the process (Type=notify); without one
// nothing is told.
type serviceManager struct{ log *slog.Logger }

// started tells that the process is up, and in a line what it does. A broker that waits as a slave
// is up, too: its ports open when the other ends.
func (m serviceManager) started(what string) {
	line, _, _ := strings.Cut(what, "\n")
	m.tell(daemon.SdNotifyReady + "\nSTATUS=" + line)
}

func (m serviceManager) stopping() { m.tell(daemon.SdNotifyStopping) }

func (m serviceManager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}
