package interop

import (
	"fmt"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// bridgeRights let the bridges' user net do all with OPEN.> and read SECRET.>; mute may do
// the same and hears no advisories.
const bridgeRights = `<simpleAuthenticationPlugin><users>` +
	`<authenticationUser username="boss" password="p" groups="admins"/>` +
	`<authenticationUser username="net" password="p" groups="bridges,hear"/>` +
	`<authenticationUser username="mute" password="p" groups="bridges"/>` +
	`</users></simpleAuthenticationPlugin>` +
	`<authorizationPlugin><map><authorizationMap><authorizationEntries>` +
	`<authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>` +
	`<authorizationEntry queue="OPEN.>" read="bridges" write="bridges" admin="bridges"/>` +
	`<authorizationEntry queue="SECRET.>" read="%s"/>` +
	`<authorizationEntry topic="ActiveMQ.Advisory.>" read="hear,admins" write="*" admin="*"/>` +
	`</authorizationEntries></authorizationMap></map></authorizationPlugin>`

// ruled is a broker with these rights, or without any.
func ruled(t *testing.T, k broker.Kind, name, plugins string, peer *broker.Broker,
	attributes, elements string) *broker.Broker {
	t.Helper()
	o := broker.Options{Name: fmt.Sprintf("%s-%d", name, broker.FreePort(t)), Plugins: plugins}
	if peer != nil {
		o.Connectors = []broker.Connector{{Name: "link", URI: broker.Static(peer) + quick,
			Attributes: attributes, Elements: elements}}
	}
	return broker.Start(t, k, o)
}

// boss connects as who may do everything.
func boss(t *testing.T, d *jms.Driver, on *broker.Broker) *jms.Conn {
	t.Helper()
	conn, err := d.Dial(jms.ConnectOptions{URL: on.URL(), User: "boss", Password: "p"})
	must(t, err)
	return conn
}

// tells waits until a hopwire command says all of some words in a line.
func tells(t *testing.T, args []string, words ...string) {
	t.Helper()
	wait.For(t, patience, fmt.Sprintf("hopwire %v says %q", args, words), func() (string, bool) {
		out, err := broker.Command(t, args...).CombinedOutput()
		return fmt.Sprintf("%s %v", out, err), has(string(out), words...)
	})
}

// logs waits until a broker's log says something.
func logs(t *testing.T, b *broker.Broker, text string) {
	t.Helper()
	wait.For(t, patience, "in the log: "+text, func() (string, bool) {
		return b.Log(2 << 10), b.LogHas(text)
	})
}

const (
	noWrite = "User net is not authorized to write to: queue://SECRET.Q"
	noRead  = "User net is not authorized to read from: queue://SECRET.Q"
)

func TestWhatABridgesUserMayNotWriteStaysAtHome(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		b := ruled(t, p.b, "b", fmt.Sprintf(bridgeRights, "bridges"), nil, "", "")
		a := ruled(t, p.a, "a", "", b, `remoteUserName="net" remotePassword="p"`, "")
		d := jms.Start(t, jms.V5)
		there := boss(t, d, b)
		secret, open := there.Consumer("queue://SECRET.Q"), there.Consumer("queue://OPEN.Q")
		here := d.Connect(a.URL())
		a.WaitConsumers("OPEN.Q", 1, patience)
		here.Send("queue://SECRET.Q", 5, "s{}")
		here.Send("queue://OPEN.Q", 5, "o{}")
		open.Wait(5, patience)
		if p.a == broker.Hopwire {
			tells(t, []string{"status", "-b", a.Name()}, "SECRET.Q waits: REMOTE_DENIED", noWrite)
			tells(t, []string{"status", "-b", a.Name()}, "bridge", "link", "RUNNING")
			tells(t, []string{"explain", "-b", a.Name(), "SECRET.Q"}, "takes none: REMOTE_DENIED", noWrite)
			if !a.LogHas("bridge's peer refused", "REMOTE_DENIED", noWrite) {
				t.Errorf("the log does not tell: %s", a.Log(2<<10))
			}
		}
		if p.b == broker.Hopwire {
			tells(t, []string{"explain", "-b", b.Name(), "SECRET.Q"}, "DENIED", "user net")
		}
		logs(t, b, noWrite)
		if n := len(here.Browse("queue://SECRET.Q", "")); n != 5 {
			t.Errorf("%d messages are at home", n)
		}
		if n := secret.Count(); n > 0 {
			t.Errorf("%d messages crossed", n)
		}
	})
}

func TestWhatABridgesUserMayNotReadAtHomeStaysThere(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		b := ruled(t, p.b, "b", "", nil, "", "")
		a := ruled(t, p.a, "a", fmt.Sprintf(bridgeRights, "nobody"), b,
			`userName="net" password="p"`, "")
		d := jms.Start(t, jms.V5)
		there := d.Connect(b.URL())
		open := there.Consumer("queue://OPEN.Q")
		here := boss(t, d, a)
		here.Send("queue://OPEN.Q", 5, "o{}")
		open.Wait(5, patience)
		secret := there.Consumer("queue://SECRET.Q")
		here.Send("queue://SECRET.Q", 5, "s{}")
		if p.a == broker.Hopwire {
			tells(t, []string{"explain", "-b", a.Name(), "SECRET.Q"}, "takes none: DENIED", noRead)
			tells(t, []string{"status", "-b", a.Name()}, "SECRET.Q is not forwarded", noRead)
			tells(t, []string{"status", "-b", a.Name()}, "bridge", "link", "RUNNING")
			here.Send("queue://OPEN.Q", 5, "o{}")
			open.Wait(10, patience)
		}
		logs(t, a, noRead)
		if n := len(here.Browse("queue://SECRET.Q", "")); n != 5 {
			t.Errorf("%d messages are at home", n)
		}
		if n := secret.Count(); n > 0 {
			t.Errorf("%d messages crossed", n)
		}
	})
}

func TestABridgeThatMayNotHearOfDemandIsDegradedAndSaysWhy(t *testing.T) {
	mostKinds(t, func(t *testing.T, k broker.Kind) {
		b := ruled(t, k, "b", fmt.Sprintf(bridgeRights, "bridges"), nil, "", "")
		a := ruled(t, broker.Hopwire, "a", "", b, `remoteUserName="mute" remotePassword="p"`,
			`<staticallyIncludedDestinations><queue physicalName="OPEN.S"/>`+
				`</staticallyIncludedDestinations>`)
		d := jms.Start(t, jms.V5)
		there := boss(t, d, b)
		static := there.Consumer("queue://OPEN.S")
		there.Consumer("queue://OPEN.Q")
		here := d.Connect(a.URL())
		here.Send("queue://OPEN.Q", 1, "q")
		here.Send("queue://OPEN.S", 5, "s{}")
		static.Wait(5, patience)
		why := "User mute is not authorized to read from: ActiveMQ.Advisory.Consumer.>"
		tells(t, []string{"status", "-b", a.Name()}, "bridge", "DEGRADED", "REMOTE_DENIED", why)
		tells(t, []string{"explain", "-b", a.Name(), "OPEN.Q"}, "DEMAND_UNSEEN", why)
		tells(t, []string{"status", "-b", a.Name()}, "REMOTE_DENIED 3")
	})
}
