package storetest

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// World is where a store lives. All methods are for one goroutine, but for what Watch says.
type World interface {
	// Open opens the store on what is there. Before it the last one is closed.
	Open() (store.Store, error)
	// Watch makes the open store call f at each point inside Apply at which a crash could
	// happen, from any goroutine, at least once between the begin and the return of an Apply.
	Watch(f func())
	// Crash gives a world as a crash at this moment may leave it. It may be called inside f.
	Crash(r *rand.Rand) World
	// SetFull makes space run out, so far that puts are refused, or be there again; it returns
	// when the open store knows.
	SetFull(full bool)
}

// Run holds the stores of the worlds that fresh makes to the contract.
func Run(t *testing.T, fresh func() World) {
	t.Run("what was applied is read, also after reopening", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { readsWhatWasApplied(t, fresh()) })
	})
	t.Run("a crash leaves a prefix that holds all that was confirmed", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { crashLeavesPrefix(t, fresh()) })
	})
	t.Run("a full store refuses puts whole and takes deletes", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { fullRefusesPuts(t, fresh()) })
	})
	runOpen(t, fresh)
	t.Run("a put to a topic that does not fit is refused", func(t *testing.T) {
		topicPutsAreHeld(t, fresh)
	})
	t.Run("a reference without its message is told of and stops no other", func(t *testing.T) {
		danglingIsTold(t, fresh())
	})
	t.Run("a subscription stays what it was made", func(t *testing.T) {
		termsAreKept(t, fresh)
	})
	t.Run("a prepared branch is put once and ends whole", func(t *testing.T) {
		branchesAreWhole(t, fresh())
	})
	t.Run("a pattern reads many logs", func(t *testing.T) {
		patternReadsManyLogs(t, fresh())
	})
	t.Run("a read of a topic beside Apply sees whole batches", func(t *testing.T) {
		topicReadsSeeWholeBatches(t, open(t, fresh()))
	})
	t.Run("a number of a receipt is not given twice", func(t *testing.T) {
		receiptNumbersAreNew(t, fresh())
	})
	t.Run("numbers of producers go on after a restart", func(t *testing.T) {
		numbersGoOn(t, fresh())
	})
}

// RunVolatile holds stores to what the contract says while they are open; what is there after that
// does not count.
func RunVolatile(t *testing.T, fresh func() World) {
	t.Run("what was applied is read", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { readsWhatIsThere(t, fresh()) })
	})
	runOpen(t, fresh)
}

// runOpen holds stores to what all of them do while they are open.
func runOpen(t *testing.T, fresh func() World) {
	t.Helper()
	t.Run("a page ends at its bounds and holds at least one", func(t *testing.T) {
		pageBounds(t, open(t, fresh()))
	})
	t.Run("a read beside Apply sees whole batches", func(t *testing.T) {
		readsSeeWholeBatches(t, open(t, fresh()))
	})
	t.Run("a put outside of its header is refused", func(t *testing.T) {
		putsNeedHeader(t, fresh)
	})
	t.Run("a closed store answers nothing", func(t *testing.T) {
		closedAnswersNothing(t, open(t, fresh()))
	})
	t.Run("what lasts is not told of as expired", func(t *testing.T) {
		lastsIsNotExpired(t, open(t, fresh()))
	})
}

// readsWhatIsThere applies batches, now and then to a full store, and reads.
func readsWhatIsThere(t *rapid.T, w World) {
	k := draw(t)
	s := open(t, w)
	for range rapid.IntRange(1, 15).Draw(t, "applies") {
		batches := []*store.Batch{k.batch(), k.batch()}
		full := k.r.IntN(4) == 0
		w.SetFull(full)
		err := s.Apply(batches)
		if full && (batches[0].Puts() || batches[1].Puts()) {
			if message.KindOf(err) != message.Limit {
				t.Fatalf("apply of puts to a full store: %v, want a Limit error", err)
			}
			w.SetFull(false)
			err = s.Apply(batches)
		}
		if err != nil {
			t.Fatal("apply:", err)
		}
		verify(t, k.m, s, k.r)
	}
	w.SetFull(false)
	closeStore(t, s)
}

// fataler is testing.T and rapid.T.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func open(t fataler, w World) store.Store {
	t.Helper()
	s, err := w.Open()
	if err != nil {
		t.Fatal("open:", err)
	}
	return s
}

func closeStore(t fataler, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal("close:", err)
	}
}

func apply(t fataler, s store.Store, batches ...*store.Batch) {
	t.Helper()
	if err := s.Apply(batches); err != nil {
		t.Fatal("apply:", err)
	}
}

func verify(t fataler, m *model, s store.Store, r *rand.Rand) {
	t.Helper()
	if err := m.verify(s, r); err != nil {
		t.Fatal(err)
	}
}

func draw(t *rapid.T) *maker { return newMaker(rapid.Uint64().Draw(t, "seed")) }

func readsWhatWasApplied(t *rapid.T, w World) {
	k := draw(t)
	s := open(t, w)
	for range rapid.IntRange(1, 15).Draw(t, "applies") {
		var batches []*store.Batch
		for range 1 + k.r.IntN(4) {
			batches = append(batches, k.batch())
		}
		apply(t, s, batches...)
		switch k.r.IntN(3) {
		case 0:
			verify(t, k.m, s, k.r)
		case 1:
			closeStore(t, s)
			s = open(t, w)
			clear(k.left)
		}
	}
	verify(t, k.m, s, k.r)
	closeStore(t, s)
	s = open(t, w)
	verify(t, k.m, s, k.r)
	closeStore(t, s)
}

// crashed is a world after a crash; the batches in it are at least confirmed and at most handed.
type crashed struct {
	world             World
	confirmed, handed int
}

func crashLeavesPrefix(t *rapid.T, w World) {
	k := draw(t)
	s := open(t, w)
	var all []crashed
	var confirmed, handed int
	crashRand := rand.New(rand.NewPCG(k.r.Uint64(), 1))
	snap := newSampler(func() {
		all = append(all, crashed{w.Crash(crashRand), confirmed, handed})
	}, rapid.IntRange(0, 5).Draw(t, "skip"))
	w.Watch(snap.point)
	for range rapid.IntRange(1, 8).Draw(t, "applies") {
		var batches []*store.Batch
		for range 1 + k.r.IntN(4) {
			batches = append(batches, k.batch())
		}
		snap.locked(func() { handed = len(k.made) })
		apply(t, s, batches...)
		snap.locked(func() { confirmed = handed })
	}
	snap.locked(func() { all = append(all, crashed{w.Crash(crashRand), confirmed, handed}) })
	closeStore(t, s)
	snap.stop()
	for _, c := range all {
		s := open(t, c.world)
		n := marked(t, s)
		if n < c.confirmed || n > c.handed {
			t.Fatalf("%d batches survived the crash, %d were confirmed, %d handed over",
				n, c.confirmed, c.handed)
		}
		verify(t, k.modelAfter(n), s, k.r)
		k2 := *k // the store goes on from there
		k2.m, k2.made = k.modelAfter(n), k.made[:n:n]
		k2.left = map[string][]uint64{}
		apply(t, s, k2.batch())
		verify(t, k2.m, s, k.r)
		closeStore(t, s)
	}
}

func marked(t fataler, s store.Store) int {
	t.Helper()
	v, err := s.Meta(mark)
	if err != nil {
		t.Fatal("mark:", err)
	}
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		t.Fatal("mark:", err)
	}
	return n
}

func fullRefusesPuts(t *rapid.T, w World) {
	k := draw(t)
	s := open(t, w)
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		batches := []*store.Batch{k.batch(), k.batch()}
		before := k.modelAfter(len(k.made) - len(batches))
		full := k.r.IntN(2) == 0
		w.SetFull(full)
		if s.Space().Full != full {
			t.Fatalf("Space().Full = %v, want %v", !full, full)
		}
		err := s.Apply(batches)
		if full && (batches[0].Puts() || batches[1].Puts()) {
			if message.KindOf(err) != message.Limit {
				t.Fatalf("apply of puts to a full store: %v, want a Limit error", err)
			}
			verify(t, before, s, k.r)
			w.SetFull(false)
			err = s.Apply(batches)
		}
		if err != nil {
			t.Fatal("apply:", err)
		}
		verify(t, k.m, s, k.r)
	}
	w.SetFull(false)
	closeStore(t, s)
	s = open(t, w)
	verify(t, k.m, s, k.r)
	closeStore(t, s)
}
