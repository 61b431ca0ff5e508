package disk

import (
	"bytes"
	"encoding/binary"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// The first byte of a key says what the record is; the table is in the package comment.
const (
	kindBody     = 'b'
	kindCount    = 'c'
	kindFacts    = 'd'
	kindExpiry   = 'e'
	kindHeader   = 'h'
	kindMessage  = 'm'
	kindPiece    = 'p'
	kindMark     = 'q'
	kindNumbers  = 'n'
	kindReceipt  = 'R'
	kindTerms    = 's'
	kindMeta     = 'M'
	destKeySize  = 9
	seqKeySize   = 17
	pieceKeySize = 21
	expirySize   = 25
	receiptValue = len(store.Key{})
)

func destKey(buf []byte, kind byte, id store.DestID) []byte {
	buf = append(buf, kind)
	return binary.BigEndian.AppendUint64(buf, uint64(id))
}

func seqKey(buf []byte, kind byte, id store.DestID, seq store.Seq) []byte {
	return binary.BigEndian.AppendUint64(destKey(buf, kind, id), uint64(seq))
}

// seqOf gives the sequence of a key made by seqKey, 0 for any other.
func seqOf(key []byte) store.Seq {
	if len(key) != seqKeySize {
		return 0
	}
	return store.Seq(binary.BigEndian.Uint64(key[destKeySize:]))
}

// pieceKey is the key of a piece of a body.
func pieceKey(buf []byte, id store.DestID, seq store.Seq, n uint64) []byte {
	return binary.BigEndian.AppendUint32(seqKey(buf, kindPiece, id, seq), uint32(n))
}

// expiryKey orders by time; the sign bit is turned so that times before 1970 come first.
func expiryKey(buf []byte, r store.ExpiredRef) []byte {
	buf = append(buf, kindExpiry)
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Expiration)^1<<63)
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Dest))
	return binary.BigEndian.AppendUint64(buf, uint64(r.Seq))
}

func parseExpiry(key []byte) (r store.ExpiredRef, ok bool) {
	if len(key) != expirySize {
		return r, false
	}
	r.Expiration = int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63)
	r.Dest = store.DestID(binary.BigEndian.Uint64(key[9:]))
	r.Seq = store.Seq(binary.BigEndian.Uint64(key[17:]))
	return r, true
}

// peerKey is the prefix of all receipts of a (destination, peer), and the key of their mark. The
// length before the name keeps one peer's keys out of another's range.
func peerKey(buf []byte, kind byte, id store.DestID, peer message.BrokerID) []byte {
	buf = destKey(buf, kind, id)
	buf = binary.AppendUvarint(buf, uint64(len(peer)))
	return append(buf, peer...)
}

// pastPeer is above all keys of a peer.
func pastPeer(kind byte, id store.DestID, peer message.BrokerID) []byte {
	return append(peerKey(nil, kind, id, peer), bytes.Repeat([]byte{0xff}, 9)...)
}

func receiptKey(buf []byte, id store.DestID, peer message.BrokerID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(peerKey(buf, kindReceipt, id, peer), n)
}

// peerOf gives the peer of a key made by peerKey or receiptKey.
func peerOf(key []byte) (message.BrokerID, bool) {
	if len(key) < destKeySize {
		return "", false
	}
	n, size := binary.Uvarint(key[destKeySize:])
	name := key[min(len(key), destKeySize+max(0, size)):]
	if size <= 0 || n > uint64(len(name)) {
		return "", false
	}
	return message.BrokerID(name[:n]), true
}

func numbersKey(buf []byte, id store.DestID, p message.ProducerID) []byte {
	buf = peerKey(buf, kindNumbers, id, message.BrokerID(p.Connection))
	buf = binary.BigEndian.AppendUint64(buf, uint64(p.Session))
	return binary.BigEndian.AppendUint64(buf, uint64(p.Value))
}

// producerOf gives the producer of a key made by numbersKey.
func producerOf(key []byte) (p message.ProducerID, ok bool) {
	name, ok := peerOf(key)
	if rest := len(key) - len(peerKey(nil, kindNumbers, 0, name)); !ok || rest != 16 {
		return p, false
	}
	rest := key[len(key)-16:]
	return message.ProducerID{Connection: message.ConnectionID(name),
		Session: int64(binary.BigEndian.Uint64(rest)),
		Value:   int64(binary.BigEndian.Uint64(rest[8:]))}, true
}

func metaKey(name string) []byte { return append([]byte{kindMeta}, name...) }
