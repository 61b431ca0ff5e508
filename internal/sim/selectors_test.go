package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
)

var colors = []string{"red", "green", "blue", "grey"}

// selecting is a network in which nothing replays, with consumers that take some colors.
type selecting struct {
	w            *World
	rnd          *rand.Rand
	apps         []app
	takes        map[string]int // open consumers by color
	sent, opened int
}

type app struct {
	*Client
	color string
}

func colored(color string) Mail {
	var m message.Message
	if err := m.SetProperties(message.Property{Name: "color", Value: color}); err != nil {
		panic(err)
	}
	return Mail{To: queueQ, Properties: m.Properties}
}

func newSelecting(seed uint64) *selecting {
	s := &selecting{w: New(seed, Options{}), takes: map[string]int{}}
	s.rnd = s.w.Rand()
	n := 3 + s.rnd.IntN(4)
	for i := range n {
		s.w.Broker(NodeConfig{Name: nameOf(i)})
	}
	for i := 1; i < n; i++ {
		s.link(i, s.rnd.IntN(i)) // a tree, and then some
	}
	for range s.rnd.IntN(3) {
		if i, j := s.rnd.IntN(n), s.rnd.IntN(n); i > j {
			s.link(i, j)
		}
	}
	s.w.Run(5 * time.Second)
	return s
}

func (s *selecting) link(i, j int) {
	o := bridge.DefaultOptions(5)
	o.MessageTTL, o.ConsumerTTL = -1, -1
	o.ConduitSubscriptions = s.rnd.IntN(3) > 0
	o.DecreaseNetworkConsumerPriority = s.rnd.IntN(2) == 0
	o.Duplex = s.rnd.IntN(2) == 0
	ends := [][2]string{{nameOf(i), nameOf(j)}, {nameOf(j), nameOf(i)}}
	for _, e := range ends {
		o.Name, o.URIs = fmt.Sprint(e[0], e[1], s.rnd.Uint32()), []string{"sim://" + e[1]}
		s.w.Node(e[0]).Connect(o)
		if o.Duplex {
			return
		}
	}
}

// churn opens and closes consumers, and cuts links meanwhile.
func (s *selecting) churn() {
	nodes := s.w.Nodes()
	for range 4 + s.rnd.IntN(10) {
		if len(s.apps) > 0 && s.rnd.IntN(3) == 0 {
			i := s.rnd.IntN(len(s.apps))
			s.takes[s.apps[i].color]--
			s.apps[i].Close()
			s.apps = append(s.apps[:i], s.apps[i+1:]...)
		} else {
			color := colors[s.rnd.IntN(3)]
			s.opened++
			c := s.w.Client(fmt.Sprint("consumer ", s.opened))
			c.Connect(nodes[s.rnd.IntN(len(nodes))])
			c.Consume(Wants{From: queueQ, Selector: "color='" + color + "'"})
			s.takes[color]++
			s.apps = append(s.apps, app{c, color})
		}
		switch n := nodes[s.rnd.IntN(len(nodes))]; s.rnd.IntN(12) {
		case 0:
			s.w.Reset(n.Name(), nodes[s.rnd.IntN(len(nodes))].Name(), 0)
		case 1:
			if !slices.ContainsFunc(s.apps, func(a app) bool { return a.Node() == n }) {
				n.Crash(false, 0)
				n.Start()
			}
		}
		s.w.Run(time.Duration(s.rnd.IntN(300)) * time.Millisecond)
	}
	s.w.Run(20 * time.Second)
}

// send sends to all, and gives how many of each color nobody takes, by broker.
func (s *selecting) send() map[string]int64 {
	stays := map[string]int64{}
	for _, n := range s.w.Nodes() {
		c := s.w.Client("producer " + n.Name())
		c.Connect(n)
		for range 5 + s.rnd.IntN(20) {
			color := colors[s.rnd.IntN(len(colors))]
			c.Send(colored(color), nil)
			s.sent++
			if s.takes[color] == 0 {
				stays[n.Name()]++
			}
		}
	}
	s.w.Run(20 * time.Second)
	return stays
}

func TestSelectorsHoldOverAnyDistance(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 30
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		s := newSelecting(seed)
		s.churn()
		stays := s.send()
		left := int64(0)
		for _, n := range s.w.Nodes() {
			if got := sizeOf(n); got != stays[n.Name()] {
				t.Errorf("seed %d: %s has %d messages, %d were sent there that nobody takes", seed,
					n.Name(), got, stays[n.Name()])
			}
			left += stays[n.Name()]
		}
		finals := int64(0)
		for _, f := range s.w.Ledger().Order {
			finals += int64(f.Finals)
		}
		if finals != int64(s.sent)-left {
			t.Errorf("seed %d: %d consumed of %d, %d stay", seed, finals, s.sent, left)
		}
	}
}
