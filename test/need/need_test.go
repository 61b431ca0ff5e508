package need

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB that remembers how it ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func ask(need func(testing.TB)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		need(r)
	}()
	<-done
	return r
}

func TestWhatIsMissingIsSkippedByNameAndFailsInCI(t *testing.T) {
	tests := []struct {
		name  string
		need  func(testing.TB)
		spoil func(t *testing.T)
	}{
		{"Java", Java, func(t *testing.T) { t.Setenv("PATH", t.TempDir()) }},
		{"ActiveMQ", func(t testing.TB) { ActiveMQ(t) }, func(t *testing.T) {
			skipWithoutJava(t)
			t.Setenv("ACTIVEMQ_HOME", t.TempDir())
		}},
		{"JMS6", func(t testing.TB) { JMS6(t) }, noCache},
		{"ActiveMQ6", func(t testing.TB) { ActiveMQ6(t) }, noCache},
		{"Joram", func(t testing.TB) { Joram(t) }, noCache},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spoil(t)
			t.Setenv("CI", "")
			r := ask(tt.need)
			if !strings.Contains(r.skipped, "need."+tt.name) || r.failed != "" {
				t.Errorf("without CI: skipped %q, failed %q; want a skip that names %s",
					r.skipped, r.failed, tt.name)
			}
			t.Setenv("CI", "true")
			r = ask(tt.need)
			if !strings.Contains(r.failed, "need."+tt.name) || r.skipped != "" {
				t.Errorf("with CI=true: skipped %q, failed %q; want a failure that names %s",
					r.skipped, r.failed, tt.name)
			}
		})
	}
}

func TestSourcesAreSkippedInCITooButNotWhereTheyShouldBe(t *testing.T) {
	t.Setenv("CI", "true")
	t.Setenv("ACTIVEMQ_SOURCES", "")
	sources := func(t testing.TB) { Sources(t) }
	if r := ask(sources); !strings.Contains(r.skipped, "need.Sources") || r.failed != "" {
		t.Errorf("without a checkout: skipped %q, failed %q", r.skipped, r.failed)
	}
	t.Setenv("ACTIVEMQ_SOURCES", t.TempDir())
	if r := ask(sources); !strings.Contains(r.failed, "need.Sources") || r.skipped != "" {
		t.Errorf("with an empty folder: skipped %q, failed %q", r.skipped, r.failed)
	}
}

// noCache takes away what scripts/deps.sh fetched.
func noCache(t *testing.T) {
	t.Helper()
	skipWithoutJava(t)
	t.Setenv("HOPWIRE_CACHE", t.TempDir())
}

func skipWithoutJava(t *testing.T) {
	t.Helper()
	if r := ask(Java); r.skipped+r.failed != "" {
		t.Skip("this case needs Java to get as far")
	}
}
