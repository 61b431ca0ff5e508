package security

import (
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
)

func simple(t *testing.T, anonymous bool) *Simple {
	t.Helper()
	s, err := NewSimple(SimpleOptions{Users: []User{
		{Name: "system", Password: "manager", Groups: []string{"users", "admins"}},
		{Name: "empty", Password: ""},
	}, AnonymousAccessAllowed: anonymous})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlyTheRightPasswordOpens(t *testing.T) {
	for _, c := range []struct {
		user, password string
		anonymous, in  bool
	}{
		{"system", "manager", false, true},
		{"system", "Manager", false, false},
		{"system", "", false, false},
		{"nobody", "manager", false, false},
		{"nobody", "", true, false},
		{"", "", false, false},
		{"", "", true, true},
		{"", "x", true, false},
		{"empty", "", false, true},
	} {
		p, err := simple(t, c.anonymous).Authenticate(c.user, c.password)
		if (err == nil) != c.in {
			t.Errorf("%q with %q, anonymous %v: %v", c.user, c.password, c.anonymous, err)
		}
		if err != nil && (message.KindOf(err) != message.Denied ||
			err.Error() != "User name ["+c.user+"] or password is invalid.") {
			t.Errorf("%q: the error is %v of kind %d", c.user, err, message.KindOf(err))
		}
		if c.user == "system" && err == nil && !slices.Equal(p.Groups, []string{"users", "admins"}) {
			t.Errorf("groups %v", p.Groups)
		}
		if c.user == "" && err == nil && p.User != "anonymous" {
			t.Errorf("anonymous is %+v", p)
		}
	}
}

func TestTwoUsersOfOneNameAreRefused(t *testing.T) {
	_, err := NewSimple(SimpleOptions{Users: []User{{Name: "a"}, {Name: "a"}}})
	if err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("%v", err)
	}
}

func TestNoPasswordStaysInMemory(t *testing.T) {
	s := simple(t, false)
	e := s.users["system"]
	if strings.Contains(string(e.hash[:])+string(e.salt[:])+e.principal.User, "manager") {
		t.Fatal("the password is kept")
	}
	if s.users["empty"].hash == e.hash || newEntry(User{Password: "manager"}).hash == e.hash {
		t.Fatal("hashes are not salted")
	}
}
