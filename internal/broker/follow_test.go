package broker

import (
	"math/rand/v2"
	"testing"
	"time"

	"hopwire/internal/message"
)

// follower is a connection that failover made, with commands of any numbers.
type follower struct{ *guest }

func (f follower) transact(how message.TransactionType, tx int64, number int32) {
	f.Handle(&message.TransactionInfo{Header: message.Header{CommandID: number}, Connection: "c",
		ID: message.TransactionID{Connection: "c", Value: tx}, Type: how})
}

func (f follower) alive(number int32) {
	f.Handle(&message.KeepAliveInfo{Header: message.Header{CommandID: number}})
}

func TestATransactionKnowsHowManyCommandsFollowedIt(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := follower{quick(t, nil).tolerant("c", true)}
		type begin struct{ number, since int32 }
		open := map[message.TransactionID]*begin{}
		for id, next := int64(1), int32(1); id < 400; id++ {
			number := next
			if next++; r.IntN(3) == 0 {
				number = r.Int32N(next) // what is sent again, or has no number
			}
			for _, b := range open {
				if number > b.number {
					b.since++
				}
			}
			tx := message.TransactionID{Connection: "c", Value: r.Int64N(id) + 1}
			switch r.IntN(5) {
			case 0:
				if tx.Value = id; number > 0 {
					f.transact(message.Begin, id, number)
					open[tx] = &begin{number: number}
				}
			case 1:
				f.transact(message.Rollback, tx.Value, number)
				delete(open, tx)
			default:
				f.alive(number)
			}
			for tx, b := range open {
				if got := f.followed(f.transactions[tx]); got != b.since {
					t.Fatalf("seed %d: %d commands followed number %d, want %d", seed, got, b.number,
						b.since)
				}
			}
		}
	}
}

// TestACommandBesideManyTransactionsCostsNoMore: of a command that is above all of them, or below,
// the transactions are not asked.
func TestACommandBesideManyTransactionsCostsNoMore(t *testing.T) {
	f := follower{quick(t, nil).tolerant("c", true)}
	const open, commands = 4000, 500_000
	for n := range int32(open) {
		f.transact(message.Begin, int64(n), n+2)
	}
	// Were each looked at with each it would take half a minute.
	longest(t, "a million commands beside 4,000 transactions", 10*time.Second, func() {
		for n := range int32(commands) {
			f.alive(open + 2 + n)
			f.alive(0)
		}
	})
	for _, tx := range f.transactions {
		if n := f.followed(tx); n != open+1-tx.begun.number+commands || tx.begun.between != 0 {
			t.Fatalf("%d followed number %d", n, tx.begun.number)
		}
	}
}

func TestACommitOfNothingNeedsAllNumbersSinceItsBegin(t *testing.T) {
	for _, c := range []struct {
		commit int32
		fails  bool
	}{{11, false}, {13, false}, {14, true}} {
		h := open(t, nil, nil)
		g := h.tolerant("c", true)
		f := follower{g}
		f.transact(message.Begin, 1, 10)
		if c.commit > 11 {
			f.alive(11)
			f.alive(5) // no command of the transaction
			f.alive(12)
		}
		commit := &message.TransactionInfo{Connection: "c", Type: message.CommitOnePhase,
			ID: message.TransactionID{Connection: "c", Value: 1}}
		g.number = c.commit - 1
		if e := g.do(commit); (e != nil) != c.fails {
			t.Errorf("commit as number %d: %v", c.commit, e)
		}
	}
}

// A commit behind commands that were lost is refused if the transaction is empty, and only then:
// not one that has heard something, nor a branch that another connection began.
func TestOnlyAnEmptyTransactionOfItsOwnIsRefusedForWhatWasLost(t *testing.T) {
	h := open(t, nil, nil)
	c := h.tolerant("c", true)
	id := c.consume("c", topicNamed("T"))
	h.connect("p", "p", "", nil).produce("p", topicNamed("T"), 1)
	if len(c.got) != 1 {
		t.Fatalf("%d came", len(c.got))
	}
	for _, hears := range []bool{false, true} {
		tx := c.begin("c", 1)
		c.number += 10 // these were lost
		if hears {
			c.ack(id, topicNamed("T"), c.got[0], message.StandardAck, tx)
		}
		if e := c.finish(tx, message.CommitOnePhase); (e == nil) != hears {
			t.Errorf("it heard something: %v; the commit is answered with %v", hears, e)
		}
	}
	g := h.connect("g", "g", "", nil)
	g.walk(xid(1), begin, "ok")
	c.number += 10
	c.walk(xid(1), begin, "ok", end, "ok", commit1, "ok")
}
