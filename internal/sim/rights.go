package sim

import (
	"strings"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// Rights are what some users may do at a broker; who is not in it may do everything. It may be
// changed while the broker is down.
type Rights map[string][]Grant

// Grant is a user's rights to what a pattern takes: letters of rwa, for read, write and admin.
type Grant struct {
	Letters string
	To      message.Destination
}

// May implements broker.Authorizer.
func (r Rights) May(p *message.Principal, right broker.Right, d message.Destination) bool {
	grants, bound := r[p.User]
	letter := "rwa"[right]
	for _, g := range grants {
		if strings.IndexByte(g.Letters, letter) >= 0 && policy.Covers(g.To, d) {
			return true
		}
	}
	return !bound || d.IsTemp()
}

// Groups implements broker.Authorizer: users have their rights by themselves.
func (Rights) Groups(broker.Right, message.Destination) []string { return nil }

// Authenticate implements broker.Authenticator: it lets everybody in.
func (r Rights) Authenticate(userName, _ string) (message.Principal, error) {
	return message.Principal{User: userName}, nil
}

// apply has a broker ask for rights, if it has any.
func (r Rights) apply(o *broker.Options) {
	if r != nil {
		o.Authorizer, o.Authenticator = r, r
	}
}

// user gives who a connector's bridges are at home.
func (r Rights) user(o *bridge.Options) *message.Principal {
	if r == nil {
		return nil
	}
	return &message.Principal{User: o.UserName}
}
