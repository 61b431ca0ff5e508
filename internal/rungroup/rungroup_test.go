package rungroup

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnErrorStopsTheGroupAndIsGivenWithItsName(t *testing.T) {
	g := New(context.Background())
	g.Go("patient", untilStopped)
	g.Go("hasty", func(context.Context) error { return errors.New("no luck") })
	if err := g.Wait(); err == nil || err.Error() != "hasty: no luck" {
		t.Fatalf("Wait gave %v", err)
	}
	if g.Go("late", untilStopped) {
		t.Fatal("a stopped group started something")
	}
}

func TestTheEndOfTheContextIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := New(ctx)
	g.Go("a", untilStopped)
	g.Go("a", untilStopped)
	g.Go("b", untilStopped)
	if got := g.Running(); !slices.Equal(got, []string{"a x2", "b"}) {
		t.Fatalf("running: %v", got)
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := g.Running(); len(got) != 0 {
		t.Fatalf("still running: %v", got)
	}
}

func TestStopEndsWhatRuns(t *testing.T) {
	g := New(context.Background())
	g.Go("a", untilStopped)
	g.Stop()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
