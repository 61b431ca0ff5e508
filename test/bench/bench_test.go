package bench

import (
	"flag"
	"strings"
	"testing"
	"time"

	"hopwire/test/bench/load"
	"hopwire/test/interop/broker"
)

var (
	warm    = flag.Duration("warm", time.Second, "how long a case runs before it is measured")
	measure = flag.Duration("measure", 2*time.Second, "how long a case is measured")
	count   = flag.Int("count-backlog", 200_000, "messages of a backlog")
)

// workload is one case; its options lack addresses, a destination and processes.
type workload struct {
	name  string
	topic bool
	load.Options
}

var core = []workload{
	{"np-queue-1-1", false, load.Options{InFlight: 5000}},
	{"pers-async-1-1", false, load.Options{InFlight: 5000, Persistent: true}},
	{"pers-sync-1-1", false, load.Options{Persistent: true, Window: 1}},
	{"pers-window100-1-1", false, load.Options{Persistent: true, Window: 100, InFlight: 5000}},
	{"np-topic-1-10", true, load.Options{Consumers: 10, InFlight: 500}},
	{"np-rate2000", false, load.Options{Rate: 2000}},
}

var hop = []workload{
	{"np-rate1000", false, load.Options{Rate: 1000}},
	{"np-max", false, load.Options{InFlight: 5000}},
	{"pers-max", false, load.Options{InFlight: 5000, Persistent: true}},
	{"np-topic-max", true, load.Options{InFlight: 500}},
}

// limited is the policy of the shipped configuration.
const limited = `<policyEntry topic="&gt;"><pendingMessageLimitStrategy>` +
	`<constantPendingMessageLimitStrategy limit="1000"/></pendingMessageLimitStrategy></policyEntry>`

// side is one kind of broker under load: where messages go in and where they come out.
type side struct {
	kind    broker.Kind
	in, out *broker.Broker
}

// BenchmarkCore is one broker.
func BenchmarkCore(b *testing.B) {
	var sides []side
	for _, k := range kinds() {
		one := broker.Start(b, k, options("one"))
		sides = append(sides, side{k, one, one})
	}
	compare(b, sides, core)
}

// BenchmarkHop is two brokers, the first with a bridge to the second.
func BenchmarkHop(b *testing.B) {
	var sides []side
	for _, k := range kinds() {
		far := broker.Start(b, k, options("far"))
		o := options("near")
		o.Connectors = []broker.Connector{{Name: "hop", URI: broker.Static(far)}}
		sides = append(sides, side{k, broker.Start(b, k, o), far})
	}
	compare(b, sides, hop)
}

func kinds() []broker.Kind {
	all := []broker.Kind{broker.ActiveMQ}
	if broker.Has(broker.Hopwire) {
		all = append(all, broker.Hopwire)
	}
	return all
}

func options(name string) broker.Options {
	return broker.Options{Name: name, Persistent: true, Bench: true, Policy: limited}
}

// compare runs each workload on every side in turn, after a run that warms them up: the first
// seconds of a fresh JVM cost two to three times the CPU.
func compare(b *testing.B, sides []side, workloads []workload) {
	b.Helper()
	for _, s := range sides {
		for _, w := range workloads {
			if _, err := load.Run(b.Context(), s.options(w, *warm)); err != nil {
				b.Fatalf("%s, warming up %s: %v", s.kind, w.name, err)
			}
		}
	}
	for _, w := range workloads {
		for _, s := range sides {
			b.Run("case="+w.name+"/broker="+s.kind.String(), func(b *testing.B) {
				for range b.N {
					r, err := load.Run(b.Context(), s.options(w, *measure))
					if err != nil {
						b.Fatal(err)
					}
					report(b, r)
				}
			})
		}
	}
}

func (s side) options(w workload, measured time.Duration) load.Options {
	o := w.Options
	o.ProducerAddr, o.ConsumerAddr = s.in.Addr(), s.out.Addr()
	o.Dest = "queue://bench." + w.name
	if w.topic {
		o.Dest = strings.Replace(o.Dest, "queue", "topic", 1)
	}
	o.Warm, o.Measure = *warm, measured
	o.PIDs = []int{s.in.PID()}
	if s.in != s.out {
		o.PIDs = append(o.PIDs, s.out.PID())
	}
	return o
}

func report(b *testing.B, r load.Result) {
	b.Helper()
	var cpu time.Duration
	for _, each := range r.BrokerCPU {
		cpu += each
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.Received, "msg/s")
	b.ReportMetric(micros(cpu), "brokerµs/msg")
	b.ReportMetric(micros(r.ClientCPU), "clientµs/msg")
	b.ReportMetric(micros(r.P50), "p50-µs")
	b.ReportMetric(micros(r.P99), "p99-µs")
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// BenchmarkBacklog fills a queue, stops and restarts the broker with it, and drains it.
func BenchmarkBacklog(b *testing.B) {
	for _, k := range kinds() {
		b.Run("broker="+k.String(), func(b *testing.B) {
			one := broker.Start(b, k, options("one"))
			for range b.N {
				backlog(b, one)
			}
		})
	}
}

func backlog(b *testing.B, one *broker.Broker) {
	b.Helper()
	o := load.Options{
		ProducerAddr: one.Addr(), Dest: "queue://bench.backlog", Persistent: true,
		Warm: *warm, Measure: *measure, PIDs: []int{one.PID()},
	}
	filled, err := load.Fill(b.Context(), o, *count)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(*count)/filled.Seconds(), "fill-msg/s")
	b.ReportMetric(float64(load.Memory(one.PID()))/(1<<20), "filled-MiB")

	other := o
	other.Dest, other.Persistent, other.InFlight = "queue://bench.other", false, 5000
	r, err := load.Run(b.Context(), other)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(r.Received, "other-msg/s")

	start := time.Now()
	one.Stop()
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "stop-ms")
	start = time.Now()
	one.Restart()
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "restart-ms")

	first, last, err := load.Drain(b.Context(), o, *count)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
	b.ReportMetric(float64(*count)/last.Seconds(), "drain-msg/s")
	b.ReportMetric(0, "ns/op")
}

func TestALoadMovesMessagesAndCountsThem(t *testing.T) {
	one := broker.Start(t, broker.ActiveMQ, broker.Options{Persistent: true})
	s := side{broker.ActiveMQ, one, one}
	for _, w := range core {
		o := s.options(w, 300*time.Millisecond)
		o.Warm = 100 * time.Millisecond
		r, err := load.Run(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		if r.Received < 10 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 {
			t.Errorf("%s: %+v", w.name, r)
		}
	}
	o := load.Options{ProducerAddr: one.Addr(), Dest: "queue://filled", Persistent: true}
	if _, err := load.Fill(t.Context(), o, 1000); err != nil {
		t.Fatal(err)
	}
	if got := one.Queue("filled"); got.Size != 1000 {
		t.Errorf("filled with 1000: %+v", got)
	}
	if _, _, err := load.Drain(t.Context(), o, 1000); err != nil {
		t.Fatal(err)
	}
	one.WaitDrained("filled", 1000, 10*time.Second)
}
