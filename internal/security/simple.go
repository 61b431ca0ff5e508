package security

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// User is an <authenticationUser>.
type User struct {
	Name     string
	Password string
	Groups   []string
}

// SimpleOptions are the settings of a simpleAuthenticationPlugin.
type SimpleOptions struct {
	Users []User
	// AnonymousAccessAllowed lets in who gives neither name nor password. Default false.
	AnonymousAccessAllowed bool
	AnonymousUser          string // default "anonymous"
	AnonymousGroup         string // default "anonymous"
}

// Simple implements broker.Authenticator for users that are known at start. It keeps no password,
// only a salted hash of each: the file is as readable as before, but memory dumps are not.
type Simple struct {
	users     map[string]entry
	nobody    entry // compared with for names that do not exist, so that time tells nothing
	anonymous *message.Principal
}

type entry struct {
	salt      [16]byte
	hash      [sha256.Size]byte
	principal message.Principal
}

var _ broker.Authenticator = (*Simple)(nil)

// NewSimple makes an authenticator. A name that is empty or given twice is an error.
func NewSimple(o SimpleOptions) (*Simple, error) {
	s := &Simple{users: make(map[string]entry, len(o.Users))}
	for _, u := range o.Users {
		if u.Name == "" {
			return nil, message.Errorf(message.Protocol,
				"simpleAuthenticationPlugin: an authenticationUser has no username")
		}
		if _, twice := s.users[u.Name]; twice {
			return nil, message.Errorf(message.Duplicate,
				"simpleAuthenticationPlugin: the user %q is there twice", u.Name)
		}
		s.users[u.Name] = newEntry(u)
	}
	s.nobody = newEntry(User{Password: rand.Text()})
	if o.AnonymousAccessAllowed {
		p := message.Principal{User: o.AnonymousUser, Groups: []string{o.AnonymousGroup}}
		if p.User == "" {
			p.User = "anonymous"
		}
		if o.AnonymousGroup == "" {
			p.Groups[0] = "anonymous"
		}
		s.anonymous = &p
	}
	return s, nil
}

func newEntry(u User) entry {
	e := entry{principal: message.Principal{User: u.Name, Groups: slices.Clone(u.Groups)}}
	rand.Read(e.salt[:]) // it never fails
	e.hash = e.digest(u.Password)
	return e
}

func (e *entry) digest(password string) [sha256.Size]byte {
	return sha256.Sum256(append(e.salt[:], password...))
}

// Authenticate gives the principal of a user, or an error of kind Denied in ActiveMQ's words. A
// wrong name and a wrong password look the same and take the same time.
func (s *Simple) Authenticate(userName, password string) (message.Principal, error) {
	if s.anonymous != nil && userName == "" && password == "" {
		return *s.anonymous, nil
	}
	e, known := s.users[userName]
	if !known {
		e = s.nobody
	}
	got := e.digest(password)
	if subtle.ConstantTimeCompare(got[:], e.hash[:]) == 1 && known {
		return e.principal, nil
	}
	return message.Principal{}, message.Errorf(message.Denied,
		"User name [%s] or password is invalid.", userName)
}
