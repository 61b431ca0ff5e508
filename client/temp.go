package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hopwire/openwire"
)

// AddDestination creates a queue or topic at the broker, which otherwise comes into being with its
// first use.
func (c *Conn) AddDestination(ctx context.Context, d *Destination) error {
	return c.changeDestination(ctx, d, openwire.DestinationAdd)
}

// RemoveDestination deletes a queue with its messages, or a topic. The broker refuses while
// somebody consumes from it.
func (c *Conn) RemoveDestination(ctx context.Context, d *Destination) error {
	return c.changeDestination(ctx, d, openwire.DestinationRemove)
}

func (c *Conn) changeDestination(ctx context.Context, d *Destination, op byte) error {
	_, err := c.request(ctx, &openwire.DestinationInfo{
		ConnectionID: c.id, Destination: d, OperationType: op,
	}, nil, nil)
	return err
}

// TempQueue creates a queue that lives as long as the connection, and that only this connection
// consumes from.
func (c *Conn) TempQueue(ctx context.Context) (*Destination, error) {
	return c.temp(ctx, openwire.TypeTempQueue)
}

// TempTopic creates a topic that lives as long as the connection.
func (c *Conn) TempTopic(ctx context.Context) (*Destination, error) {
	return c.temp(ctx, openwire.TypeTempTopic)
}

func (c *Conn) temp(ctx context.Context, kind byte) (*Destination, error) {
	c.mu.Lock()
	c.nextTemp++
	d := &Destination{Type: kind, PhysicalName: fmt.Sprintf("%s:%d", c.id.Value, c.nextTemp)}
	c.mu.Unlock()
	info := &openwire.DestinationInfo{
		ConnectionID: c.id, Destination: d, OperationType: openwire.DestinationAdd,
	}
	made := false
	_, err := c.request(ctx, info, nil, func() {
		made = true
		c.temps = append(c.temps, info)
	})
	if err == nil {
		return d, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made {
		err = errors.Join(err, c.dropTempLocked(d, err))
	}
	return nil, err
}

// dropTempLocked deletes a temporary destination that nobody will use, because of an error, and
// does not wait for the answer.
func (c *Conn) dropTempLocked(d *Destination, cause error) error {
	c.forgetTempLocked(d)
	return c.undoLocked(cause, &openwire.DestinationInfo{
		ConnectionID: c.id, Destination: d, OperationType: openwire.DestinationRemove,
	})
}

// DeleteTemp deletes a temporary destination of this connection.
func (c *Conn) DeleteTemp(ctx context.Context, d *Destination) error {
	_, err := c.request(ctx, &openwire.DestinationInfo{
		ConnectionID: c.id, Destination: d, OperationType: openwire.DestinationRemove,
	}, nil, nil)
	if err == nil {
		c.mu.Lock()
		c.forgetTempLocked(d)
		c.mu.Unlock()
	}
	return err
}

func (c *Conn) forgetTempLocked(d *Destination) {
	c.temps = slices.DeleteFunc(c.temps, func(t *openwire.DestinationInfo) bool {
		return t.Destination.PhysicalName == d.PhysicalName
	})
}

// Unsubscribe deletes the durable subscription of this connection's client id and a name, with the
// messages that wait in it. It must not be in use.
func (c *Conn) Unsubscribe(ctx context.Context, name string) error {
	_, err := c.request(ctx, &openwire.RemoveSubscriptionInfo{
		ConnectionID: c.id, SubscriptionName: name, ClientID: c.info.ClientID,
	}, nil, nil)
	return err
}
