package interop

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/proxy"
)

func TestN061CutsOfTheLinkNeitherLoseNorDouble(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		const queue, batch, cuts, patience = "Q.CUT", 200, 3, 30 * time.Second
		b := broker.Start(t, p.b, broker.Options{Name: "b"})
		link := proxy.Start(t, b.Addr())
		a := broker.Start(t, p.a, broker.Options{Name: "a", Connectors: []broker.Connector{{
			Name: "ab",
			URI:  "static:(" + link.URL() + ")?initialReconnectDelay=200&maxReconnectDelay=200",
		}}})
		d := jms.Start(t, jms.V5)
		c := d.Connect(b.URL()).Consumer("queue://" + queue)
		a.WaitConsumers(queue, 1, patience)
		s := d.Connect(a.URL()).Session(jms.Auto)
		for i := range cuts + 1 {
			if i < cuts {
				link.CutAfterBytes(proxy.Up, 20_000) // a third of the batch, within a frame
			}
			s.Send(jms.SendOptions{Dest: "queue://" + queue, From: i * batch, N: batch, Body: "{}"})
			if i < cuts {
				a.WaitConsumers(queue, 0, patience)
				link.Heal()
				a.WaitConsumers(queue, 1, patience)
			}
		}
		const n = batch * (cuts + 1)
		c.Wait(n, patience)
		a.WaitDrained(queue, n, patience)
		got := jms.Bodies(c.Received())
		slices.SortFunc(got, func(x, y string) int { return number(t, x) - number(t, y) })
		if unique := slices.Compact(slices.Clone(got)); len(got) != n || len(unique) != n {
			t.Errorf("%d messages, %d of them unique; want %d", len(got), len(unique), n)
		}
		if link.Connections() < cuts+1 {
			t.Errorf("%d connections with %d cuts", link.Connections(), cuts)
		}
	})
}

func TestN138ABridgeComesBackWithItsPeer(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		const queue, patience = "Q.BACK", 30 * time.Second
		b := broker.Start(t, p.b, broker.Options{Name: "b"})
		a := broker.Start(t, p.a, broker.Options{Name: "a", Connectors: []broker.Connector{{
			Name: "ab", URI: broker.Static(b) + "?initialReconnectDelay=1000&maxReconnectDelay=1000",
		}}})
		d := jms.Start(t, jms.V5)
		d.Connect(b.URL()).Consumer("queue://" + queue)
		a.WaitConsumers(queue, 1, patience)
		b.Kill9()
		a.WaitConsumers(queue, 0, 10*time.Second)
		b.Restart()
		c := d.Connect(b.URL()).Consumer("queue://" + queue)
		a.WaitConsumers(queue, 1, patience)
		d.Connect(a.URL()).Send("queue://"+queue, 10, "m{}")
		c.Wait(10, patience)
	})
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
