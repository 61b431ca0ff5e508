package manage

import (
	"reflect"
	"strings"
	"testing"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// What others refused stands among the core's reasons, the most first; the core's own counts are
// not touched.
func TestReasonsOfOthersStandAmongTheCores(t *testing.T) {
	core := map[message.Reason]int64{message.Expired: 3, message.Unsubscribed: 0, message.Poisoned: 1}
	var s Status
	s.FromBroker(broker.Status{Counts: broker.Counts{Reasons: core}},
		map[message.Reason]int64{message.FrameMemory: 2, message.FrameSlow: 0})
	want := List[ReasonCount]{{"EXPIRED", 3}, {"FRAME_MEMORY", 2}, {"POISONED", 1}}
	if !reflect.DeepEqual(s.Reasons, want) || len(core) != 3 {
		t.Errorf("the reasons are %v, want %v; the core's are %v", s.Reasons, want, core)
	}
}

func TestWhoHasNoNameNeedsOneBeforeARight(t *testing.T) {
	for user, of := range map[string]map[string]string{
		"":    {"bridge to hub": "a userName on the networkConnector", "client c": "a user name an"},
		"net": {"bridge to hub": "the right", "client c": "the right"},
	} {
		for who, want := range of {
			of := []broker.Refusal{{User: user, Who: who}}
			x := FromExplanation("b", &broker.Explanation{Refused: of})
			if got := x.Refused[0].Releases; !strings.HasPrefix(got, want) {
				t.Errorf("user %q, %s: released by %q, want %q", user, who, got, want)
			}
		}
	}
}

func TestARefusalTellsTheGroupsThatTheUserHasAndThoseThatWouldDo(t *testing.T) {
	const right = "the right, in the authorizationMap of this broker; "
	for _, c := range []struct {
		r    broker.Refusal
		want string
	}{
		{broker.Refusal{User: "u"}, right + "the user is in no group, no group has it"},
		{broker.Refusal{User: "u", Groups: []string{"users", "shops"}, Given: []string{"admins"}},
			right + "the user is in users, shops, groups that have it: admins"},
		{broker.Refusal{Given: []string{"*", "admins"}}, "a user name and password, which it does" +
			" not give, of a user with the right; groups that have it: * (any), admins"},
		{broker.Refusal{User: "u", Stranger: true, Given: []string{"*"}},
			"a simpleAuthenticationPlugin: nobody is authenticated here, and nobody has a right"},
	} {
		x := FromExplanation("b", &broker.Explanation{Refused: []broker.Refusal{c.r}}).Refused[0]
		if x.Releases != c.want || !reflect.DeepEqual([]string(x.Groups), c.r.Groups) {
			t.Errorf("%+v: released by %q, want %q", c.r, x.Releases, c.want)
		}
	}
}
