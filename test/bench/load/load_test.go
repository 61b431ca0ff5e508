package load

import (
	"context"
	"testing"
	"time"
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
	n := names{connection: "ID:c", dest: "queue://q"}
	message := n.message(100, true)
	message.next(nil, 7, 12345, false)
	b := begin(typeDispatch, 1, false)
	b = n.putDest(n.putID(b, typeConsumerID))
	whole := append(append(b, 1), message.frame[4:]...)[4:]
	id, stamp, err := scanDispatch(whole)
	if err != nil || stamp != 12345 || len(id) == 0 {
		t.Fatalf("id %q, stamp %d, %v", id, stamp, err)
	}
	body := len(whole) - len(message.frame) + message.body
	for cut := range body - 4 {
		if _, _, err := scanDispatch(whole[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were taken for whole", cut, len(whole))
		}
	}
}
