package hopwire_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"hopwire"
	"hopwire/client"
)

// A broker for one test: nothing is on disk, nothing on the network.
func ExampleEmbed() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := hopwire.Embed(ctx, "orders", hopwire.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Wait()
	defer b.Stop()

	conn, err := client.Dial(ctx, "tcp://orders", client.WithDialer(b.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	session, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		log.Fatal(err)
	}
	producer, err := session.Producer(ctx, client.Queue("ORDERS"))
	if err != nil {
		log.Fatal(err)
	}
	if err := producer.Send(ctx, client.NewText("two cups")); err != nil {
		log.Fatal(err)
	}
	consumer, err := session.Consumer(ctx, client.Queue("ORDERS"))
	if err != nil {
		log.Fatal(err)
	}
	m, err := consumer.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Text())
	// Output: two cups <nil>
}

// Two brokers of one program, linked as their files would: the shop dials the hub at the port that
// it got.
func ExampleParse() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	quiet := hopwire.Options{Log: slog.New(slog.DiscardHandler), NoControl: true}
	start := func(text string) *hopwire.Broker {
		s, err := hopwire.Parse("activemq.xml", text, quiet)
		if err != nil {
			log.Fatal(err)
		}
		b, err := s.Start(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return b
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
		conn, err := client.Dial(ctx, "tcp://inside", client.WithDialer(b.Dial))
		if err != nil {
			log.Fatal(err)
		}
		session, err := conn.Session(ctx, client.AutoAck)
		if err != nil {
			log.Fatal(err)
		}
		return session
	}
	consumer, err := at(hub).Consumer(ctx, client.Queue("SALES"))
	if err != nil {
		log.Fatal(err)
	}
	producer, err := at(shop).Producer(ctx, client.Queue("SALES"))
	if err != nil {
		log.Fatal(err)
	}
	if err := producer.Send(ctx, client.NewText("sold in the shop")); err != nil {
		log.Fatal(err)
	}
	m, err := consumer.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Text())
	// Output: sold in the shop <nil>
}
