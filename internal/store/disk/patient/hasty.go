package patient

import "github.com/cockroachdb/pebble/v2/vfs"

// hasty is the patience of a repair, which has none.
type hasty struct{ fail func(error) }

func (hasty) begin()      {}
func (hasty) end()        {}
func (hasty) pause() bool { return false }
func (hasty) spare() bool { return true }

// broken implements patience.
func (h hasty) broken(err error) {
	h.fail(err)
	select {}
}

// Hasty is a file system for who reads damaged tables and writes new ones: it waits for nothing,
// and each block is checked.
func Hasty(fs vfs.FS, fail func(error)) FS {
	never := make(chan struct{})
	return FS{FS: fs, p: hasty{fail},
		Suspects: &Suspects{stop: never, all: true, tell: func(error) {}}}
}
