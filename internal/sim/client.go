package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// Client is a JMS-like application: one connection at a time, to one broker, with consumers and a
// producer.
type Client struct {
	w    *World
	name string

	node  *Node // whom it is connected to, nil for none
	end   *end
	conns int
	id    message.ConnectionID

	commands  int32
	answers   map[int32]func(error) // by command id
	consumers map[message.ConsumerID]*Consumer
	order     []*Consumer
	numbers   int64
	sequence  int64
	tx        *clientTx
	prepared  []message.TransactionID // as recovery told last
	onDown    func()
	steady    bool     // every connection has the same client id
	unsure    []unsure // sent, wants an answer and has none
	failover  bool     // it comes back by Reconnect
	// Refusals are the errors that the broker reported without being asked.
	Refusals []string
}

// Client makes an application that is not connected yet.
func (w *World) Client(name string) *Client { return &Client{w: w, name: name} }

// Name gives the client's name.
func (c *Client) Name() string { return c.name }

// Node gives the broker that the client is connected to, nil for none.
func (c *Client) Node() *Node { return c.node }

// OnDown sets what happens when the connection ends without the client having closed it.
func (c *Client) OnDown(f func()) { c.onDown = f }

// Connect opens a connection; it reports false when the broker is down. A client that is connected
// already closes that connection first.
func (c *Client) Connect(n *Node) bool {
	if c.node != nil {
		c.Close()
	}
	if n.life == nil || n.stopping {
		return false
	}
	c.conns++
	c.id = message.ConnectionID(fmt.Sprintf("ID:%s-%d", c.name, c.conns))
	c.sequence, c.unsure = 0, nil
	c.open(n, false)
	return true
}

// unsure is a send without an answer yet.
type unsure struct {
	m      *message.Message
	fate   *Fate
	answer func(error)
}

// Reconnect is Connect as failover does it: under the same ids, and what had no answer is sent
// again. A client that fails over opens its first connection so, too.
func (c *Client) Reconnect(n *Node) bool {
	c.failover = true
	if c.conns == 0 || c.node != nil {
		return c.Connect(n)
	}
	if n.life == nil || n.stopping {
		return false
	}
	c.open(n, true)
	again := c.unsure
	c.unsure = nil
	for _, u := range again {
		u.fate.Resent = true
		c.submit(u)
	}
	return true
}

func (c *Client) open(n *Node, again bool) {
	c.node = n
	c.answers = map[int32]func(error){}
	c.consumers, c.order = map[message.ConsumerID]*Consumer{}, nil
	c.tx = nil
	s := c.w.cable("client "+c.name, n.cfg.Name).connect("client "+c.name, n.cfg.Name)
	c.end = s.ends[0]
	c.end.does, c.end.recv, c.end.down = map[int32]func(*life){}, c.receive, c.lost
	n.life.accept(s.ends[1], broker.Remote{Connector: "openwire"}, 0)
	c.w.trace("%s: connects to %s", c.name, n.cfg.Name)
	c.send(&message.ConnectionInfo{ID: c.id, ClientID: c.clientID(),
		FaultTolerant: c.failover, FailoverReconnect: again})
	c.send(&message.SessionInfo{ID: message.SessionID{Connection: c.id, Value: 1}})
	c.send(&message.ProducerInfo{ID: c.producer()})
}

// Steady has all connections of the client use one client id, as one with durable subscriptions.
func (c *Client) Steady() *Client {
	c.steady = true
	return c
}

func (c *Client) clientID() string {
	if c.steady {
		return c.name
	}
	return fmt.Sprintf("%s-%d", c.name, c.conns)
}

// Temp makes a temporary queue of the client's connection.
func (c *Client) Temp() message.Destination {
	c.numbers++
	d := message.Destination{Kind: message.TempQueue, Name: fmt.Sprintf("%s:%d", c.id, c.numbers)}
	c.send(&message.DestinationInfo{Connection: c.id, Destination: d, Op: message.AddDestination})
	return d
}

func (c *Client) producer() message.ProducerID {
	return message.ProducerID{Connection: c.id, Session: 1, Value: 1}
}

func (c *Client) send(cmd message.Command) int32 {
	c.commands++
	cmd.Head().CommandID = c.commands
	c.end.send(cmd)
	return c.commands
}

// ask sends a command that wants an answer.
func (c *Client) ask(cmd message.Command, answer func(error)) int32 {
	cmd.Head().ResponseRequired = true
	id := c.send(cmd)
	c.answers[id] = answer
	return id
}

func (c *Client) receive(cmd message.Command) {
	switch cmd := cmd.(type) {
	case *message.MessageDispatch:
		if s := c.consumers[cmd.Consumer]; s != nil {
			s.took(cmd)
		}
	case *message.Response:
		if cmd.Shape == message.DataArrayResponse {
			c.prepared = cmd.Array
		}
		f := c.answers[cmd.Correlation]
		delete(c.answers, cmd.Correlation)
		if f == nil {
			return
		}
		if cmd.Exception != nil {
			f(cmd.Exception)
			return
		}
		f(nil)
	case *message.ConnectionError:
		c.Refusals = append(c.Refusals, cmd.Exception.Error())
		if c.node.stopping {
			return
		}
		c.w.note("%s: %s reports %s: %s", c.name, c.node.cfg.Name, cmd.Exception.Class,
			cmd.Exception.Message)
	}
}

// lost hears that the connection is gone.
func (c *Client) lost(error) {
	c.w.trace("%s: lost its connection", c.name)
	c.forget()
	if c.onDown != nil {
		c.onDown()
	}
}

func (c *Client) forget() {
	for _, s := range c.order {
		s.closed = true
	}
	if m := c.w.manager; m != nil {
		m.lost(c)
	}
	c.node, c.end = nil, nil
	c.answers = nil
	c.consumers, c.order, c.tx = nil, nil, nil
}

// Close closes the connection as an application does.
func (c *Client) Close() {
	if c.node == nil {
		return
	}
	c.w.trace("%s: closes its connection to %s", c.name, c.node.cfg.Name)
	for _, s := range append([]*Consumer(nil), c.order...) {
		s.Close()
	}
	c.send(&message.RemoveInfo{Object: c.id, LastDelivered: message.LastDeliveredUnknown})
	c.send(&message.ShutdownInfo{})
	c.end.close()
	c.forget()
}

// Crash ends the application: what it sent last may be lost, and the broker notices within detect.
func (c *Client) Crash(detect time.Duration) {
	if c.node == nil {
		return
	}
	c.w.trace("%s: crashes", c.name)
	e := c.end
	e.socket.sever(detect)
	e.closed = true
	c.forget()
}

// Mail says what a message is like.
type Mail struct {
	To         message.Destination
	ReplyTo    message.Destination // none if zero
	Volatile   bool                // not persistent
	Properties []byte
	Body       []byte
	Expiration int64 // ms since the epoch
	Priority   uint8
	Group      string
	Type       string // JMSType
	Number     int32  // in the group
}

var errNotConnected = errors.New("not connected")

// Send sends a message. answer, which may be nil for a message nobody waits for, hears whether the
// broker has it; it is not called when the connection ends before. The id is the message's.
func (c *Client) Send(m Mail, answer func(error)) message.MessageID {
	if c.node == nil {
		if answer != nil {
			answer(errNotConnected)
		}
		return message.MessageID{}
	}
	c.sequence++
	msg := &message.Message{
		ID:          message.MessageID{Producer: c.producer(), Sequence: c.sequence},
		Producer:    c.producer(),
		Destination: m.To, Persistent: !m.Volatile, Priority: 4, Body: message.TextBody,
		Timestamp: epoch + c.w.now.Milliseconds(), Expiration: m.Expiration,
		Content: m.Body, Properties: m.Properties, GroupID: m.Group,
		GroupSequence: m.Number, ReplyTo: m.ReplyTo, Type: m.Type,
	}
	if m.Priority > 0 {
		msg.Priority = m.Priority
	}
	fate := c.w.ledger.sent(msg, c.node)
	if c.tx != nil {
		msg.Transaction = c.tx.id
		c.tx.sends = append(c.tx.sends, fate)
		c.send(msg)
		return msg.ID
	}
	if answer == nil {
		c.send(msg)
		return msg.ID
	}
	c.submit(unsure{msg, fate, answer})
	return msg.ID
}

// submit sends a message and waits for the answer.
func (c *Client) submit(u unsure) {
	c.unsure = append(c.unsure, u)
	c.ask(u.m, func(err error) {
		c.unsure = slices.DeleteFunc(c.unsure, func(x unsure) bool { return x.m == u.m })
		if err == nil {
			c.w.ledger.confirmed(u.fate)
		} else {
			u.fate.Refused = true
		}
		u.answer(err)
	})
}

// clientTx is an open transaction: what it sent and what it acknowledged.
type clientTx struct {
	id    message.TransactionID
	sends []*Fate
	acks  []*Delivery
}

// Begin opens a transaction for all that follows.
func (c *Client) Begin() {
	if c.node == nil || c.tx != nil {
		return
	}
	c.numbers++
	c.tx = &clientTx{id: message.TransactionID{Connection: c.id, Value: c.numbers}}
	if m := c.w.manager; m != nil {
		c.tx.id = message.TransactionID{XA: true, FormatID: 1,
			Global: fmt.Sprintf("%s/%d/%d", c.id, c.commands, c.numbers)}
		m.busy[c.tx.id] = c
	}
	c.send(&message.TransactionInfo{Connection: c.id, ID: c.tx.id, Type: message.Begin})
}

// Commit ends the transaction; answer hears whether it took effect.
func (c *Client) Commit(answer func(error)) {
	tx := c.tx
	if c.node == nil || tx == nil {
		answer(errNotConnected)
		return
	}
	c.tx = nil
	if m := c.w.manager; m != nil {
		m.commit(c, tx, answer)
		return
	}
	id := c.ask(&message.TransactionInfo{Connection: c.id, ID: tx.id,
		Type: message.CommitOnePhase}, func(err error) {
		for _, f := range tx.sends {
			if err == nil {
				c.w.ledger.confirmed(f)
			} else {
				f.Refused = true
			}
		}
		answer(err)
	})
	c.end.does[id] = func(l *life) {
		for _, d := range tx.acks {
			c.w.ledger.acked(d, l)
		}
	}
}

// Rollback ends the transaction without effect. What it acknowledged is the application's still.
func (c *Client) Rollback() {
	tx := c.tx
	if c.node == nil || tx == nil {
		return
	}
	c.tx = nil
	for _, f := range tx.sends {
		f.Refused = true
	}
	if m := c.w.manager; m != nil {
		delete(m.busy, tx.id)
	}
	c.send(&message.TransactionInfo{Connection: c.id, ID: tx.id, Type: message.Rollback})
}
