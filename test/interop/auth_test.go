package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

const users = `<simpleAuthenticationPlugin><users>` +
	`<authenticationUser username="net" password="secret" groups="users,admins"/>` +
	`</users></simpleAuthenticationPlugin>`

// guarded is a broker that lets only the user net in, with a bridge to a peer.
func guarded(t *testing.T, k broker.Kind, name string, peer *broker.Broker,
	attributes string) *broker.Broker {
	t.Helper()
	o := broker.Options{Name: fmt.Sprintf("%s-%d", name, broker.FreePort(t)), Plugins: users}
	if peer != nil {
		o.Connectors = []broker.Connector{{Name: "link", URI: broker.Static(peer) + quick,
			Attributes: attributes}}
	}
	return broker.Start(t, k, o)
}

func TestABridgeLogsInAsItsUser(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		const queue = "queue://Q.SAFE"
		b := guarded(t, p.b, "b", nil, "")
		a := guarded(t, p.a, "a", b, `userName="net" password="secret"`)
		d := jms.Start(t, jms.V5)
		login := func(on *broker.Broker) *jms.Conn {
			conn, err := d.Dial(jms.ConnectOptions{URL: on.URL(), User: "net", Password: "secret"})
			must(t, err)
			return conn
		}
		c := login(b).Consumer(queue)
		login(a).Send(queue, 10, "m{}")
		c.Wait(10, patience)
	})
}

func TestAWrongPasswordOfABridgeIsShownAndTriedAgain(t *testing.T) {
	for _, k := range []broker.Kind{broker.ActiveMQ, broker.Hopwire, broker.ActiveMQ6} {
		t.Run(k.String(), func(t *testing.T) {
			b := guarded(t, k, "b", nil, "")
			a := guarded(t, broker.Hopwire, "a", b, `userName="net" password="wrong"`)
			wait.For(t, patience, "shown as refused", func() (string, bool) {
				out, err := broker.Command(t, "status", "-b", a.Name()).CombinedOutput()
				return fmt.Sprintf("%s %v", out, err), has(string(out), "bridge", "BACKOFF", refusal)
			})
			wait.For(t, patience, "tried again", func() (string, bool) {
				out, err := broker.Command(t, "status", "-b", a.Name()).CombinedOutput()
				return fmt.Sprintf("%s %v", out, err), threeTimes.Match(out)
			})
			if !b.LogHas("WARN", refusal) {
				t.Errorf("the peer's log does not tell: %s", b.Log(2<<10))
			}
			if a.LogHas("state=RUNNING") {
				t.Errorf("it was told to run: %s", a.Log(2<<10))
			}
		})
	}
}

var threeTimes = regexp.MustCompile(`tried ([3-9]|\d\d+) times.*is invalid`)

const refusal = "User name [net] or password is invalid."

// has reports whether a line of a text has all of some words.
func has(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}
