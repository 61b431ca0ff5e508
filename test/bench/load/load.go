package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options describe a load.
type Options struct {
	ProducerAddr string // host:port
	ConsumerAddr string // ProducerAddr by default
	Dest         string // with its scheme, queue:// or topic://
	Producers    int    // 1 by default
	Consumers    int    // 1 by default
	Size         int    // of a body in bytes, 1024 by default, at least 8
	Persistent   bool
	Window       int     // confirmed sends, so many open at most; 0 asks for no confirmation
	Rate         float64 // messages a second of all producers together; 0 as fast as it goes
	InFlight     int     // at most so many sent and not yet received; 0 for no limit
	AckBatch     int     // messages an acknowledgement, 1 by default
	Prefetch     int     // 1000 by default

	Warm    time.Duration // before measuring
	Measure time.Duration
	PIDs    []int // the broker processes whose CPU is counted
}

func (o Options) withDefaults() Options {
	if o.ConsumerAddr == "" {
		o.ConsumerAddr = o.ProducerAddr
	}
	o.Producers = max(1, o.Producers)
	o.Consumers = max(1, o.Consumers)
	o.AckBatch = max(1, o.AckBatch)
	if o.Size == 0 {
		o.Size = 1024
	}
	if o.Prefetch == 0 {
		o.Prefetch = 1000
	}
	return o
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.ProducerAddr == "":
		return errors.New("load: ProducerAddr is empty; give host:port")
	case !strings.HasPrefix(o.Dest, "queue://") && !strings.HasPrefix(o.Dest, "topic://"):
		return fmt.Errorf("load: Dest %q; begin it with queue:// or topic://", o.Dest)
	case o.Size != 0 && o.Size < 8:
		return fmt.Errorf("load: Size %d; a body holds a stamp of 8 bytes", o.Size)
	}
	return nil
}

// fan is how many consumers get each message.
func (o Options) fan() int64 {
	if strings.HasPrefix(o.Dest, "topic://") {
		return int64(o.Consumers)
	}
	return 1
}

// Result is what a load measured.
type Result struct {
	Sent, Received float64         // messages a second
	BrokerCPU      []time.Duration // per message received, for each of Options.PIDs
	ClientCPU      time.Duration   // per message received
	P50, P99, Max  time.Duration   // from scheduled send to receipt
}

// run is a load under way.
type run struct {
	o         Options
	sent, got atomic.Int64
	stopped   atomic.Bool
	measuring atomic.Bool
	conns     []*conn
	hists     []*hist
	producers sync.WaitGroup
	others    sync.WaitGroup

	mu  sync.Mutex
	err error
}

// failed keeps the first error of a client, unless the run is over.
func (r *run) failed(err error) {
	if r.stopped.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Run puts a load on a broker: it warms up, measures, and then empties the destination, so that the
// next run starts clean.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	r := &run{o: o.withDefaults()}
	defer r.close()
	if err := r.open(r.o.Consumers, r.o.Producers); err != nil {
		return Result{}, err
	}
	for i := range r.o.Producers {
		r.produce(r.conns[r.o.Consumers+i], i, -1)
	}
	if err := r.pause(ctx, r.o.Warm); err != nil {
		return Result{}, err
	}
	begun := r.snapshot()
	r.measuring.Store(true)
	if err := r.pause(ctx, r.o.Measure); err != nil {
		return Result{}, err
	}
	r.measuring.Store(false)
	ended := r.snapshot()
	r.stopProducers()
	if err := r.drain(ctx); err != nil {
		return Result{}, err
	}
	r.close()
	result := ended.since(begun)
	all := &hist{}
	for _, h := range r.hists {
		all.merge(h)
	}
	result.P50, result.P99 = all.quantile(.5), all.quantile(.99)
	result.Max = time.Duration(all.most) * time.Microsecond
	return result, r.failure()
}

// Fill sends count messages and returns how long it took until the broker had taken the last.
func Fill(ctx context.Context, o Options, count int) (time.Duration, error) {
	if err := o.Validate(); err != nil {
		return 0, err
	}
	r := &run{o: o.withDefaults()}
	r.o.InFlight, r.o.Producers = 0, 1
	defer r.close()
	if err := r.open(0, 1); err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, r.close)()
	start := time.Now()
	r.produce(r.conns[0], 0, count)
	r.producers.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return time.Since(start), r.failure()
}

// Drain receives count messages and returns how long the first and the last of them took.
func Drain(ctx context.Context, o Options, count int) (first, last time.Duration, err error) {
	if err := o.Validate(); err != nil {
		return 0, 0, err
	}
	r := &run{o: o.withDefaults()}
	defer r.close()
	start := time.Now()
	if err := r.open(r.o.Consumers, 0); err != nil {
		return 0, 0, err
	}
	for r.got.Load() < int64(count) {
		if first == 0 && r.got.Load() > 0 {
			first = time.Since(start)
		}
		if err := r.pause(ctx, time.Millisecond); err != nil {
			return first, 0, err
		}
	}
	return first, time.Since(start), r.failure()
}

// open makes the connections and starts the consumers.
func (r *run) open(consumers, producers int) error {
	for i := range consumers + producers {
		addr := r.o.ConsumerAddr
		if i >= consumers {
			addr = r.o.ProducerAddr
		}
		c, err := dial(addr, r.o.Dest)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
		if i < consumers {
			if err := r.consume(c); err != nil {
				return err
			}
		} else if err := c.ask(c.producerInfo()); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, unless the load fails or is called off.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return r.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *run) stopProducers() {
	r.stopped.Store(true)
	r.producers.Wait()
}

// drain waits until nothing more arrives.
func (r *run) drain(ctx context.Context) error {
	for last := int64(-1); last != r.got.Load() && r.got.Load() < r.sent.Load()*r.o.fan(); {
		last = r.got.Load()
		if err := r.pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) close() {
	r.stopped.Store(true)
	for _, c := range r.conns {
		c.socket.Close()
	}
	r.producers.Wait()
	r.others.Wait()
}

// snapshot is the counters of a moment.
type snapshot struct {
	at        time.Time
	sent, got int64
	client    time.Duration
	brokers   []time.Duration
}

func (r *run) snapshot() snapshot {
	s := snapshot{time.Now(), r.sent.Load(), r.got.Load(), CPU(os.Getpid()), nil}
	for _, pid := range r.o.PIDs {
		s.brokers = append(s.brokers, CPU(pid))
	}
	return s
}

func (s snapshot) since(begun snapshot) Result {
	seconds := s.at.Sub(begun.at).Seconds()
	got := s.got - begun.got
	result := Result{
		Sent: float64(s.sent-begun.sent) / seconds, Received: float64(got) / seconds,
		ClientCPU: (s.client - begun.client) / time.Duration(max(1, got)),
	}
	for i, used := range s.brokers {
		result.BrokerCPU = append(result.BrokerCPU, (used-begun.brokers[i])/time.Duration(max(1, got)))
	}
	return result
}
