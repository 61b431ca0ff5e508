package client

import (
	"fmt"

	"hopwire/openwire"
)

// dispatch handles one command from the broker; an error ends the link.
func (c *Conn) dispatch(l *link, cmd openwire.DataStructure) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch x := cmd.(type) {
	case *openwire.MessageDispatch:
		if x.ConsumerID == nil {
			return fmt.Errorf("MessageDispatch without a consumer")
		}
		if k := c.consumers[*x.ConsumerID]; k != nil {
			return k.arriveLocked(x)
		}
	case *openwire.Response:
		c.answerLocked(x.CorrelationID, x)
	case *openwire.ExceptionResponse:
		c.answerLocked(x.CorrelationID, x)
	case *openwire.DataResponse:
		c.answerLocked(x.CorrelationID, x)
	case *openwire.DataArrayResponse:
		c.answerLocked(x.CorrelationID, x)
	case *openwire.IntegerResponse:
		c.answerLocked(x.CorrelationID, x)
	case *openwire.ProducerAck:
		if x.ProducerID != nil {
			if p := c.producers[*x.ProducerID]; p != nil {
				p.acceptedLocked(int64(x.Size))
			}
		}
	case *openwire.ConnectionError:
		c.reportLocked(brokerError(x.Exception))
	case *openwire.KeepAliveInfo:
		if x.ResponseRequired {
			return l.add(&openwire.KeepAliveInfo{})
		}
	case *openwire.ConsumerControl:
		c.controlLocked(x)
	case *openwire.BrokerInfo:
		c.broker = x
	}
	return nil
}

func (c *Conn) answerLocked(id int32, answer openwire.DataStructure) {
	if k := c.pending[id]; k != nil {
		delete(c.pending, id)
		k.done(answer, nil)
	}
}

// controlLocked obeys a broker that closes a consumer or changes its prefetch.
func (c *Conn) controlLocked(x *openwire.ConsumerControl) {
	if x.ConsumerID == nil {
		return
	}
	k := c.consumers[*x.ConsumerID]
	if k == nil {
		return
	}
	if x.Close {
		k.abortLocked()
		return
	}
	info := *k.info
	info.PrefetchSize = x.Prefetch
	k.info = &info
}
