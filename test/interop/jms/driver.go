package jms

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Version is a generation of the JMS client.
type Version int

// The generations: V5 is the javax client 5.17 of Debian's ActiveMQ, V6 the jakarta client 6.3.
const (
	V5 Version = iota
	V6
)

func (v Version) String() string { return [...]string{"jms5", "jms6"}[v] }

// Error is an exception of the JMS client.
type Error struct {
	Verb  string // what was asked of the driver
	Class string // as javax.jms.JMSSecurityException
	Text  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Verb, e.Class, e.Text) }

// Driver is one test's view of a JVM with a JMS client in it.
type Driver struct {
	t testing.TB
	v Version
	p *process
}

// Version is the generation of the driver's client.
func (d *Driver) Version() Version { return d.v }

// names makes the ids of what is opened in a driver; one JVM may serve several tests at a time.
var names atomic.Int64

func name(kind string) string { return kind + strconv.FormatInt(names.Add(1), 10) }

// Start returns the driver of a version that all tests of this process share; the first call starts
// its JVM, which takes half a second.
func Start(t testing.TB, v Version) *Driver {
	t.Helper()
	return &Driver{t, v, sharedProcess(t, v)}
}

// StartOwn starts a driver that no other test uses, to be killed.
func StartOwn(t testing.TB, v Version) *Driver {
	t.Helper()
	d := &Driver{t, v, launch(t, v)}
	t.Cleanup(d.Kill)
	return d
}

// Kill ends the JVM as kill -9 does, so that its connections break without a word. It is for
// drivers of StartOwn.
func (d *Driver) Kill() {
	if d.p.alive() {
		_ = d.p.cmd.Process.Kill() // it may have ended by itself
	}
	<-d.p.ended
}

// ConnectOptions say how to connect.
type ConnectOptions struct {
	URL            string // as ActiveMQ's client reads it, failover:() and jms.* options included
	User, Password string // none by default
	ClientID       string // made by the client by default
	Stopped        bool   // deliver nothing before Conn.Start
	XA             bool   // for sessions of mode XA
}

// Connect opens and starts a connection.
func (d *Driver) Connect(url string) *Conn {
	d.t.Helper()
	c, err := d.Dial(ConnectOptions{URL: url})
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// Dial opens a connection; what the broker refuses is an *Error.
func (d *Driver) Dial(o ConnectOptions) (*Conn, error) {
	c := &Conn{t: d.t, p: d.p, id: name("c"), changed: make(chan struct{})}
	args := pairs{"id": c.id, "url": o.URL}
	args.set("user", o.User)
	if o.User != "" {
		args["password"] = o.Password
	}
	args.set("clientid", o.ClientID)
	args.setBool("stopped", o.Stopped)
	args.setBool("xa", o.XA)
	c.p.listen(c.id, c.hear)
	if _, _, err := c.p.call("connect", args, 0); err != nil {
		c.p.listen(c.id, nil)
		return nil, err
	}
	d.t.Cleanup(func() {
		_ = c.end(5*time.Second - slack) // its broker may be gone by now
	})
	return c, nil
}
