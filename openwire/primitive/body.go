package primitive

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// ErrInflateLimit is wrapped by the error of a body that inflates to more than the limit given.
var ErrInflateLimit = errors.New("compressed body is larger than the limit")

// Text decodes a text body: a 4-byte length and modified UTF-8. Nil content is null text, which
// this returns as "" like the empty text; who must tell them apart looks at the content.
func Text(content []byte) (string, error) {
	if content == nil {
		return "", nil
	}
	r := reader{raw: content}
	s := r.text(int(r.int32()))
	return s, r.err
}

// AppendText appends the body of a text message.
func AppendText(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(ModifiedLen(s)))
	return AppendModified(dst, s)
}

// Inflate undoes the compression of a text, map, object or stream body: the content is one zlib
// stream. More than limit bytes are refused before they are held; nil content stays nil.
func Inflate(content []byte, limit int64) ([]byte, error) {
	if content == nil {
		return nil, nil
	}
	z, err := zlib.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("compressed body: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, min(limit, math.MaxInt64-1)+1))
	if err != nil {
		return nil, fmt.Errorf("compressed body: %w", err)
	}
	if int64(len(out)) > limit {
		return nil, fmt.Errorf("%w of %d bytes", ErrInflateLimit, limit)
	}
	return out, nil
}

// InflateBytes undoes the compression of a bytes body: a 4-byte length before the zlib stream. The
// stream may inflate to more, as Java deflates its whole buffer: only the declared length counts.
func InflateBytes(content []byte, limit int64) ([]byte, error) {
	if content == nil {
		return nil, nil
	}
	if len(content) < 4 {
		return nil, &Error{0, "compressed bytes body without its length"}
	}
	n := int64(int32(binary.BigEndian.Uint32(content)))
	switch {
	case n < 0:
		return nil, &Error{0, "negative length"}
	case n > limit:
		return nil, fmt.Errorf("%w of %d bytes: it declares %d", ErrInflateLimit, limit, n)
	}
	z, err := zlib.NewReader(bytes.NewReader(content[4:]))
	if err != nil {
		return nil, fmt.Errorf("compressed body: %w", err)
	}
	out := bytes.NewBuffer(make([]byte, 0, min(n, 8*int64(len(content)))))
	if _, err := io.CopyN(out, z, n); err != nil {
		return nil, fmt.Errorf("compressed body ends before its %d bytes: %w", n, err)
	}
	return out.Bytes(), nil
}

// Deflate compresses a text, map, object or stream body; nil stays nil.
func Deflate(content []byte) []byte {
	if content == nil {
		return nil
	}
	return deflate(nil, content)
}

// DeflateBytes compresses a bytes body, its length before it; nil stays nil.
func DeflateBytes(content []byte) []byte {
	if content == nil {
		return nil
	}
	return deflate(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content)
}

// deflate cannot fail: a bytes.Buffer takes all that is written.
func deflate(head, content []byte) []byte {
	out := bytes.NewBuffer(head)
	z := zlib.NewWriter(out)
	_, _ = z.Write(content)
	_ = z.Close()
	return out.Bytes()
}
