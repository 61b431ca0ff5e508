package manage

import (
	"strings"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// rightFor is what lets a refused one do what it may not. Who has no name can be given no right.
func rightFor(r *broker.Refusal) string {
	switch {
	case r.Stranger:
		return "a simpleAuthenticationPlugin: nobody is authenticated here, and nobody has a right"
	case r.User != "":
		return message.AccessDenied.Releases() + groupsFor(r)
	case strings.HasPrefix(r.Who, "bridge "):
		return "a userName on the networkConnector, which has none, of a user with the right" +
			groupsFor(r)
	}
	return "a user name and password, which it does not give, of a user with the right" + groupsFor(r)
}

// groupsFor tells which groups the user is in, and which would do.
func groupsFor(r *broker.Refusal) string {
	have := "the user is in no group"
	switch {
	case r.User == "":
		have = ""
	case len(r.Groups) > 0:
		have = "the user is in " + strings.Join(r.Groups, ", ")
	}
	given := "no group has it"
	if len(r.Given) > 0 {
		given = "groups that have it: " + strings.Replace(strings.Join(r.Given, ", "), "*",
			"* (any)", 1)
	}
	if have == "" {
		return "; " + given
	}
	return "; " + have + ", " + given
}
