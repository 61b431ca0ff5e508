package hopwire

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"hopwire/internal/broker"
	"hopwire/internal/message"
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
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if owner := foreign(dir); owner != "" {
		return nil, fmt.Errorf("%w: store %s belongs to user %s, who could not open what root makes"+
			" there; repair it as that user: sudo -u %s hopwire repair %s", ErrRefused, dir, owner, owner,
			s.File())
	}
	r, err := disk.Repair(ctx, disk.RepairOptions{Dir: dir,
		Metas: append(broker.Metas(), metaBrokerID)})
	if message.KindOf(err) == message.NotFound {
		err = message.Errorf(message.NotFound, "store %s: there is none; a repair looks where a start"+
			" would: run it in the broker's working folder, with its ACTIVEMQ_DATA, ACTIVEMQ_BASE and -D",
			dir)
	}
	return r, err
}

// foreign gives the user that a folder belongs to when root would make files there that this user
// cannot open; else "".
func foreign(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return ""
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "#" + id
}
