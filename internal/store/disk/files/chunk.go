package files

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Pebble's logs and its MANIFEST are records in chunks. A chunk lies in one block of 32 KiB: its
// checksum (4 bytes), the length of what it holds (2), its type (1), which says what part of a
// record it is, and in a log the log's number (4), so that what an earlier use of the file left is
// told apart, and up to where the log was durable (8). What a block has too little room for is
// zero. Pebble's package record says it in full.

const chunkBlock = 32 << 10

// headerSizes are the lengths of what comes before a chunk's bytes, by its type.
var headerSizes = [...]int{1: 7, 2: 7, 3: 7, 4: 7, 5: 11, 6: 11, 7: 11, 8: 11, 9: 19, 10: 19,
	11: 19, 12: 19}

const (
	typeTrailer = 5  // the one that ends a log has it, and the number of the next log
	numberAt    = 7  // where a chunk has its log's number
	durableAt   = 11 // and then how far it was durable
	trailerSize = 11 // it has no bytes
	paddedBelow = 19 // with less room in a block there may be no chunk
)

// verdict says what lies at a place of a log or manifest.
type verdict int

const (
	whole verdict = iota // a chunk that has its checksum
	blank                // nothing up to the end of the block
	ended                // what ends a log
	bad                  // nothing of these
)

// chunk is a part of a record.
type chunk struct {
	size        int // with its header
	first, last bool
	bytes       []byte
	durable     int64 // up to where the log was when it was written, 0 when it does not say
}

// chunkAt looks at what b, the rest of a block, begins with. num is the number of the log, 0 for a
// manifest.
func chunkAt(b []byte, num uint32) (chunk, verdict) {
	if len(b) < paddedBelow && allZero(b) {
		return chunk{}, blank
	}
	if len(b) < 7 || b[6] == 0 || int(b[6]) >= len(headerSizes) {
		return chunk{}, bad
	}
	head := headerSizes[b[6]]
	end := head + int(binary.LittleEndian.Uint16(b[4:]))
	if end > len(b) {
		return chunk{}, bad
	}
	if head > numberAt {
		switch n := binary.LittleEndian.Uint32(b[numberAt:]); {
		case n == num+1 && b[6] == typeTrailer && end == trailerSize:
			return chunk{size: end}, ended
		case n != num:
			return chunk{}, bad
		}
	}
	if binary.LittleEndian.Uint32(b) != masked(crc32.Checksum(b[6:end], castagnoli)) {
		return chunk{}, bad
	}
	part := (b[6] - 1) % 4 // all, first, middle, last
	c := chunk{size: end, first: part < 2, last: part == 0 || part == 3, bytes: b[head:end]}
	if head > durableAt {
		c.durable = int64(min(binary.LittleEndian.Uint64(b[durableAt:]), 1<<62))
	}
	return c, whole
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// SoundTo reports whether a log or manifest is whole up to a length, or where it is not.
func SoundTo(r io.Reader, num uint32, length int64) (at int64, ok bool, err error) {
	block := make([]byte, chunkBlock)
	for at < length {
		n, err := io.ReadFull(r, block)
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			return at, false, err
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return at, false, err
		}
		for b := block[:n]; len(b) > 0 && at < length; {
			c, v := chunkAt(b, num)
			switch v {
			case bad:
				return at, false, nil
			case ended:
				return at, at+int64(c.size) >= length, nil
			case blank:
				c.size = len(b)
			case whole:
			}
			b = b[c.size:]
			at += int64(c.size)
		}
	}
	return at, true, nil
}

// turnBack turns back the one bit that may have turned in a chunk, which b begins with.
func turnBack(b []byte, num uint32) bool {
	for bit := range 8 * min(len(b), headerSizes[len(headerSizes)-1]) {
		b[bit/8] ^= 1 << (bit % 8)
		if _, v := chunkAt(b, num); v == whole {
			return true
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if len(b) < 7 {
		return false
	}
	// A bit changes the checksum by what depends on where it is alone.
	end := 6
	if t := int(b[6]); t < len(headerSizes) {
		end = headerSizes[t] + int(binary.LittleEndian.Uint16(b[4:]))
	}
	if end <= 6 || end > len(b) {
		return false
	}
	differs := crc32.Checksum(b[6:end], castagnoli) ^ unmasked(binary.LittleEndian.Uint32(b))
	var of [8]uint32
	for bit := range of {
		of[bit] = castagnoli[1<<bit]
	}
	for i := end - 1; i >= 6; i-- {
		for bit, c := range of {
			if c == differs {
				b[i] ^= 1 << bit
				_, v := chunkAt(b, num)
				return v == whole
			}
			of[bit] = castagnoli[byte(c)] ^ c>>8
		}
	}
	return false
}
