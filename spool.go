package hopwire

import (
	"context"

	"hopwire/internal/config"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// spool is where a broker's messages go that are not persistent while memory is short. Its files
// are there from the first of them to the broker's end.
type spool struct {
	*disk.Spool
	committer *store.Committer
}

// openSpool ends what a broker left in the spool's folder that did not come to its end. The spool
// is nil when there is no store, and when the folder is not free.
func (s *Setup) openSpool(c *config.Broker, fatal func(error)) *spool {
	if c.Persistence.Memory {
		return nil
	}
	log := s.options.Log
	p := disk.NewSpool(disk.Options{
		Dir:        absolute(c.Persistence.Spool(c.Name)),
		LimitBytes: tempLimit(c), OnFatal: fatal, MaxOpenFiles: s.tableFiles(),
		OnFull:    func(line string) { log.Error(line) },
		OnRoom:    func() { log.Warn("the spool has room again") },
		OnWarning: func(line string) { log.Warn(line) },
	})
	if err := p.Clear(); err != nil {
		log.Warn("nothing is spooled: messages that are not persistent stay in memory, which"+
			" memoryUsage limits", "error", err)
		return nil
	}
	return &spool{Spool: p}
}

// over lays the spool over the store, as the core's storage.
func (p *spool) over(st *store.Committer, post func(func()) bool,
	fatal func(error)) *store.Overlay {
	p.committer = store.NewCommitter(p, post)
	p.committer.OnFatal = fatal
	return store.NewOverlay(st, p.committer)
}

// end ends the spool, and what is in it. What is on its way there is not waited for.
func (p *spool) end() error {
	if p == nil || p.committer == nil {
		return nil
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.committer.Close(now) // it tells what was not written
	return p.Close()
}
