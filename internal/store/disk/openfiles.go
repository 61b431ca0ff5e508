package disk

import (
	"strings"
	"syscall"
)

// howFailed tells what an error is that ends a store: that no file can be opened is no failure of
// the disk. What comes by pebble's logger has lost its kind, and keeps its text.
func howFailed(err error) string {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if strings.Contains(err.Error(), no.Error()) {
			return "the limit of open files is reached (ulimit -n, LimitNOFILE)"
		}
	}
	return "the disk failed"
}
