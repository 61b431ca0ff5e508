// Package client is an OpenWire client: it talks to Hopwire and to ActiveMQ 5 and 6.
//
//	conn, err := client.Dial(ctx, "failover:(tcp://a:61616,tcp://b:61616)")
//	session, err := conn.Session(ctx, client.AutoAck)
//	producer, err := session.Producer(ctx, client.Queue("ORDERS"))
//	err = producer.Send(ctx, client.NewText("hello"))
//	consumer, err := session.Consumer(ctx, client.Queue("ORDERS"))
//	message, err := consumer.Receive(ctx)
//
// # What a nil error means
//
// Send of a persistent message outside a transaction returns after the broker has confirmed it.
// Non-persistent messages and those of a transaction are written without asking for a confirmation;
// what goes wrong with them is told to the error handler, or by Commit. SendAsync asks for one and
// calls back.
//
// # Failover
//
// With a failover: address a lost connection is replaced by another one, which gets the sessions,
// producers, consumers, temporary destinations and open transactions of the old one, and every
// request that waits for an answer, under its old command id so that the broker knows a repeated
// message. Calls wait meanwhile as long as their context, or the option timeout, allows. Messages
// that were delivered and not acknowledged come again: one that the program acknowledged in the
// meantime is recognised by its id and acknowledged without being shown twice; one that it still
// holds is taken over, so that its acknowledgement counts. A commit whose answer was lost
// returns ErrInDoubt: it may have taken place. A transaction whose received messages
// did not come again is rolled back with ErrRolledBack.
//
// # Redelivery and lost links
//
// Redelivery.Maximum is compared with what the broker counts, as ActiveMQ's JMS client does: not
// calls of a handler but deliveries that ended without an acknowledgement, of which a lost link is
// one for every message that was sent ahead, shown to the program or not. A handler that fails
// while links are lost again and again so has fewer tries than Maximum. A small prefetch
// (WithPrefetchSize) lets a lost link count for fewer messages, and Maximum -1 counts nothing.
//
// # Slow consumers
//
// A broker with a slowConsumerStrategy ends consumers that it finds slow. Receive returns
// ErrSlowConsumer then; of a consumer with a handler the error handler is told. What it had goes to
// others, that which the program has seen as redelivered. In a transacted session the Commit
// of what it had received rolls back and returns ErrRolledBack. Another consumer can be made at
// once, of the same durable subscription, too.
//
// # Concurrency
//
// All methods of Conn, Session, Producer, Consumer, Browser and Requester may be called from
// several goroutines. A Message belongs to one goroutine at a time. Functions given to the package
// (handlers, confirmations) may call it; Session.Close and Conn.Close, which wait for message
// handlers, return ErrOwnHandler to them.
package client

// It has a little over 4,000 lines: connection, sessions and failover are one state under one lock,
// which a split would have to export.
