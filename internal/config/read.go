package config

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf16"
	"unicode/utf8"
)

// unfitError is a file that is there and is not read.
type unfitError struct{ path, why string }

func (e unfitError) Error() string { return e.path + e.why }

var tooLong = fmt.Sprintf("larger than %d bytes", maxFileBytes)

// readFile reads a configuration or property file, a regular one or a pipe, and no more of it than
// the limit. A pipe that nobody writes is waited for: whoever calls bounds the time.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, unfitError{path, " is a folder"}
	case !mode.IsRegular() && mode.Type() != fs.ModeNamedPipe:
		return nil, unfitError{path, " is no regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = unfitError{path, ": " + tooLong}
	}
	return data, err
}

var errHalf = errors.New("is UTF-16 that ends within a character, or has half of one")

// fromUTF16 converts a file that is UTF-16: one that begins with a byte order mark, or with <? in
// two bytes each. Others stay what they are.
func fromUTF16(data []byte) (out []byte, converted bool, err error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("<\x00?\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")), bytes.HasPrefix(data, []byte("\x00<\x00?")):
		order = binary.BigEndian
	default:
		return data, false, nil
	}
	if len(data)%2 != 0 {
		return nil, true, errHalf
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	if units[0] == 0xfeff {
		units = units[1:]
	}
	out = make([]byte, 0, len(data))
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			if i++; i == len(units) {
				return nil, true, errHalf
			}
			if r = utf16.DecodeRune(r, rune(units[i])); r == utf8.RuneError {
				return nil, true, errHalf
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out, true, nil
}

// plainPathError is an error about a file without the system call that gave it.
type plainPathError struct{ *fs.PathError }

func (e plainPathError) Error() string { return e.Path + ": " + e.Err.Error() }
