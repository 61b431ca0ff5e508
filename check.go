package hopwire

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hopwire/internal/bridge"
	"hopwire/internal/config"
	"hopwire/internal/manage"
	"hopwire/internal/plural"
	"hopwire/internal/store/disk"
)

// Check looks at the disk, opens nothing and writes nothing. The warnings, a line each, are those
// that Start begins with: ports open to the network without authentication, connectors that never
// connect or have no rights here, what the store's folder holds or loses, and stores of other names
// beside a new one. The error is one with which Start would refuse.
func (s *Setup) Check() (warnings []string, err error) {
	c := s.config.Broker()
	for _, line := range exposed(c) {
		if s.options.StrictListeners {
			return nil, fmt.Errorf("%w: %s (refused by --strict-listeners)", ErrRefused, line)
		}
		warnings = append(warnings, line)
	}
	warnings = append(warnings, unserved(c)...)
	warnings = append(warnings, toItself(c)...)
	unknown, err := unknownUsers(c)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, unknown...)
	dir := s.Folder()
	if dir == "" {
		return warnings, nil
	}
	if c.DeleteAllMessagesOnStartup {
		warnings = append(warnings, "deleteAllMessagesOnStartup: the store "+dir+" is emptied")
	}
	for _, line := range []string{leftByKahaDB(dir), s.otherNames(dir)} {
		if line != "" {
			warnings = append(warnings, line)
		}
	}
	return warnings, nil
}

// Connectors are those that the broker will listen with, as Broker.Connectors gives them; port 0 is
// any free one.
func (s *Setup) Connectors() []Connector {
	var out []Connector
	for _, t := range opened(s.config.Broker()) {
		out = append(out, Connector{Name: t.Name, Address: addressOf(t.URI, t.URI.Port)})
	}
	return out
}

// Bridges are those that the broker will have to begin with. State is "" where one is made, and
// tells otherwise why it is not; of several addresses URI is the first that the file names.
func (s *Setup) Bridges() []Bridge {
	var out []manage.Bridge
	c := s.config.Broker()
	for _, n := range c.Networks {
		for _, l := range n.Links {
			b := manage.Bridge{Name: n.Name, URI: l.Peers[0].URI.String(), Addresses: len(l.Peers)}
			if !n.AutoStart {
				b.State = bridge.Stopped.String()
			}
			out = append(out, b)
		}
	}
	return append(out, unservedBridges(c)...)
}

// Meets tells where the brokers of two setups would listen on one port, or where one broker would
// twice, which is what a setup is asked of itself; "" when none do.
func (s *Setup) Meets(o *Setup) string {
	taken := make(map[string]*config.Transport)
	if s != o {
		for _, u := range opened(o.config.Broker()) {
			take(taken, u)
		}
	}
	for _, t := range opened(s.config.Broker()) {
		for _, host := range wanted(t) {
			if u := taken[host]; u != nil && samePort(t.URI, u.URI) {
				return fmt.Sprintf("%s and %s both listen on port %s", u.Pos, t.Pos, t.URI.Port) +
					ofHosts(u.URI.Host, t.URI.Host)
			}
		}
		if s == o {
			take(taken, t)
		}
	}
	return ""
}

// The addresses of a port that take notes: that of one listener, every one, and any.
const everyHost, anyHost = " every ", " any "

// take notes that a listener has its port, unless another has it before.
func take(taken map[string]*config.Transport, t *config.Transport) {
	hosts := []string{hostOf(t.URI) + " ", anyHost}
	if isEvery(t.URI.Host) {
		hosts = []string{everyHost, anyHost}
	}
	for _, host := range hosts {
		if taken[host+t.URI.Port] == nil {
			taken[host+t.URI.Port] = t
		}
	}
}

// wanted are the notes of listeners that a listener would meet.
func wanted(t *config.Transport) []string {
	if isEvery(t.URI.Host) {
		return []string{anyHost + t.URI.Port}
	}
	return []string{hostOf(t.URI) + " " + t.URI.Port, everyHost + t.URI.Port}
}

// ofHosts says of which addresses two listeners want a port.
func ofHosts(a, b string) string {
	if a == b || !isEvery(a) && !isEvery(b) {
		return " of " + b
	}
	if isEvery(b) {
		a, b = b, a
	}
	if isEvery(b) {
		return " of every address"
	}
	return ": " + a + " is every address, " + b + " among them"
}

// samePort reports whether two listeners cannot both have what they ask for.
func samePort(a, b *config.URI) bool {
	if a.Port != b.Port || a.Port == "" || a.Port == "0" {
		return false
	}
	if isEvery(a.Host) || isEvery(b.Host) {
		return true
	}
	return hostOf(a) == hostOf(b)
}

func isEvery(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// hostOf is a host in one spelling.
func hostOf(u *config.URI) string {
	if ip := net.ParseIP(u.Host); ip != nil {
		return ip.String()
	}
	if strings.EqualFold(u.Host, "localhost") {
		return "127.0.0.1"
	}
	return strings.ToLower(u.Host)
}

// unservedBridges stand for the network connectors that never connect.
func unservedBridges(c *config.Broker) (out []manage.Bridge) {
	for _, u := range c.Unserved {
		out = append(out, manage.Bridge{Name: cmp.Or(u.Name, u.URI), URI: u.URI,
			State: manage.NotHonoured, Error: fmt.Sprintf("line %d: %s", u.Pos.Line, u.Why)})
	}
	return out
}

// exposed tells of ports that are open to the network without authentication.
func exposed(c *config.Broker) (lines []string) {
	if c.Auth != nil {
		return nil
	}
	for _, t := range opened(c) {
		ip := net.ParseIP(t.URI.Host)
		if t.URI.Host == "localhost" || ip != nil && ip.IsLoopback() {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: connector %s is open to the network and there is no"+
			" authentication; add simpleAuthenticationPlugin or listen on 127.0.0.1", t.Pos, t.Name))
	}
	return lines
}

// unserved tells of what would connect brokers and does not.
func unserved(c *config.Broker) (lines []string) {
	for _, u := range c.Unserved {
		lines = append(lines, fmt.Sprintf("%s: network connector %s never connects: %s; write the"+
			" peers' addresses, static:(tcp://host:port)", u.Pos, cmp.Or(u.Name, u.URI), u.Why))
	}
	for _, t := range opened(c) {
		if t.DiscoveryURI != "" {
			lines = append(lines, fmt.Sprintf("%s: connector %s is not announced: discoveryUri is not"+
				" supported; brokers that look for it there do not find it, give them its address",
				t.Pos, t.Name))
		}
	}
	return lines
}

// toItself tells of network connectors that lead to a listener of their own broker.
func toItself(c *config.Broker) (lines []string) {
	ports := make(map[string][]*config.Transport)
	for _, t := range opened(c) {
		ports[t.URI.Port] = append(ports[t.URI.Port], t)
	}
	for _, n := range c.Networks {
		for _, l := range n.Links {
			for _, p := range l.Peers {
				for _, t := range ports[p.URI.Port] {
					if samePort(p.URI, t.URI) && (!isEvery(t.URI.Host) || isOwn(p.URI)) {
						lines = append(lines, fmt.Sprintf("%s: network connector %s: %s is this broker itself"+
							" (line %d listens there); take it out of the uri", n.Pos, n.Name, p.URI, t.Pos.Line))
					}
				}
			}
		}
	}
	return lines
}

// isOwn reports whether a host is written as an address of this machine, or is its name.
func isOwn(u *config.URI) bool {
	ip := net.ParseIP(hostOf(u))
	if ip == nil {
		name, err := os.Hostname()
		return err == nil && strings.EqualFold(name, u.Host)
	}
	own, err := net.InterfaceAddrs()
	return ip.IsLoopback() || ip.IsUnspecified() ||
		err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
}

// leftByKahaDB tells of ActiveMQ's messages in a store's folder, which are not read; "" when there
// are none.
func leftByKahaDB(dir string) string {
	journals, err := filepath.Glob(filepath.Join(dir, "db-*.log"))
	if err != nil || len(journals) == 0 {
		return ""
	}
	size := int64(0)
	for _, j := range journals {
		if info, err := os.Stat(j); err == nil {
			size += info.Size()
		}
	}
	amount := fmt.Sprintf("%d MiB", size>>20)
	if size < 1<<20 {
		amount = fmt.Sprintf("%d KiB", (size+1<<10-1)>>10)
	}
	return fmt.Sprintf("the folder %s has %s (%s), not read by this broker: what is"+
		" there stays there; drain it with ActiveMQ first, or give this broker a folder of its own; when"+
		" nothing in them is needed any more, delete db-*.log, db.data and db.redo, and the line ends",
		dir, plural.Of(len(journals), "KahaDB journal"), amount)
}

// Beside says which brokers run in the same process: their stores are none that was left behind.
func (s *Setup) Beside(others []*Setup) {
	for _, o := range others {
		s.beside = append(s.beside, filepath.Clean(o.Folder()))
	}
}

// otherNamesMost is how many stores of other names are told.
const otherNamesMost = 3

// otherNames tells of stores beside a folder that is made of the broker's name and is new: a broker
// that was renamed does not find its messages there. "" when there are none, or they are in use.
func (s *Setup) otherNames(dir string) string {
	byName := filepath.Dir(dir)
	if disk.Exists(dir) || filepath.Base(byName) != s.Name() {
		return ""
	}
	data := filepath.Dir(byName)
	folders, err := os.ReadDir(data)
	if err != nil {
		return "" // there are none, or start will say what is wrong
	}
	var beside []string
	for _, f := range folders {
		other := filepath.Join(data, f.Name(), filepath.Base(dir))
		switch {
		case !disk.Exists(other) || other == dir:
		case disk.InUse(other) || slices.Contains(s.beside, other):
			return "" // several brokers share the folder, and this is one more
		default:
			beside = append(beside, other)
		}
	}
	if len(beside) == 0 {
		return ""
	}
	more := ""
	if n := len(beside) - otherNamesMost; n > 0 {
		beside, more = beside[:otherNamesMost], fmt.Sprintf(" and %d more", n)
	}
	whose := plural.Form(len(beside), " of a broker that does not run: its messages are",
		" of brokers that do not run: their messages are")
	return "the store's folder " + dir + " is new, and there " +
		plural.Form(len(beside), "is ", "are ") + strings.Join(beside, ", ") + more +
		whose + " not this broker's; if it had that name, keep it, or name the folder as directory of" +
		" kahaDB"
}
