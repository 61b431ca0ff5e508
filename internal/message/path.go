package message

import (
	"strconv"
	"strings"
)

// A broker path names the brokers that a message or a consumer has been at, one element a visit.
// Replay may send a message to and fro for ever, but an OpenWire array ends at 32,767 elements and
// every hop would carry them all. So a path that gets long is folded: each broker stays once, and
// behind it stands how often it was there beside that, as "ID:a x37". What is asked of a path stays
// as it was: who is in it, and how often, which receipts depend on. Only the order goes. To a
// broker that knows nothing of this a count is one more name, of a broker it never met.

// PathFold is the length above which a path is folded.
const PathFold = 100

const pathTimes = " x"

// Visited reports whether id is in path.
func Visited(path []BrokerID, id BrokerID) bool { return Visits(path, id) > 0 }

// Visits counts how often id is in path.
func Visits(path []BrokerID, id BrokerID) int {
	n := 0
	for _, p := range path {
		switch {
		case p == id:
			n++
		case len(p) > len(id) && p[:len(id)] == id:
			if name, times := pathElement(p); name == id {
				n += times
			}
		}
	}
	return n
}

// Brokers counts the brokers of a path, each once.
func Brokers(path []BrokerID) int {
	n := 0
	for i, p := range path {
		if id, _ := pathElement(p); !Visited(path[:i], id) {
			n++
		}
	}
	return n
}

// AppendPath gives path with id behind it, never writing into path's array.
func AppendPath(path []BrokerID, id BrokerID) []BrokerID {
	out := make([]BrokerID, len(path)+1)
	copy(out, path)
	out[len(path)] = id
	if len(out) > PathFold {
		return foldPath(out)
	}
	return out
}

func foldPath(path []BrokerID) []BrokerID {
	names, times := countPath(path)
	out := make([]BrokerID, 0, 2*len(names))
	for _, id := range names {
		out = append(out, id)
		if n := times[id]; n > 1 {
			out = append(out, id+pathTimes+BrokerID(strconv.Itoa(n-1)))
		}
	}
	return out
}

func countPath(path []BrokerID) (names []BrokerID, times map[BrokerID]int) {
	times = make(map[BrokerID]int, len(path))
	for _, p := range path {
		id, n := pathElement(p)
		if times[id] == 0 {
			names = append(names, id)
		}
		times[id] += n
	}
	return names, times
}

// pathElement gives the broker that an element stands for, and how many visits.
func pathElement(p BrokerID) (id BrokerID, visits int) {
	i := strings.LastIndex(string(p), pathTimes)
	if i <= 0 {
		return p, 1
	}
	digits := string(p[i+len(pathTimes):])
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || digits[0] == '0' {
		return p, 1 // a name that happens to look like it
	}
	return p[:i], int(n)
}
