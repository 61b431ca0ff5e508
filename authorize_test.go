package hopwire

import (
	"log/slog"
	"testing"

	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/message"
)

// lenient gives every right.
type lenient struct{}

func (lenient) May(*message.Principal, broker.Right, message.Destination) bool { return true }

// Without authentication nobody is known, and a bridge has as few rights as a client.
func TestABridgeIsBoundWithoutAuthenticationToo(t *testing.T) {
	n, log := &config.Network{UserName: "net"}, slog.New(slog.DiscardHandler)
	if p := localUser(n, broker.Options{}, log); p != nil {
		t.Errorf("without authorization it is %+v", p)
	}
	if p := localUser(n, broker.Options{Authorizer: lenient{}}, log); p == nil || p.User != "" {
		t.Errorf("with authorization alone it is %+v", p)
	}
}
