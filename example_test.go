package hopwire_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"hopwire"
	"hopwire/client"
)

// must gives what a call gave, and ends the program with its error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A broker for one test: nothing is on disk, nothing on the network.
func ExampleEmbed() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b := must(hopwire.Embed(ctx, "orders", hopwire.Options{Log: slog.New(slog.DiscardHandler)}))
	defer b.Wait()
	defer b.Stop()

	conn := must(client.Dial(ctx, "tcp://orders", client.WithDialer(b.Dial)))
	defer conn.Close(ctx)
	session := must(conn.Session(ctx, client.AutoAck))
	producer := must(session.Producer(ctx, client.Queue("ORDERS")))
	if err := producer.Send(ctx, client.NewText("two cups")); err != nil {
		panic(err)
	}
	consumer := must(session.Consumer(ctx, client.Queue("ORDERS")))
	fmt.Println(must(must(consumer.Receive(ctx)).Text()))
	// Output: two cups
}

// Two brokers of one program, linked as their files would: the shop dials the hub at the port that
// it got.
func ExampleParse() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	quiet := hopwire.Options{Log: slog.New(slog.DiscardHandler), NoControl: true}
	start := func(text string) *hopwire.Broker {
		return must(must(hopwire.Parse("activemq.xml", text, quiet)).Start(ctx))
	}
	hub := start(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="hub"
			persistent="false">
		<transportConnectors><transportConnector uri="tcp://127.0.0.1:0"/></transportConnectors>
	</broker>`)
	defer hub.Wait()
	defer hub.Stop()
	shop := start(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName="shop"
			persistent="false">
		<networkConnectors><networkConnector uri="static:(` + hub.URL() + `)"/></networkConnectors>
	</broker>`)
	defer shop.Wait()
	defer shop.Stop()

	at := func(b *hopwire.Broker) *client.Session {
		conn := must(client.Dial(ctx, "tcp://inside", client.WithDialer(b.Dial)))
		return must(conn.Session(ctx, client.AutoAck))
	}
	consumer := must(at(hub).Consumer(ctx, client.Queue("SALES")))
	producer := must(at(shop).Producer(ctx, client.Queue("SALES")))
	if err := producer.Send(ctx, client.NewText("sold in the shop")); err != nil {
		panic(err)
	}
	fmt.Println(must(must(consumer.Receive(ctx)).Text()))
	// Output: sold in the shop
}
