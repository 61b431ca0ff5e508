package broker

import (
	"slices"

	"hopwire/internal/message"
)

// Right is what a user may be given to a destination.
type Right uint8

// The rights.
const (
	Read  Right = iota // consume and browse
	Write              // send
	Admin              // make a destination that is not there, and remove one
)

// Authorizer decides what users may do.
type Authorizer interface {
	// May reports whether a user has a right to a destination, which is no composite. A consumer's
	// pattern is asked about as it is written, and each destination that it takes besides. What it
	// says of one user, right and destination must not change.
	May(p *message.Principal, r Right, d message.Destination) bool
	// Groups are those whose users have a right to a destination, for explanations.
	Groups(r Right, d message.Destination) []string
}

// act is what a right is asked for.
type act struct {
	right Right
	words string // of ActiveMQ
}

var (
	reading  = act{Read, "read from"}
	writing  = act{Write, "write to"}
	making   = act{Admin, "create"}
	removing = act{Admin, "remove"}
)

// rightsMost is how many destinations a connection's decisions are kept for, and rightsName how
// long, in bytes, the name of such a one is at most: anybody may name what is not there.
const rightsMost, rightsName = 1000, 256

// rights decide for one connection, or one bridge. Nil may do everything.
type rights struct {
	b    *Broker
	user message.Principal
	who  string // who acts, for the log
	// stranger has no authenticator let in.
	stranger bool
	known    map[message.Destination]decided
	sends    message.Destination // the last that may be written to
}

// decided has a bit for each right.
type decided struct{ asked, given uint8 }

// rightsOf gives what decides for a user; nil without an authorizer.
func (b *Broker) rightsOf(p message.Principal, who string) *rights {
	if b.opt.Authorizer == nil {
		return nil
	}
	return &rights{b: b, user: p, who: who, stranger: b.opt.Authenticator == nil,
		known: map[message.Destination]decided{}}
}

// may decides, and remembers, about a destination that is no composite.
func (r *rights) may(right Right, d message.Destination) bool {
	if r == nil {
		return true
	}
	bit := uint8(1) << right
	k := r.known[d]
	if k.asked&bit == 0 {
		if len(r.known) >= rightsMost {
			clear(r.known)
		}
		k.asked |= bit
		if !r.stranger && r.b.opt.Authorizer.May(&r.user, right, d) {
			k.given |= bit
		}
		if len(d.Name) <= rightsName {
			r.known[d] = k
		}
	}
	return k.given&bit != 0
}

// allow refuses an act on a destination unless it may be done to each of its members.
func (r *rights) allow(a act, d message.Destination) error {
	if r == nil {
		return nil
	}
	if !d.IsComposite() {
		if r.may(a.right, d) {
			return nil
		}
		return r.deny(a, d, d)
	}
	for _, m := range d.Split() {
		if !r.may(a.right, m) {
			return r.deny(a, m, d)
		}
	}
	return nil
}

// allowMaking refuses to make those members of a destination that are not there. Advisory topics
// always are; temporary destinations are not made by naming them.
func (r *rights) allowMaking(d message.Destination) error {
	if r == nil {
		return nil
	}
	if !d.IsComposite() {
		if r.mayName(d) {
			return nil
		}
		return r.deny(making, d, d)
	}
	for _, m := range d.Split() {
		if !r.mayName(m) {
			return r.deny(making, m, m)
		}
	}
	return nil
}

// mayName reports whether a destination is there, or may be made.
func (r *rights) mayName(d message.Destination) bool {
	return r == nil || r.b.dests[d] != nil || d.IsAdvisory() || d.IsTemp() || r.may(Admin, d)
}

// mayGet reports whether a consumer of a pattern gets what is sent to one of its destinations. That
// it does not is counted, and no mistake.
func (r *rights) mayGet(d message.Destination) bool {
	if r.may(Read, d) {
		return true
	}
	r.count(reading, d)
	return false
}

// deny refuses an act on a destination; named is what the command named, of which that is a member.
func (r *rights) deny(a act, d, named message.Destination) error {
	r.count(a, d)
	text := "User is not authenticated."
	if !r.stranger {
		text = "User " + r.user.User + " is not authorized to " + a.words + ": " + textOf(named)
	}
	r.b.tell(Event{Kind: AccessDenied, Reason: message.AccessDenied, Dest: d, Count: 1,
		Of: "user " + r.user.User + " " + a.words, Text: text + " (" + r.whose() + ")"})
	return message.Errorf(message.Denied, "%s", text)
}

// whose is who acts, and that it is nobody if so: the texts of ActiveMQ have an empty name then.
func (r *rights) whose() string {
	if r.user.User == "" {
		return r.who + ", which has no user name"
	}
	return r.who
}

// textOf is how ActiveMQ writes a destination: a composite without the kind before it.
func textOf(d message.Destination) string {
	if d.IsComposite() {
		return d.Name
	}
	return d.String()
}

func (r *rights) count(a act, d message.Destination) {
	r.b.counts.Reasons[message.AccessDenied]++
	if x := r.b.dests[d]; x != nil {
		x.reasons[message.AccessDenied]++
	}
	r.b.denials.add(denialKey{r.user.User, a.words, d}, a.right, r)
}

// authorize refuses messages that their sender may not send.
func (b *Broker) authorize(a *arrival) outcome {
	r := a.rights()
	to := a.m.Destination
	if r == nil || a.internal || r.sends == to && b.dests[to] != nil {
		return proceed
	}
	err := r.allow(writing, to)
	if err == nil {
		err = r.allowMaking(to)
	}
	if err != nil {
		a.refuse(err)
		return finished
	}
	r.sends = to
	return proceed
}

// rights gives what decides for the sender.
func (a *arrival) rights() *rights {
	switch {
	case a.conn != nil:
		return a.conn.rights
	case a.peer != nil:
		return a.b.networks.rightsOf(a.b, a.peer.As, a.peer.ID)
	}
	return nil
}

// withoutStep gives steps without those of a name.
func withoutStep(steps []step, name string) []step {
	return slices.DeleteFunc(steps, func(s step) bool { return s.name == name })
}
