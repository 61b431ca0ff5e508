package files

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tailedFile is a table that is shown with another tail behind its own.
type tailedFile struct {
	vfs.File
	size int64 // where tail begins
	tail []byte
}

// withTail shows a file with a tail. What cannot tell its size is not shown so.
func withTail(f vfs.File, tail []byte) vfs.File {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	return &tailedFile{f, info.Size(), tail}
}

// ReadAt implements vfs.File.
func (f *tailedFile) ReadAt(b []byte, at int64) (n int, err error) {
	if at < f.size {
		n, err = f.File.ReadAt(b[:min(int64(len(b)), f.size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) || n == len(b) || at+int64(n) < f.size {
			return n, err
		}
	}
	n += copy(b[n:], f.tail[min(int64(len(f.tail)), at+int64(n)-f.size):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Stat implements vfs.File.
func (f *tailedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return tailedInfo{info, f.size + int64(len(f.tail))}, err
}

type tailedInfo struct {
	vfs.FileInfo
	size int64
}

// Size implements vfs.FileInfo.
func (i tailedInfo) Size() int64 { return i.size }
