package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/openwire"
	"hopwire/test/wait"
)

// A producer whose sends are not answered says so, once until there is an answer.
func TestAProducerTellsOfABrokerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var q questions
		var out wait.Output
		seen := 0
		news := func() string {
			synctest.Wait()
			all := out.String()
			text := all[seen:]
			seen = len(all)
			return text
		}
		done := make(chan error)
		go func() {
			done <- q.watch(ctx, &lines{out: &out},
				&openwire.Destination{Type: openwire.TypeQueue, PhysicalName: "A"})
		}()
		told := func() int {
			time.Sleep(3*unanswered + time.Millisecond)
			return strings.Count(news(), "\n")
		}
		if n := told(); n != 0 {
			t.Errorf("%d lines when nothing was asked", n)
		}
		q.asked.Add(3)
		time.Sleep(unanswered - time.Millisecond)
		if early := news(); early != "" {
			t.Errorf("told before its time: %s", early)
		}
		time.Sleep(look + 2*time.Millisecond)
		want := "the broker has not answered for 10s: 3 sends to queue://A not confirmed; if it" +
			" lacks room, its log and hopwire explain queue://A say so\n"
		if got := news(); got != want {
			t.Errorf("%q", got)
		}
		if n := told(); n != 0 {
			t.Errorf("%d more lines", n)
		}
		q.answered.Add(1)
		if n := told(); n != 1 {
			t.Errorf("%d lines after one answer", n)
		}
		q.answered.Add(2)
		if n := told(); n != 0 {
			t.Errorf("%d lines when all is answered", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
