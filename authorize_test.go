package hopwire

import (
	"strings"
	"testing"

	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/message"
)

// lenient gives every right.
type lenient struct{}

func (lenient) May(*message.Principal, broker.Right, message.Destination) bool { return true }

func (lenient) Groups(broker.Right, message.Destination) []string { return nil }

// Without authentication nobody is known, and a bridge has as few rights as a client.
func TestABridgeIsBoundWithoutAuthenticationToo(t *testing.T) {
	n := &config.Network{UserName: "net"}
	if p := localUser(n, broker.Options{}); p != nil {
		t.Errorf("without authorization it is %+v", p)
	}
	if p := localUser(n, broker.Options{Authorizer: lenient{}}); p == nil || p.User != "" {
		t.Errorf("with authorization alone it is %+v", p)
	}
}

// What the log warns of from the file alone is told without a start.
func TestABridgeThatItsOwnBrokerDoesNotKnowIsTold(t *testing.T) {
	const authorization = `<authorizationPlugin><map><authorizationMap><authorizationEntries>` +
		`<authorizationEntry queue=">" read="g" write="g" admin="g"/></authorizationEntries>` +
		`</authorizationMap></map></authorizationPlugin>`
	for _, c := range []struct {
		user, password, authorization string
		told                          bool
	}{
		{"net", "secret", authorization, false}, {"other", "secret", authorization, true},
		{"net", "mistyped", authorization, true}, {"", "", authorization, true}, {"other", "", "", false},
	} {
		s := named(t, "b", t.TempDir(), `<plugins><simpleAuthenticationPlugin><users>`+
			`<authenticationUser username="net" password="secret" groups="g"/></users>`+
			`</simpleAuthenticationPlugin>`+c.authorization+`</plugins><networkConnectors>`+
			`<networkConnector name="hub" uri="static:(tcp://h:1)" userName="`+c.user+
			`" password="`+c.password+`"/></networkConnectors>`)
		got := warnings(t, s)
		if told := strings.Contains(got, "network connector hub: its userName"); told != c.told ||
			strings.Contains(got, "mistyped") {
			t.Errorf("user %q, authorization %v: %q", c.user, c.authorization != "", got)
		}
	}
}
