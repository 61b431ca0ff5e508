package hopwire

import (
	"context"
	"fmt"

	"hopwire/internal/broker"
	"hopwire/internal/store/disk"
)

// Repaired tells what became of a store that was repaired.
type Repaired = disk.Repaired

// Repair copies what can be read of the store into a new one, which takes its place; what is
// damaged stays behind, in a folder that Repaired names. The broker must not run. A store without
// damage is left as it is.
func (s *Setup) Repair(ctx context.Context) (*Repaired, error) {
	dir := s.Folder()
	if dir == "" {
		return nil, fmt.Errorf("%w: broker %s has no store on a disk", ErrRefused, s.Name())
	}
	return disk.Repair(ctx, disk.RepairOptions{Dir: dir, Metas: append(broker.Metas(), metaBrokerID)})
}
