package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
)

// elsewhereOf tells of brokers of other users that have a name, to whom this user is not the one to
// ask; "" when there are none that it knows of.
func elsewhereOf(name string, others []control.Other) string {
	var have, hidden []string
	for _, o := range others {
		switch o.Name {
		case "":
			hidden = append(hidden, fmt.Sprint(o.UID))
		case name:
			have = append(have, fmt.Sprintf("pid %d of user %d", o.PID, o.UID))
		}
	}
	switch {
	case len(have) > 0:
		return "; a broker of another user has that name, " + strings.Join(have, ", ") +
			": ask it as that user"
	case len(hidden) > 0:
		return "; brokers of other users are not seen (user " + strings.Join(hidden, ", ") +
			" has run some): ask as that user"
	}
	return ""
}

// beside tells of brokers of other users, whom a command of this user does not ask; "" when there
// are none that it knows of.
func beside(others []control.Other) string {
	var them []string
	for _, o := range others {
		if text := fmt.Sprintf("%s, pid %d of user %d", cmp.Or(o.Name, "some"), o.PID, o.UID); o.PID > 0 {
			them = append(them, text)
		} else {
			them = append(them, fmt.Sprintf("some of user %d, not seen", o.UID))
		}
	}
	slices.Sort(them)
	if n := len(them); n > othersMost {
		them = append(them[:othersMost], fmt.Sprintf("%d more", n-othersMost))
	}
	if len(them) == 0 {
		return ""
	}
	return "; other users have brokers (" + strings.Join(them, "; ") + "): ask as that user"
}

// othersMost is how many brokers of other users are named.
const othersMost = 5

// sameNames tells of running brokers that share a name: of those that are shown, and of other
// users.
func sameNames(shown []*manage.Status, others []control.Other) (lines []string) {
	of := map[string][]string{}
	var names []string
	for _, st := range shown {
		if of[st.Broker] == nil {
			names = append(names, st.Broker)
		}
		if st.Waits != "" {
			continue // a slave runs when its master ends
		}
		of[st.Broker] = append(of[st.Broker], fmt.Sprintf("pid %d", st.PID))
	}
	for _, o := range others {
		if of[o.Name] != nil {
			of[o.Name] = append(of[o.Name], fmt.Sprintf("pid %d of user %d, who alone can ask it",
				o.PID, o.UID))
		}
	}
	for _, name := range names {
		if n := len(of[name]); n > 1 {
			lines = append(lines, fmt.Sprintf("%d running brokers have the name %s: %s", n, name,
				strings.Join(of[name], "; ")))
		}
	}
	return lines
}

// runOn tells of brokers of other users that have the name of one that was stopped.
func runOn(name string, others []control.Other) (lines []string) {
	for _, o := range others {
		if o.Name == name {
			lines = append(lines, fmt.Sprintf("another broker %s, pid %d of user %d, runs on: stop it as"+
				" that user", name, o.PID, o.UID))
		}
	}
	slices.Sort(lines)
	return lines
}
