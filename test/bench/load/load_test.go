package load

import (
	"context"
	"testing"
	"time"

	"hopwire/openwire"
)

func TestAQuantileIsAtMostASixteenthOff(t *testing.T) {
	h := &hist{}
	for us := range 100000 {
		h.add(time.Duration(us+1) * time.Microsecond)
	}
	for _, q := range []float64{0.0001, 0.01, 0.5, 0.99, 1} {
		want := q * 100000
		got := float64(h.quantile(q).Microseconds())
		if got > want || got < want*15/16-1 {
			t.Errorf("quantile %v is %v µs, want %v less at most a sixteenth", q, got, want)
		}
	}
	if (&hist{}).quantile(.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}

func TestOptionsThatCannotBeRunAreRefused(t *testing.T) {
	good := Options{ProducerAddr: "127.0.0.1:1", Dest: "queue://q"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no address": func(o *Options) { o.ProducerAddr = "" },
		"no scheme":  func(o *Options) { o.Dest = "q" },
		"no room":    func(o *Options) { o.Size = 7 },
	} {
		o := good
		change(&o)
		if _, err := Run(context.Background(), o); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

func TestADispatchThatEndsEarlyIsAnError(t *testing.T) {
	n := newNames("ID:c", destination("queue://q"))
	n.prepare(100, true)
	if _, err := n.next(nil, 7, 12345, false); err != nil {
		t.Fatal(err)
	}
	frame, err := openwire.NewEncoder(format).Append(nil, &openwire.MessageDispatch{
		ConsumerID: n.consumer, Destination: n.dest, Message: &n.message})
	if err != nil {
		t.Fatal(err)
	}
	whole := frame[4:]
	d, err := n.dispatches()
	if err != nil {
		t.Fatal(err)
	}
	id, stamp, err := d.read(whole)
	if err != nil || stamp != 12345 || id == nil || id.ProducerSequenceID != 7 {
		t.Fatalf("id %v, stamp %d, %v", id, stamp, err)
	}
	for cut := range len(whole) - 1 {
		if _, _, err := d.read(whole[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were taken for whole", cut, len(whole))
		}
	}
}
