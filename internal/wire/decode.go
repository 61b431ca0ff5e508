package wire

import (
	"hopwire/internal/message"
	"hopwire/openwire"
)

// Decoder turns the frames of one direction of a connection into commands. It is not shared
// between goroutines.
type Decoder struct {
	d       *openwire.Decoder
	version int

	msg      openwire.Message
	ack      openwire.MessageAck
	names    names
	paths    paths
	clusters paths
}

// NewDecoder makes a decoder for what the hellos agreed on.
func NewDecoder(f openwire.Format) *Decoder {
	return &Decoder{d: openwire.NewDecoder(f), version: f.Version}
}

// Decode turns a frame without its size prefix into a command that owns its memory: it may keep
// frame itself only when that is longer than openwire.LargeFrame. Errors are
// *openwire.ProtocolError and final.
func (d *Decoder) Decode(frame []byte) (message.Command, error) {
	if len(frame) > 0 {
		switch t := frame[0]; {
		case t >= openwire.TypeMessage && t <= openwire.TypeBlobMessage:
			if err := d.d.DecodeMessage(frame, &d.msg); err != nil {
				return nil, err
			}
			m := d.messageIn(&d.msg)
			own(m, len(frame) > openwire.LargeFrame)
			return m, nil
		case t == openwire.TypeMessageAck:
			if err := d.d.DecodeAck(frame, &d.ack); err != nil {
				return nil, err
			}
			return d.ackIn(&d.ack), nil
		}
	}
	x, err := d.d.Decode(frame)
	if err != nil {
		return nil, err
	}
	return d.decoded(x), nil
}

func headIn(b *openwire.BaseCommand) message.Header {
	return message.Header{CommandID: b.CommandID, ResponseRequired: b.ResponseRequired}
}

func (d *Decoder) ackIn(x *openwire.MessageAck) *message.MessageAck {
	return &message.MessageAck{
		Header:      headIn(&x.BaseCommand),
		Destination: d.names.in(x.Destination),
		Transaction: transactionIn(x.TransactionID),
		Consumer:    consumerIn(x.ConsumerID),
		Type:        message.AckType(x.AckType),
		First:       messageIDIn(x.FirstMessageID),
		Last:        messageIDIn(x.LastMessageID),
		HasFirst:    x.FirstMessageID != nil,
		HasLast:     x.LastMessageID != nil,
		Count:       x.MessageCount,
		PoisonCause: throwableIn(x.PoisonCause),
	}
}

// opaque is a structure that has no noun of its own, on its way through.
type opaque struct {
	message.Header
	x openwire.DataStructure
}

// nestedIn translates what a message or an answer carries.
func nestedIn(d *Decoder, x openwire.DataStructure) message.Command {
	c := d.decoded(x)
	if _, no := c.(*message.Unknown); no {
		return &opaque{x: x}
	}
	return c
}

// decoded translates a structure; what has no noun becomes Unknown.
func (d *Decoder) decoded(x openwire.DataStructure) message.Command {
	switch x := x.(type) {
	case *openwire.Message:
		return d.messageIn(x)
	case *openwire.MessageAck:
		return d.ackIn(x)
	case *openwire.MessageDispatch:
		c := &message.MessageDispatch{
			Header:   headIn(&x.BaseCommand),
			Consumer: consumerIn(x.ConsumerID), Destination: d.names.in(x.Destination),
			RedeliveryCounter: x.RedeliveryCounter,
		}
		if x.Message != nil {
			c.Message = d.messageIn(x.Message)
		}
		return c
	case *openwire.MessagePull:
		return &message.MessagePull{
			Header:   headIn(&x.BaseCommand),
			Consumer: consumerIn(x.ConsumerID), Destination: plainIn(x.Destination),
			Timeout: x.Timeout, CorrelationID: x.CorrelationID, MessageID: messageIDIn(x.MessageID),
		}
	case *openwire.TransactionInfo:
		return &message.TransactionInfo{
			Header:     headIn(&x.BaseCommand),
			Connection: connectionIn(x.ConnectionID), ID: transactionIn(x.TransactionID),
			Type: message.TransactionType(x.Type),
		}
	case *openwire.ProducerAck:
		return &message.ProducerAck{
			Header:   headIn(&x.BaseCommand),
			Producer: producerIn(x.ProducerID), Size: x.Size,
		}
	case *openwire.KeepAliveInfo:
		return &message.KeepAliveInfo{Header: headIn(&x.BaseCommand)}
	case *openwire.ShutdownInfo:
		return &message.ShutdownInfo{Header: headIn(&x.BaseCommand)}
	case *openwire.FlushCommand:
		return &message.FlushCommand{Header: headIn(&x.BaseCommand)}
	case *openwire.ControlCommand:
		return &message.ControlCommand{Header: headIn(&x.BaseCommand), Command: x.Command}
	}
	if c := d.decodedAnswer(x); c != nil {
		return c
	}
	return d.decodedInfo(x)
}

// decodedAnswer translates answers and errors, nil for anything else.
func (d *Decoder) decodedAnswer(x openwire.DataStructure) message.Command {
	switch x := x.(type) {
	case *openwire.Response:
		return &message.Response{Header: headIn(&x.BaseCommand), Correlation: x.CorrelationID}
	case *openwire.ExceptionResponse:
		c := &message.Response{
			Header: headIn(&x.BaseCommand), Correlation: x.CorrelationID,
			Exception: throwableIn(x.Exception),
		}
		if c.Exception == nil {
			c.Exception = message.Exception(message.Errorf(message.Internal,
				"the peer gave no reason"))
		}
		return c
	case *openwire.IntegerResponse:
		return &message.Response{
			Header: headIn(&x.BaseCommand), Correlation: x.CorrelationID,
			Shape: message.IntegerResponse, Result: x.Result,
		}
	case *openwire.DataResponse:
		c := &message.Response{
			Header: headIn(&x.BaseCommand), Correlation: x.CorrelationID,
			Shape: message.DataResponse,
		}
		if x.Data != nil {
			c.Data = nestedIn(d, x.Data)
		}
		return c
	case *openwire.DataArrayResponse:
		c := &message.Response{
			Header: headIn(&x.BaseCommand), Correlation: x.CorrelationID,
			Shape: message.DataArrayResponse,
		}
		for _, t := range x.Data {
			if id, ok := t.(openwire.TransactionId); ok {
				c.Array = append(c.Array, transactionIn(id))
			}
		}
		return c
	case *openwire.ConnectionError:
		return &message.ConnectionError{
			Header:    headIn(&x.BaseCommand),
			Exception: throwableIn(x.Exception), Connection: connectionIn(x.ConnectionID),
		}
	}
	return nil
}

// decodedInfo translates what opens, closes and steers.
func (d *Decoder) decodedInfo(x openwire.DataStructure) message.Command {
	switch x := x.(type) {
	case *openwire.ConnectionInfo:
		return connectionInfoIn(x)
	case *openwire.SessionInfo:
		return &message.SessionInfo{Header: headIn(&x.BaseCommand), ID: sessionIn(x.SessionID)}
	case *openwire.ConsumerInfo:
		return d.consumerInfoIn(x)
	case *openwire.ProducerInfo:
		return &message.ProducerInfo{
			Header: headIn(&x.BaseCommand), ID: producerIn(x.ProducerID),
			Destination: plainIn(x.Destination), BrokerPath: pathIn(x.BrokerPath),
			DispatchAsync: x.DispatchAsync, WindowSize: x.WindowSize,
		}
	case *openwire.DestinationInfo:
		return &message.DestinationInfo{
			Header:     headIn(&x.BaseCommand),
			Connection: connectionIn(x.ConnectionID), Destination: plainIn(x.Destination),
			Op: message.DestinationOp(x.OperationType), Timeout: x.Timeout,
			BrokerPath: pathIn(x.BrokerPath),
		}
	case *openwire.RemoveInfo:
		return d.removeIn(x)
	case *openwire.RemoveSubscriptionInfo:
		return &message.RemoveSubscriptionInfo{
			Header:     headIn(&x.BaseCommand),
			Connection: connectionIn(x.ConnectionID), ClientID: x.ClientID,
			SubscriptionName: x.SubscriptionName,
		}
	case *openwire.ConsumerControl:
		return &message.ConsumerControl{
			Header:   headIn(&x.BaseCommand),
			Consumer: consumerIn(x.ConsumerID), Destination: plainIn(x.Destination),
			Close: x.Close, Prefetch: x.Prefetch, Flush: x.Flush, Start: x.Start, Stop: x.Stop,
		}
	case *openwire.ConnectionControl:
		return &message.ConnectionControl{
			Header: headIn(&x.BaseCommand), Close: x.Close,
			Exit: x.Exit, FaultTolerant: x.FaultTolerant, Resume: x.Resume, Suspend: x.Suspend,
			ConnectedBrokers: x.ConnectedBrokers, ReconnectTo: x.ReconnectTo,
			RebalanceConnection: x.RebalanceConnection, Token: x.Token,
		}
	case *openwire.BrokerInfo:
		return brokerInfoIn(x)
	case *openwire.BrokerSubscriptionInfo:
		c := &message.BrokerSubscriptionInfo{
			Header: headIn(&x.BaseCommand),
			Broker: brokerIn(x.BrokerID), Name: x.BrokerName,
		}
		for _, s := range x.SubscriptionInfos {
			if s != nil {
				c.Subscriptions = append(c.Subscriptions, d.consumerInfoIn(s))
			}
		}
		return c
	}
	c := &message.Unknown{Type: x.TypeID()}
	if b, ok := x.(openwire.Command); ok {
		c.Header = headIn(b.Base())
	}
	return c
}

func connectionInfoIn(x *openwire.ConnectionInfo) *message.ConnectionInfo {
	return &message.ConnectionInfo{
		Header:                headIn(&x.BaseCommand),
		ID:                    connectionIn(x.ConnectionID),
		ClientID:              x.ClientID,
		UserName:              x.UserName,
		Password:              x.Password,
		ClientIP:              x.ClientIP,
		BrokerPath:            pathIn(x.BrokerPath),
		BrokerMasterConnector: x.BrokerMasterConnector,
		Manageable:            x.Manageable,
		ClientMaster:          x.ClientMaster,
		FaultTolerant:         x.FaultTolerant,
		FailoverReconnect:     x.FailoverReconnect,
	}
}

func (d *Decoder) consumerInfoIn(x *openwire.ConsumerInfo) *message.ConsumerInfo {
	c := &message.ConsumerInfo{
		Header:                     headIn(&x.BaseCommand),
		ID:                         consumerIn(x.ConsumerID),
		Selector:                   x.Selector,
		ClientID:                   x.ClientID,
		SubscriptionName:           x.SubscriptionName,
		PrefetchSize:               x.PrefetchSize,
		MaximumPendingMessageLimit: x.MaximumPendingMessageLimit,
		Priority:                   x.Priority,
		Browser:                    x.Browser,
		DispatchAsync:              x.DispatchAsync,
		NoLocal:                    x.NoLocal,
		Exclusive:                  x.Exclusive,
		Retroactive:                x.Retroactive,
		OptimizedAcknowledge:       x.OptimizedAcknowledge,
		NoRangeAcks:                x.NoRangeAcks,
		NetworkSubscription:        x.NetworkSubscription,
		BrokerPath:                 pathIn(x.BrokerPath),
		NetworkConsumerPath:        consumersIn(x.NetworkConsumerPath),
	}
	c.Destination, c.DestinationOptions = destinationIn(x.Destination)
	if f := x.AdditionalPredicate; f != nil {
		c.Filter = &message.NetworkFilter{
			Broker:     brokerIn(f.NetworkBrokerID),
			MessageTTL: f.MessageTTL, ConsumerTTL: f.ConsumerTTL,
		}
		if d.version < filterTTLs {
			c.Filter.MessageTTL, c.Filter.ConsumerTTL = f.NetworkTTL, f.NetworkTTL
		}
	}
	return c
}

// filterTTLs is the version from which a network filter has two TTLs instead of one.
const filterTTLs = 10

func (d *Decoder) removeIn(x *openwire.RemoveInfo) message.Command {
	c := &message.RemoveInfo{
		Header:        headIn(&x.BaseCommand),
		LastDelivered: x.LastDeliveredSequenceID,
	}
	if d.version < lastDelivered {
		c.LastDelivered = message.LastDeliveredUnknown
	}
	switch id := x.ObjectID.(type) {
	case *openwire.ConnectionId:
		c.Object = connectionIn(id)
	case *openwire.SessionId:
		c.Object = sessionIn(id)
	case *openwire.ConsumerId:
		c.Object = consumerIn(id)
	case *openwire.ProducerId:
		c.Object = producerIn(id)
	}
	return c
}

// lastDelivered is the version from which RemoveInfo says what was delivered.
const lastDelivered = 5

func brokerInfoIn(x *openwire.BrokerInfo) *message.BrokerInfo {
	c := &message.BrokerInfo{
		Header:            headIn(&x.BaseCommand),
		ID:                brokerIn(x.BrokerID),
		Name:              x.BrokerName,
		URL:               x.BrokerURL,
		NetworkConnection: x.NetworkConnection,
		Duplex:            x.DuplexConnection,
		Slave:             x.SlaveBroker,
		Master:            x.MasterBroker,
		FaultTolerant:     x.FaultTolerantConfiguration,
		NetworkProperties: x.NetworkProperties,
		UploadURL:         x.BrokerUploadURL,
		ConnectionID:      x.ConnectionID,
	}
	for _, p := range x.PeerBrokerInfos {
		if p != nil {
			c.Peers = append(c.Peers, brokerInfoIn(p))
		}
	}
	return c
}

// head decodes the beginning of a message frame up to its body; nil when it is no message.
func (d *Decoder) head(begin []byte) *message.Message {
	if !d.d.DecodeHead(begin, &d.msg) {
		return nil
	}
	d.msg.Content, d.msg.MarshalledProperties, d.msg.DataStructure = nil, nil, nil
	return d.messageIn(&d.msg)
}
