// Package network holds the network scripts: what a network of brokers does, written so that
// people can read it, with the transcript inside. They are the reference for behaviour. A file is
// one rule and has the number of its scenario: n001.txt is N001 of the catalogue (claims about
// networks of brokers), b026.txt is B026 (what people reported). Where a catalogue's text and the
// design of Hopwire differ, the design holds, and the file's comment says so. From n900 on are
// rules of our own, which are in no catalogue.
//
// Everything runs in the simulated world of package sim: the brokers and bridges are the real
// ones, time and connections are not. A script of an hour takes milliseconds, and always gives the
// same transcript. "go test ./test/network -rewrite" writes the transcripts anew; read the
// difference before you believe it.
//
// # The language
//
// A block is some commands, a line of four dashes, and what they print. Blocks are separated by an
// empty line; "#" begins a comment. Most commands print nothing. Messages are named m0, m1 … in
// the order in which the script sends them; "m0-m8/2" is m0 m2 m4 m6 m8. Destinations are queues
// unless they begin with topic://.
//
// Brokers and links:
//
//	broker a [activemq] [volatile] [advisories=false] [replay] [delay=3s] [selectorAware]
//	         [audit=false] [rate=100] [per=1s] [memory=200000] [memory=Q2:200000] [spool]
//	         [gc=60s] [gcNetworks]
//	         [rights=(net:rw:OPEN.>,net:r:topic://ActiveMQ.Advisory.>)]
//	    starts a broker; the options are those of a policy for all its destinations, activemq makes
//	    it behave toward its peers as if it were no Hopwire broker; gc removes destinations that
//	    nobody uses for that time, with gcNetworks those that bridges alone consume; with rights a
//	    user named there may read, write and administer no more than they say (a connector's users
//	    are its userName at home and its remoteUserName at the peer)
//	link a->b [name=nc] [conduit=false] [decrease=true] [dynamic=(x,y)] [static=(x)] …
//	    a connector on a; the options are the attributes of networkConnector, some have short names
//	link a=b …
//	    a duplex connector on a
//	grant b net:w:SECRET.>
//	    one right more, from the broker's next start
//	crash a · restart a · stop a · start a
//	    crash loses what the disk had not synced; restart is crash and start
//	disk a full · disk a free · disk a slow=50ms
//	cut a-b [noticed=30s] · heal a-b · clog a->b · stall a->b [for=1s]
//	    cut loses what is on its way, and each side notices within the time (at once without one);
//	    clog holds back one direction until heal; stall the connection that a made to b, for a while
//
// Applications:
//
//	sub b q.orders as CB1 [prefetch=1] [selector=(color='red')] [ack=client|manual|individual]
//	    [durable=name] [batch=10] [work=20ms] [max=5] [reply]
//	    a consumer with a connection of its own; with max the application stops after so many
//	    messages and keeps what it was sent beyond that until it is closed; with reply it answers
//	    requests
//	ask a q.requests as CA [n=3] [volatile]
//	    sends requests; what got tells of the application are the answers, which have names, too
//	close CB1 · kill CB1 · ack CB1 [n=5]
//	send a q.orders [n=30] [every=10ms] [volatile] [type=x] [color=red]
//	    sends persistent messages, type is their JMSType, and waits for no confirmation before the
//	    next; what is not known as an option becomes a property
//
// Time and questions:
//
//	run 3s
//	got CA CB1      what applications got, in order
//	count · redelivered · ordered · rate [per=1s]   the same, shorter; without names: of all
//	unique · longest   how many different messages all got, and over how many brokers at most
//	state a q.orders
//	browse a q.orders
//	explain a q.orders
//	links           all connectors and what they carried
//	spooled a       how many messages went to its spool
//	captured a->b [ConsumerInfo]   commands that crossed since the link began
package network
