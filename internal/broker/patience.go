package broker

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// metaPatience is the name under which the store keeps how long copies may be in doubt toward peers
// that told it themselves, and that may have some: a line for each, nanoseconds and the quoted id.
const metaPatience = "inDoubtTimeout"

// DoubtPatience reads from a store what Options.DoubtPatience wants.
func DoubtPatience(st interface {
	Meta(name string) ([]byte, error)
}) (map[message.BrokerID]time.Duration, error) {
	text, err := st.Meta(metaPatience)
	if err != nil {
		return nil, err
	}
	out := map[message.BrokerID]time.Duration{}
	for line := range bytes.Lines(text) {
		n, id, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		d, err := strconv.ParseInt(n, 10, 64)
		if err == nil {
			id, err = strconv.Unquote(id)
		}
		if err != nil {
			return nil, message.Errorf(message.Corrupt, "the store's %s has the line %q: %w",
				metaPatience, line, err)
		}
		out[message.BrokerID(id)] = time.Duration(d)
	}
	return out, nil
}

// DoubtPatience gives how long copies may be in doubt toward a peer, as it told the last time; 0
// when it did not.
func (b *Broker) DoubtPatience(peer message.BrokerID) time.Duration {
	return b.networks.patience[peer]
}

// keepPatience notes for the next start what the peer of a subscription told, the longest of all
// that are open. It is written before the first mark of a copy that goes to it. Peers that nothing
// is marked for are left out.
func (b *Broker) keepPatience(s *network.Subscription) {
	known, told := b.networks.patience, s.Patience
	for _, n := range b.networks.order {
		if n.sub.Peer == s.Peer {
			told = network.LongerPatience(told, n.sub.Patience)
		}
	}
	if s.Patience == 0 || !s.Hopwire || known[s.Peer] == told {
		return
	}
	marked := map[message.BrokerID]bool{}
	for _, d := range b.order {
		for peer := range d.marks {
			marked[peer] = true
		}
	}
	maps.DeleteFunc(known, func(p message.BrokerID, _ time.Duration) bool { return !marked[p] })
	known[s.Peer] = told
	var text []byte
	for _, peer := range slices.Sorted(maps.Keys(known)) {
		text = fmt.Appendf(text, "%d %q\n", known[peer], peer)
	}
	defer b.journal.leave(b.journal.enter())
	b.journal.add(store.Op{Kind: store.PutMeta, Name: metaPatience, Value: text})
}
