package disk_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// That no file can be opened ends a store, and is not said to be the disk's fault.
func TestALimitOfOpenFilesIsNoFailureOfTheDisk(t *testing.T) {
	for no, want := range map[syscall.Errno]string{
		syscall.EMFILE: "the limit of open files is reached", syscall.EIO: "the disk failed",
	} {
		d := newFaultyDisk()
		s := d.open(t)
		l := newLoader(s)
		d.set(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite {
				return no
			}
			return nil
		})
		var err error
		for n := 0; err == nil && n < 100; n++ {
			err = l.put(100)
		}
		if err == nil || !strings.Contains(err.Error(), want) ||
			want != "the disk failed" && strings.Contains(err.Error(), "disk failed") {
			t.Errorf("%v: Apply gives %v, want %q", no, err, want)
		}
		if err := <-d.fatal; !strings.Contains(err.Error(), want) {
			t.Errorf("%v: fatal is %v, want %q", no, err, want)
		}
		if err := s.Close(); err == nil || errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v: close gives %v", no, err)
		}
	}
}
