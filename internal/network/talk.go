package network

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/message"
)

// TalkKind is the kind of a Talk.
type TalkKind uint8

// The kinds of talk.
const (
	// Ask asks which of Keys the peer has taken durably. It is answered by Known with the same ID,
	// after the peer has ended all connections of the asker that are not among Links.
	Ask TalkKind = iota + 1
	// Known answers: one flag per key, in the order asked.
	Known
	// Later says that the answer to an Ask still comes: what was asked for is not on the disk yet. It
	// is said every LaterEvery, to askers that read Seen.
	Later
)

// LaterEvery is how often a broker says that its answer comes later.
const LaterEvery = 10 * time.Second

// SayLater calls say every LaterEvery, until answered is called or say reports that nobody listens
// any more.
func SayLater(after func(time.Duration, func()), say func() bool) (answered func()) {
	over := false
	var again func()
	again = func() {
		if !over && say() {
			after(LaterEvery, again)
		}
	}
	after(LaterEvery, again)
	return func() { over = true }
}

var talkNames = [...]string{Ask: "ask", Known: "known", Later: "later"}

// Talk is what Hopwire brokers say to each other beside OpenWire: the text of a ControlCommand.
// Only peers that both announced a HopwireLevel talk.
//
//	hopwire/1 ask 7
//	link "ID:a-1:2"
//	queue "orders.in" <key><key>…
//	hopwire/1 later 7
//	hopwire/1 known 7 0110
//
// Either may end its first line with the word "seen": an Ask whose asker reads it, and the Known
// for it whose sender means it (Seen). Keys are unpadded URL base64, 22 characters each.
type Talk struct {
	Kind  TalkKind
	ID    uint64
	Links []message.ConnectionID // the asker's connections at the peer; none says nothing of them
	Keys  []DoubtKey
	Known []bool
	// Seen, of an Ask, says that the answer may have it. There it says that what is not known may
	// have been given to a client before the peer was killed.
	Seen bool
}

// Limits of one Talk: OpenWire counts the bytes of a string in 16 bits.
const (
	MaxTalkKeys  = 500
	MaxTalkLinks = 64
	maxTalkBytes = 60_000
	linkWord     = "link "
	seenWord     = "seen"
	keyChars     = 22
	talkPrefix   = "hopwire/"
	talkVersion  = "1"
)

var kindWords = [...]string{message.Queue: "queue", message.Topic: "topic",
	message.TempQueue: "temp-queue", message.TempTopic: "temp-topic"}

// FitsTalk is how many of the first keys go into one Talk beside the links: at least one, at most
// MaxTalkKeys.
func FitsTalk(links []message.ConnectionID, keys []DoubtKey) int {
	size := 64
	for _, l := range links {
		size += len(strconv.QuoteToASCII(string(l))) + len(linkWord) + 1
	}
	for i, k := range keys {
		if i == 0 || k.Destination != keys[i-1].Destination {
			size += len(strconv.QuoteToASCII(k.Destination.Name)) + 16
		}
		size += keyChars
		if i > 0 && (i == MaxTalkKeys || size > maxTalkBytes) {
			return i
		}
	}
	return len(keys)
}

// LinksFit reports whether these links leave a Talk room for many keys.
func LinksFit(links []message.ConnectionID) bool {
	size := 0
	for _, l := range links {
		size += len(strconv.QuoteToASCII(string(l)))
	}
	return len(links) <= MaxTalkLinks && size < maxTalkBytes/4
}

// Encode gives the text.
func (t Talk) Encode() string {
	var b strings.Builder
	b.WriteString(talkPrefix + talkVersion + " " + talkNames[t.Kind] + " ")
	b.WriteString(strconv.FormatUint(t.ID, 10))
	if t.Kind == Known {
		b.WriteByte(' ')
		for _, k := range t.Known {
			b.WriteByte("01"[boolIndex(k)])
		}
	}
	if t.Seen {
		b.WriteString(" " + seenWord)
	}
	for _, l := range t.Links {
		b.WriteString("\n" + linkWord + strconv.QuoteToASCII(string(l)))
	}
	for i, k := range t.Keys {
		if i == 0 || k.Destination != t.Keys[i-1].Destination {
			b.WriteString("\n" + kindWords[k.Destination.Kind] + " ")
			b.WriteString(strconv.QuoteToASCII(k.Destination.Name) + " ")
		}
		b.WriteString(base64.RawURLEncoding.EncodeToString(k.Key[:]))
	}
	return b.String()
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// IsTalk reports whether the text of a ControlCommand is meant as Talk, of whatever version.
func IsTalk(text string) bool { return strings.HasPrefix(text, talkPrefix) }

// ParseTalk reads a text; an error of kind message.Protocol tells what is wrong with it.
func ParseTalk(text string) (Talk, error) {
	head, rest, _ := strings.Cut(text, "\n")
	f := strings.Split(head, " ")
	if len(f) < 3 || f[0] != talkPrefix+talkVersion {
		return Talk{}, message.Errorf(message.Protocol,
			"control command: %.40q is not in version %s of hopwire talk", head, talkVersion)
	}
	id, err := strconv.ParseUint(f[2], 10, 64)
	if err != nil {
		return Talk{}, message.Errorf(message.Protocol, "control command: id %.40q: %w", f[2], err)
	}
	t := Talk{ID: id, Seen: len(f) > 3 && f[len(f)-1] == seenWord}
	switch f[1] {
	case "known":
		t.Kind = Known
		if len(f) != 4 && (len(f) != 5 || !t.Seen) {
			return Talk{}, message.Errorf(message.Protocol, "control command: known without flags")
		}
		t.Known, err = parseFlags(f[3])
	case "later":
		t.Kind = Later
	case "ask":
		t.Kind = Ask
		if t.Links, rest, err = parseLinks(rest); err == nil {
			t.Keys, err = parseKeys(rest)
		}
	default:
		err = message.Errorf(message.Protocol, "control command: unknown word %.40q", f[1])
	}
	return t, err
}

func parseFlags(text string) ([]bool, error) {
	if len(text) > MaxTalkKeys {
		return nil, message.Errorf(message.Protocol,
			"control command: %d flags, the most is %d", len(text), MaxTalkKeys)
	}
	out := make([]bool, len(text))
	for i := range len(text) {
		if text[i] != '0' && text[i] != '1' {
			return nil, message.Errorf(message.Protocol, "control command: flag %q", text[i])
		}
		out[i] = text[i] == '1'
	}
	return out, nil
}

// parseLinks reads the lines about links and gives the others.
func parseLinks(text string) ([]message.ConnectionID, string, error) {
	var out []message.ConnectionID
	for strings.HasPrefix(text, linkWord) {
		line, rest, _ := strings.Cut(text, "\n")
		id, err := strconv.Unquote(line[len(linkWord):])
		if err != nil || id == "" || len(out) == MaxTalkLinks {
			return nil, "", message.Errorf(message.Protocol, "control command: line %.40q", line)
		}
		out, text = append(out, message.ConnectionID(id)), rest
	}
	return out, text, nil
}

func parseKeys(text string) ([]DoubtKey, error) {
	var out []DoubtKey
	for line := range strings.SplitSeq(text, "\n") {
		d, keys, ok := parseKeyLine(line)
		if !ok || keys == "" || len(keys)%keyChars != 0 {
			return nil, message.Errorf(message.Protocol, "control command: line %.40q", line)
		}
		if len(out)+len(keys)/keyChars > MaxTalkKeys {
			return nil, message.Errorf(message.Protocol,
				"control command: more than %d keys", MaxTalkKeys)
		}
		for ; keys != ""; keys = keys[keyChars:] {
			k := DoubtKey{Destination: d}
			raw, err := base64.RawURLEncoding.DecodeString(keys[:keyChars])
			if err != nil || len(raw) != len(k.Key) {
				return nil, message.Errorf(message.Protocol,
					"control command: key %.40q", keys[:keyChars])
			}
			copy(k.Key[:], raw)
			out = append(out, k)
		}
	}
	return out, nil
}

func parseKeyLine(line string) (d message.Destination, keys string, ok bool) {
	word, rest, ok := strings.Cut(line, " ")
	if !ok {
		return d, "", false
	}
	for k, w := range kindWords {
		if w == word && w != "" {
			d.Kind = message.Kind(k)
		}
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil || d.Kind == 0 {
		return d, "", false
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return d, "", false
	}
	d.Name = name
	keys, ok = strings.CutPrefix(rest[len(quoted):], " ")
	return d, keys, ok
}
