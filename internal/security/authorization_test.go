package security

import (
	"strings"
	"testing"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

func groups(names ...string) Roles { return names }

func all(r Roles) Rights { return Rights{Read: r, Write: r, Admin: r} }

func dest(text string) message.Destination {
	d, _ := message.ParseDestination(text, message.Queue)
	return d
}

// rules are the map of the table below.
func rules() *Map {
	temps := all(groups("temps"))
	return &Map{Temp: &temps, Entries: []Entry{
		{dest(">"), all(groups("admins"))},
		{dest("topic://>"), all(groups("admins"))},
		{dest("USERS.>"), all(groups("users"))},
		{dest("USERS.READ.>"), Rights{Read: groups("guests")}},
		{dest("*.MIDDLE.*"), Rights{Read: groups("middle")}},
		{dest("ONE,TWO.>"), Rights{Write: groups("several")}},
		{dest("ANY"), all(groups("*"))},
		{dest("ME"), all(groups("alice"))},
		{dest("topic://T"), Rights{Read: groups("users")}},
		{dest("topic://ActiveMQ.Advisory.Consumer.>"), Rights{Read: groups("bridges")}},
	}}
}

// TestAllEntriesThatMatchCountTogether holds the map to a table: who, what, and the rights that are
// had.
func TestAllEntriesThatMatchCountTogether(t *testing.T) {
	for _, c := range []struct{ groups, destination, rights string }{
		{"admins", "X", "rwa"},
		{"admins", "USERS.READ.A", "rwa"},
		{"admins", "topic://X", "rwa"},
		{"users", "X", ""},
		{"users", "USERS", "rwa"},
		{"users", "USERS.A.B", "rwa"},
		{"users", "USERS.READ.A", "rwa"},
		{"guests", "USERS.READ.A", "r"},
		{"guests", "USERS.READ", "r"},
		{"guests", "USERS.A", ""},
		{"guests, users", "USERS.READ.A", "rwa"},
		{"middle", "A.MIDDLE.B", "r"},
		{"middle", "A.MIDDLE", ""},
		{"middle", "A.MIDDLE.B.C", ""},
		{"several", "ONE", "w"},
		{"several", "TWO.X", "w"},
		{"several", "THREE", ""},
		{"nobody", "ANY", "rwa"},
		{"", "ANY", ""},
		{"nobody", "ME", ""},
		{"users", "topic://T", "r"},
		{"users", "topic://USERS.A", ""},
		{"users", "T", ""},
		{"temps", "temp-queue://ID:x:1", "rwa"},
		{"temps", "temp-topic://ID:x:1", "rwa"},
		{"admins", "temp-queue://ID:x:1", ""},
		{"*", "X", ""},

		// Patterns of consumers.
		{"users", ">", ""},
		{"admins", ">", "rwa"},
		{"users", "USERS.>", "rwa"},
		{"users", "USERS.*", "rwa"},
		{"users", "*.A", "rwa"},
		{"users", "*.*.A", "rwa"},
		{"guests", "*.A", ""},
		{"guests", "*.READ.>", "r"},
		{"guests", "USERS.>", ""},
		{"bridges", "topic://ActiveMQ.Advisory.Consumer.>", "r"},
		{"bridges", "topic://ActiveMQ.Advisory.Consumer.Queue.>", "r"},
		{"bridges", "topic://ActiveMQ.Advisory.>", ""},
		{"bridges", "topic://ActiveMQ.Advisory.*", "r"},
		{"bridges", "topic://ActiveMQ.Advisory.Connection", ""},
	} {
		p := &message.Principal{User: "alice"}
		if c.groups != "" {
			p.Groups = strings.Split(c.groups, ", ")
		}
		got := ""
		for right, letter := range []string{broker.Read: "r", broker.Write: "w", broker.Admin: "a"} {
			if rules().May(p, broker.Right(right), dest(c.destination)) {
				got += letter
			}
		}
		if got != c.rights {
			t.Errorf("%q on %s: %q, not %q", c.groups, c.destination, got, c.rights)
		}
	}
}

func TestTheGroupsThatHaveARightAreToldOnce(t *testing.T) {
	for _, c := range []struct {
		destination string
		right       broker.Right
		want        string
	}{
		{"USERS.READ.A", broker.Read, "admins guests users"},
		{"USERS.READ.A", broker.Write, "admins users"},
		{"ANY", broker.Read, "* admins"},
		{"topic://T", broker.Write, "admins"},
		{"temp-queue://ID:x:1", broker.Admin, "temps"},
	} {
		if got := strings.Join(rules().Groups(c.right, dest(c.destination)), " "); got != c.want {
			t.Errorf("right %d to %s: groups %q, not %q", c.right, c.destination, got, c.want)
		}
	}
}

func TestTheDefaultEntryCountsForEveryDestinationButTemporaryOnes(t *testing.T) {
	read := Rights{Read: groups("users")}
	m := &Map{Default: &read, Entries: []Entry{{dest("A"), Rights{Write: groups("users")}}}}
	users := &message.Principal{User: "u", Groups: []string{"users"}}
	for _, c := range []struct {
		destination string
		right       broker.Right
		may         bool
	}{
		{"A", broker.Read, true}, {"A", broker.Write, true}, {"A", broker.Admin, false},
		{"B", broker.Read, true}, {"B", broker.Write, false},
		{"temp-queue://ID:x:1", broker.Admin, true},
	} {
		if got := m.May(users, c.right, dest(c.destination)); got != c.may {
			t.Errorf("right %d to %s: %v", c.right, c.destination, got)
		}
	}
	m.Temp = &Rights{}
	if m.May(users, broker.Read, dest("temp-queue://ID:x:1")) {
		t.Error("the default entry gives a right to temporary destinations")
	}
}
