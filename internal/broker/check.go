package broker

import "fmt"

// Check reports the first queue on which a message is stuck (queue.Check). It is meant for the
// simulation, at moments when nothing waits on the loop.
func (b *Broker) Check() error {
	for _, d := range b.order {
		if d.queue == nil || d.host.dirty {
			continue
		}
		if err := d.queue.Check(); err != nil {
			return fmt.Errorf("%s: %w", b.opt.Name, err)
		}
	}
	return nil
}
