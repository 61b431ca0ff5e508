package hopwire

import (
	"fmt"

	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/message"
	"hopwire/internal/security"
)

// authorizer is the broker's for an authorizationPlugin; nil without one.
func authorizer(a *config.Authorization) broker.Authorizer {
	if a == nil {
		return nil
	}
	m := &security.Map{Default: rightsOf(a.Default), Temp: rightsOf(a.Temp)}
	for _, e := range a.Entries {
		m.Entries = append(m.Entries, security.Entry{Destination: e.Destination,
			Rights: *rightsOf(&e.Rights)})
	}
	return m
}

func rightsOf(r *config.Rights) *security.Rights {
	if r == nil {
		return nil
	}
	return &security.Rights{Read: r.Read, Write: r.Write, Admin: r.Admin}
}

// localUser is who a networkConnector's bridges are at their own broker, whose rights bound what
// crosses them; nil where there is no authorization. One that the broker does not know has no right
// that is not everybody's (see unknownUsers).
func localUser(n *config.Network, o broker.Options) *message.Principal {
	switch {
	case o.Authorizer == nil:
		return nil
	case o.Authenticator == nil:
		return &message.Principal{} // nobody is known, and nobody has a right
	}
	p, err := o.Authenticator.Authenticate(n.UserName, n.Password)
	if err != nil {
		p = message.Principal{User: n.UserName}
	}
	return &p
}

// unknownUsers tells of network connectors whose bridges are nobody at their own broker.
func unknownUsers(c *config.Broker) (lines []string, err error) {
	if c.Authorization == nil || c.Auth == nil {
		return nil, nil
	}
	users, err := authenticator(c.Auth)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Networks {
		if _, err := users.Authenticate(n.UserName, n.Password); err != nil {
			lines = append(lines, fmt.Sprintf("%s: network connector %s: its userName %q is no user of its"+
				" own broker, so that it has none of the rights that authorizationPlugin gives (%s); give"+
				" it userName and password of a user in simpleAuthenticationPlugin", n.Pos, n.Name,
				n.UserName, err))
		}
	}
	return lines, nil
}
