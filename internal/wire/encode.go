package wire

import (
	"fmt"

	"hopwire/internal/message"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

// Encoder turns commands into the frames of one direction of a connection. It is not shared
// between goroutines.
type Encoder struct {
	e     *openwire.Encoder
	s     scratch
	apart func(at int, b []byte) // may be nil
}

// NewEncoder makes an encoder for what the hellos agreed on.
func NewEncoder(f openwire.Format) *Encoder { return &Encoder{e: openwire.NewEncoder(f)} }

// SetApart has bodies that are long enough written from where they are: apart is told where in what
// Append and AppendDelivery give they belong.
func (e *Encoder) SetApart(apart func(at int, b []byte)) { e.apart = apart }

// append appends a frame.
func (e *Encoder) append(dst []byte, x openwire.DataStructure) ([]byte, error) {
	if e.apart == nil {
		return e.e.Append(dst, x)
	}
	dst, cuts, err := e.e.AppendApart(dst, x, transport.ApartBytes)
	for _, c := range cuts {
		e.apart(c.At, c.Bytes)
	}
	return dst, err
}

// Append appends the command's frame to dst. After an error, an *openwire.EncodeError or
// *openwire.FrameTooBigError, dst is unchanged and the encoder stays usable.
func (e *Encoder) Append(dst []byte, c message.Command) ([]byte, error) {
	if m, ok := c.(*message.Message); ok {
		return e.append(dst, e.s.message(m))
	}
	x := encoded(c)
	if x == nil {
		return dst, fmt.Errorf("%T has no form in OpenWire", c)
	}
	return e.append(dst, x)
}

// AppendDelivery appends the dispatch of a message to a consumer. outTime (ms since the epoch)
// becomes its brokerOutTime.
func (e *Encoder) AppendDelivery(dst []byte, to message.ConsumerID, from message.Destination,
	m *message.Message, redelivery int32, outTime int64,
) ([]byte, error) {
	s := &e.s
	s.dispatch = openwire.MessageDispatch{
		ConsumerID:        consumerTo(&s.consumer, to, true),
		Destination:       destinationTo(&s.dispatchedTo, from),
		RedeliveryCounter: redelivery,
	}
	if m != nil {
		s.dispatch.Message = s.message(m)
		s.msg.BrokerOutTime = outTime
	}
	return e.append(dst, &s.dispatch)
}

// AppendResponse appends a plain answer.
func (e *Encoder) AppendResponse(dst []byte, correlation int32) ([]byte, error) {
	e.s.response = openwire.Response{CorrelationID: correlation}
	return e.e.Append(dst, &e.s.response)
}

func headOut(h *message.Header) openwire.BaseCommand {
	return openwire.BaseCommand{CommandID: h.CommandID, ResponseRequired: h.ResponseRequired}
}

// nestedOut translates what a message or an answer carries.
func nestedOut(c message.Command) openwire.DataStructure {
	switch c := c.(type) {
	case *opaque:
		return c.x
	case *message.Message:
		return new(scratch).message(c)
	}
	return encoded(c)
}

// encoded translates a command; nil for one that is never sent.
func encoded(c message.Command) openwire.DataStructure {
	switch c := c.(type) {
	case *message.Response:
		return responseOut(c)
	case *message.MessageAck:
		return ackOut(c)
	case *message.MessageDispatch:
		x := &openwire.MessageDispatch{
			BaseCommand: headOut(&c.Header),
			ConsumerID:  consumerOut(c.Consumer), Destination: destinationOut(c.Destination),
			RedeliveryCounter: c.RedeliveryCounter,
		}
		if c.Message != nil {
			x.Message = new(scratch).message(c.Message)
		}
		return x
	case *message.MessagePull:
		return &openwire.MessagePull{
			BaseCommand: headOut(&c.Header),
			ConsumerID:  consumerOut(c.Consumer), Destination: destinationOut(c.Destination),
			Timeout: c.Timeout, CorrelationID: c.CorrelationID, MessageID: messageIDOut(c.MessageID),
		}
	case *message.TransactionInfo:
		return &openwire.TransactionInfo{
			BaseCommand:  headOut(&c.Header),
			ConnectionID: connectionOut(c.Connection), TransactionID: transactionOut(c.ID),
			Type: byte(c.Type),
		}
	case *message.ProducerAck:
		return &openwire.ProducerAck{
			BaseCommand: headOut(&c.Header),
			ProducerID:  producerOut(c.Producer), Size: c.Size,
		}
	case *message.ConnectionError:
		return &openwire.ConnectionError{
			BaseCommand: headOut(&c.Header),
			Exception:   throwableOut(c.Exception), ConnectionID: connectionOut(c.Connection),
		}
	case *message.KeepAliveInfo:
		return &openwire.KeepAliveInfo{BaseCommand: headOut(&c.Header)}
	case *message.ShutdownInfo:
		return &openwire.ShutdownInfo{BaseCommand: headOut(&c.Header)}
	case *message.FlushCommand:
		return &openwire.FlushCommand{BaseCommand: headOut(&c.Header)}
	case *message.ControlCommand:
		return &openwire.ControlCommand{
			BaseCommand: headOut(&c.Header), Command: c.Command,
			Empty: openwire.EmptyControlCommandCommand,
		}
	}
	return encodedInfo(c)
}

// encodedInfo translates what opens, closes and steers.
func encodedInfo(c message.Command) openwire.DataStructure {
	switch c := c.(type) {
	case *message.ConnectionInfo:
		return connectionInfoOut(c)
	case *message.SessionInfo:
		return &openwire.SessionInfo{BaseCommand: headOut(&c.Header), SessionID: sessionOut(c.ID)}
	case *message.ConsumerInfo:
		return consumerInfoOut(c)
	case *message.ProducerInfo:
		return &openwire.ProducerInfo{
			BaseCommand: headOut(&c.Header),
			ProducerID:  producerOut(c.ID), Destination: destinationOut(c.Destination),
			BrokerPath: pathOut(c.BrokerPath), DispatchAsync: c.DispatchAsync,
			WindowSize: c.WindowSize,
		}
	case *message.DestinationInfo:
		return &openwire.DestinationInfo{
			BaseCommand:  headOut(&c.Header),
			ConnectionID: connectionOut(c.Connection), Destination: destinationOut(c.Destination),
			OperationType: byte(c.Op), Timeout: c.Timeout, BrokerPath: pathOut(c.BrokerPath),
		}
	case *message.RemoveInfo:
		return removeOut(c)
	case *message.RemoveSubscriptionInfo:
		return &openwire.RemoveSubscriptionInfo{
			BaseCommand:  headOut(&c.Header),
			ConnectionID: connectionOut(c.Connection), ClientID: c.ClientID,
			SubscriptionName: c.SubscriptionName,
		}
	case *message.ConsumerControl:
		return &openwire.ConsumerControl{
			BaseCommand: headOut(&c.Header),
			Destination: destinationOut(c.Destination), Close: c.Close,
			ConsumerID: consumerOut(c.Consumer), Prefetch: c.Prefetch, Flush: c.Flush,
			Start: c.Start, Stop: c.Stop,
		}
	case *message.ConnectionControl:
		return &openwire.ConnectionControl{
			BaseCommand: headOut(&c.Header), Close: c.Close,
			Exit: c.Exit, FaultTolerant: c.FaultTolerant, Resume: c.Resume, Suspend: c.Suspend,
			ConnectedBrokers: c.ConnectedBrokers, ReconnectTo: c.ReconnectTo,
			RebalanceConnection: c.RebalanceConnection, Token: c.Token,
			// Clients want these two empty rather than null.
			Empty: openwire.EmptyConnectionControlConnectedBrokers |
				openwire.EmptyConnectionControlReconnectTo,
		}
	case *message.BrokerInfo:
		return brokerInfoOut(c)
	case *message.BrokerSubscriptionInfo:
		x := &openwire.BrokerSubscriptionInfo{
			BaseCommand: headOut(&c.Header),
			BrokerID:    brokerOut(c.Broker), BrokerName: c.Name,
		}
		for _, s := range c.Subscriptions {
			x.SubscriptionInfos = append(x.SubscriptionInfos, consumerInfoOut(s))
		}
		return x
	}
	return nil
}

func responseOut(c *message.Response) openwire.DataStructure {
	head := headOut(&c.Header)
	if c.Exception != nil {
		return &openwire.ExceptionResponse{
			BaseCommand: head, CorrelationID: c.Correlation,
			Exception: throwableOut(c.Exception),
		}
	}
	switch c.Shape {
	case message.IntegerResponse:
		return &openwire.IntegerResponse{
			BaseCommand: head, CorrelationID: c.Correlation,
			Result: c.Result,
		}
	case message.DataResponse:
		x := &openwire.DataResponse{BaseCommand: head, CorrelationID: c.Correlation}
		if c.Data != nil {
			x.Data = nestedOut(c.Data)
		}
		return x
	case message.DataArrayResponse:
		x := &openwire.DataArrayResponse{
			BaseCommand: head, CorrelationID: c.Correlation,
			Data: make([]openwire.DataStructure, 0, len(c.Array)),
		}
		for _, id := range c.Array {
			x.Data = append(x.Data, transactionOut(id))
		}
		return x
	}
	return &openwire.Response{BaseCommand: head, CorrelationID: c.Correlation}
}

func ackOut(c *message.MessageAck) *openwire.MessageAck {
	x := &openwire.MessageAck{
		BaseCommand:   headOut(&c.Header),
		Destination:   destinationOut(c.Destination),
		TransactionID: transactionOut(c.Transaction),
		ConsumerID:    consumerOut(c.Consumer),
		AckType:       byte(c.Type),
		MessageCount:  c.Count,
		PoisonCause:   throwableOut(c.PoisonCause),
	}
	if c.HasFirst {
		x.FirstMessageID = messageIDOut(c.First)
	}
	if c.HasLast {
		x.LastMessageID = messageIDOut(c.Last)
	}
	return x
}

func connectionInfoOut(c *message.ConnectionInfo) *openwire.ConnectionInfo {
	return &openwire.ConnectionInfo{
		BaseCommand:           headOut(&c.Header),
		ConnectionID:          connectionOut(c.ID),
		ClientID:              c.ClientID,
		UserName:              c.UserName,
		Password:              c.Password,
		ClientIP:              c.ClientIP,
		BrokerPath:            pathOut(c.BrokerPath),
		BrokerMasterConnector: c.BrokerMasterConnector,
		Manageable:            c.Manageable,
		ClientMaster:          c.ClientMaster,
		FaultTolerant:         c.FaultTolerant,
		FailoverReconnect:     c.FailoverReconnect,
	}
}

func consumerInfoOut(c *message.ConsumerInfo) *openwire.ConsumerInfo {
	x := &openwire.ConsumerInfo{
		BaseCommand:                headOut(&c.Header),
		ConsumerID:                 consumerOut(c.ID),
		Browser:                    c.Browser,
		Destination:                destinationOut(c.Destination),
		PrefetchSize:               c.PrefetchSize,
		MaximumPendingMessageLimit: c.MaximumPendingMessageLimit,
		DispatchAsync:              c.DispatchAsync,
		Selector:                   c.Selector,
		ClientID:                   c.ClientID,
		SubscriptionName:           c.SubscriptionName,
		NoLocal:                    c.NoLocal,
		Exclusive:                  c.Exclusive,
		Retroactive:                c.Retroactive,
		Priority:                   c.Priority,
		BrokerPath:                 pathOut(c.BrokerPath),
		NetworkSubscription:        c.NetworkSubscription,
		OptimizedAcknowledge:       c.OptimizedAcknowledge,
		NoRangeAcks:                c.NoRangeAcks,
		NetworkConsumerPath:        consumersOut(c.NetworkConsumerPath),
	}
	if f := c.Filter; f != nil {
		x.AdditionalPredicate = &openwire.NetworkBridgeFilter{
			NetworkTTL:      f.MessageTTL,
			NetworkBrokerID: brokerOut(f.Broker), MessageTTL: f.MessageTTL, ConsumerTTL: f.ConsumerTTL,
		}
	}
	return x
}

func removeOut(c *message.RemoveInfo) *openwire.RemoveInfo {
	x := &openwire.RemoveInfo{
		BaseCommand:             headOut(&c.Header),
		LastDeliveredSequenceID: c.LastDelivered,
	}
	switch id := c.Object.(type) {
	case message.ConnectionID:
		x.ObjectID = &openwire.ConnectionId{Value: string(id)}
	case message.SessionID:
		x.ObjectID = &openwire.SessionId{ConnectionID: string(id.Connection), Value: id.Value}
	case message.ConsumerID:
		x.ObjectID = &openwire.ConsumerId{
			ConnectionID: string(id.Connection),
			SessionID:    id.Session, Value: id.Value,
		}
	case message.ProducerID:
		x.ObjectID = &openwire.ProducerId{
			ConnectionID: string(id.Connection),
			SessionID:    id.Session, Value: id.Value,
		}
	}
	return x
}

func brokerInfoOut(c *message.BrokerInfo) *openwire.BrokerInfo {
	x := &openwire.BrokerInfo{
		BaseCommand:                headOut(&c.Header),
		BrokerID:                   brokerOut(c.ID),
		BrokerURL:                  c.URL,
		BrokerName:                 c.Name,
		SlaveBroker:                c.Slave,
		MasterBroker:               c.Master,
		FaultTolerantConfiguration: c.FaultTolerant,
		DuplexConnection:           c.Duplex,
		NetworkConnection:          c.NetworkConnection,
		ConnectionID:               c.ConnectionID,
		BrokerUploadURL:            c.UploadURL,
		NetworkProperties:          c.NetworkProperties,
	}
	for _, p := range c.Peers {
		x.PeerBrokerInfos = append(x.PeerBrokerInfos, brokerInfoOut(p))
	}
	return x
}
