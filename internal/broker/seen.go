package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// unseenDays is how long receipts of a peer, and marks toward it, are kept while it is not seen: an
// ActiveMQ broker has another id after each start. Whoever comes back after so long is not
// recognised in what it sends again.
const unseenDays = 30

// seenMost is how many peers are remembered.
const seenMost = 10_000

// metaPeers is the name under which the store keeps when peers were seen: a line for each, with the
// day since the epoch and the quoted id. It is written when a peer is seen on another day.
const metaPeers = "peersSeen"

// nobody was seen when the store began to keep who was: peers that it names before count from then
// on.
const nobody message.BrokerID = ""

// sighting is what is known of a peer that forwarded something, or was forwarded something.
type sighting struct {
	day   int64
	heard bool // it forwarded something since the broker's start
}

// PeersSeen reads from a store what Options.PeersSeen wants, nil when there is nothing.
func PeersSeen(st interface {
	Meta(name string) ([]byte, error)
}) (map[message.BrokerID]int64, error) {
	text, err := st.Meta(metaPeers)
	if err != nil || text == nil {
		return nil, err
	}
	seen := map[message.BrokerID]int64{}
	for line := range strings.Lines(string(text)) {
		number, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		day, err := strconv.ParseInt(number, 10, 64)
		id, wrong := strconv.Unquote(quoted)
		if err != nil || wrong != nil {
			return nil, message.Errorf(message.Corrupt, "the store's %s has the line %q", metaPeers, line)
		}
		seen[message.BrokerID(id)] = day
	}
	return seen, nil
}

func (b *Broker) today() int64 { return b.env.Wall() / (24 * 60 * 60 * 1000) }

// see notes that a peer is there.
func (b *Broker) see(peer message.BrokerID) *sighting {
	day, s := b.today(), b.networks.seen[peer]
	if s != nil && s.day >= day {
		return s
	}
	if s == nil {
		s = &sighting{}
		b.networks.seen[peer] = s
	}
	s.day = day
	b.keepSeen(day)
	return s
}

// keepSeen writes down who was seen, and forgets who was not for long.
func (b *Broker) keepSeen(today int64) {
	seen := b.networks.seen
	var peers []message.BrokerID
	for peer, s := range seen {
		if today-s.day > unseenDays {
			delete(seen, peer)
			continue
		}
		peers = append(peers, peer)
	}
	slices.SortFunc(peers, func(x, y message.BrokerID) int {
		if seen[x].day != seen[y].day {
			return int(seen[y].day - seen[x].day)
		}
		return strings.Compare(string(x), string(y))
	})
	for len(peers) > seenMost {
		delete(seen, peers[len(peers)-1])
		peers = peers[:len(peers)-1]
	}
	if !b.opt.Persistent {
		return
	}
	var text []byte
	for _, peer := range peers {
		text = fmt.Appendf(text, "%d %q\n", seen[peer].day, string(peer))
	}
	b.journal.add(store.Op{Kind: store.PutMeta, Name: metaPeers, Value: text})
}

// unseen reports whether a peer that the store names was not seen for long.
func (b *Broker) unseen(peer message.BrokerID) bool {
	s := b.networks.seen[peer]
	if s == nil {
		s = b.networks.seen[nobody]
	}
	return s == nil || b.today()-s.day > unseenDays
}

// recallPeers begins with what the store knows of peers.
func (b *Broker) recallPeers() {
	if b.opt.PeersSeen == nil {
		b.networks.seen[nobody] = &sighting{day: b.today()}
	}
	for peer, day := range b.opt.PeersSeen {
		b.networks.seen[peer] = &sighting{day: day}
	}
}
