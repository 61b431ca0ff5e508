package bridge

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"hopwire/internal/message"
)

// Set gives an attribute its value, by its name in activemq.xml. Times are ms; networkTTL sets
// both TTLs, so a later messageTTL or consumerTTL wins. It reports whether it knows the name.
func (o *Options) Set(name, value string) (known bool, err error) {
	if p := o.field(name); p != nil {
		return true, assign(name, value, p)
	}
	switch name {
	case "networkTTL":
		if err = assign(name, value, &o.MessageTTL); err == nil {
			o.ConsumerTTL = o.MessageTTL
		}
		return true, err
	case "inDoubtTimeout":
		if value == "never" {
			o.InDoubtTimeout = NeverTimeout
			return true, nil
		}
		return true, assign(name, value, &o.InDoubtTimeout)
	}
	return false, nil
}

// field gives the place of a plain attribute.
func (o *Options) field(name string) any {
	switch name {
	case "name":
		return &o.Name
	case "duplex":
		return &o.Duplex
	case "staticBridge":
		return &o.StaticBridge
	case "dynamicOnly":
		return &o.DynamicOnly
	case "conduitSubscriptions":
		return &o.ConduitSubscriptions
	case "conduitNetworkQueueSubscriptions":
		return &o.ConduitNetworkQueueSubscriptions
	case "dynamicallyIncludedDestinations":
		return &o.DynamicallyIncluded
	case "staticallyIncludedDestinations":
		return &o.StaticallyIncluded
	case "excludedDestinations":
		return &o.Excluded
	case "destinationFilter":
		return &o.DestinationFilter
	case "bridgeTempDestinations":
		return &o.BridgeTempDestinations
	case "decreaseNetworkConsumerPriority":
		return &o.DecreaseNetworkConsumerPriority
	case "consumerPriorityBase":
		return &o.ConsumerPriorityBase
	case "consumerTTL":
		return &o.ConsumerTTL
	case "messageTTL":
		return &o.MessageTTL
	case "prefetchSize":
		return &o.PrefetchSize
	case "advisoryPrefetchSize":
		return &o.AdvisoryPrefetchSize
	case "advisoryAckPercentage":
		return &o.AdvisoryAckPercentage
	case "dispatchAsync":
		return &o.DispatchAsync
	case "alwaysSyncSend":
		return &o.AlwaysSyncSend
	case "suppressDuplicateQueueSubscriptions":
		return &o.SuppressDuplicateQueueSubscriptions
	case "suppressDuplicateTopicSubscriptions":
		return &o.SuppressDuplicateTopicSubscriptions
	case "advisoryForFailedForward":
		return &o.AdvisoryForFailedForward
	case "clientIdToken":
		return &o.ClientIDToken
	case "useBrokerNamesAsIdSeed":
		return &o.UseBrokerNamesAsIDSeed
	}
	return o.ownField(name)
}

// ownField gives the place of attributes that do not travel, and of Hopwire's own.
func (o *Options) ownField(name string) any {
	switch name {
	case "userName":
		return &o.UserName
	case "password":
		return &o.Password
	case "remoteUserName":
		return &o.RemoteUserName
	case "remotePassword":
		return &o.RemotePassword
	case "forwardAhead":
		return &o.ForwardAhead
	case "initialReconnectDelay":
		return &o.InitialReconnectDelay
	case "maxReconnectDelay":
		return &o.MaxReconnectDelay
	case "useExponentialBackOff":
		return &o.UseExponentialBackOff
	case "minConnectTime":
		return &o.MinConnectTime
	}
	return nil
}

func assign(name, value string, p any) error {
	value = strings.TrimSpace(value)
	var err error
	var n int64
	switch p := p.(type) {
	case *string:
		*p = value
	case *bool:
		*p, err = strconv.ParseBool(strings.ToLower(value))
	case *int8:
		n, err = strconv.ParseInt(value, 10, 8)
		*p = int8(n)
	case *int32:
		n, err = strconv.ParseInt(value, 10, 32)
		*p = int32(n)
	case *int:
		n, err = strconv.ParseInt(value, 10, 32)
		*p = int(n)
	case *time.Duration:
		n, err = strconv.ParseInt(value, 10, 40)
		*p = time.Duration(n) * time.Millisecond
	case *[]message.Destination:
		*p = parseList(value)
	}
	if err != nil {
		return message.Errorf(message.Protocol, "%s=%q: %w", name, value, err)
	}
	return nil
}

// parseList reads "[queue://A, topic://B?option]", with or without the brackets.
func parseList(text string) []message.Destination {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
	var out []message.Destination
	for part := range strings.SplitSeq(text, ",") {
		if d, _ := message.ParseDestination(part, message.Queue); d.Name != "" {
			out = append(out, d)
		}
	}
	return out
}

func listText(list []message.Destination) string {
	var parts []string
	for _, d := range list {
		parts = append(parts, d.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// travels are the attributes that the initiator of a bridge tells, as ActiveMQ does. Credentials
// do not travel, nor does networkTTL: both TTLs do.
var travels = []string{"name", "duplex", "staticBridge", "dynamicOnly", "conduitSubscriptions",
	"conduitNetworkQueueSubscriptions", "dynamicallyIncludedDestinations",
	"staticallyIncludedDestinations", "excludedDestinations", "destinationFilter",
	"bridgeTempDestinations", "decreaseNetworkConsumerPriority", "consumerPriorityBase",
	"consumerTTL", "messageTTL", "prefetchSize", "advisoryPrefetchSize",
	"advisoryAckPercentage", "dispatchAsync", "alwaysSyncSend",
	"suppressDuplicateQueueSubscriptions", "suppressDuplicateTopicSubscriptions",
	"advisoryForFailedForward", "clientIdToken", "useBrokerNamesAsIdSeed", "forwardAhead"}

// properties is the text of BrokerInfo.networkProperties: a Java properties file.
func (o *Options) properties(self message.BrokerInfo) string {
	values := map[string]string{"brokerName": self.Name, "brokerURL": self.URL}
	for _, name := range travels {
		values[name] = valueText(o.field(name))
	}
	for _, name := range []string{"dynamicallyIncludedDestinations",
		"staticallyIncludedDestinations", "excludedDestinations"} {
		if values[name] == "[]" {
			delete(values, name)
		}
	}
	topic := o.advisoryTopic().Name
	values["destinationFilter"], _, _ = strings.Cut(topic, ","+tempQueueTopic)
	values["inDoubtTimeout"] = "never"
	if o.InDoubtTimeout != NeverTimeout {
		values["inDoubtTimeout"] = strconv.FormatInt(o.InDoubtTimeout.Milliseconds(), 10)
	}
	return encodeProperties(values)
}

func valueText(p any) string {
	switch p := p.(type) {
	case *string:
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *int8:
		return strconv.Itoa(int(*p))
	case *int32:
		return strconv.Itoa(int(*p))
	case *int:
		return strconv.Itoa(*p)
	case *[]message.Destination:
		return listText(*p)
	}
	return ""
}

// optionsOf reads the settings that the initiator of a duplex bridge tells. Names that are not
// known, and values that make no sense, leave the default.
func optionsOf(text string) Options {
	o := DefaultOptions(5)
	values := decodeProperties(text)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		before := o
		if _, err := o.Set(name, values[name]); err != nil {
			o = before
		}
	}
	o.UserName, o.Password, o.RemoteUserName, o.RemotePassword = "", "", "", ""
	return o
}

// encodeProperties writes a Java properties text, keys in order.
func encodeProperties(values map[string]string) string {
	var b strings.Builder
	b.WriteString("#\n")
	for _, k := range slices.Sorted(maps.Keys(values)) {
		escapeProperty(&b, k, true)
		b.WriteByte('=')
		escapeProperty(&b, values[k], false)
		b.WriteByte('\n')
	}
	return b.String()
}

func escapeProperty(b *strings.Builder, text string, key bool) {
	for i, u := range utf16.Encode([]rune(text)) {
		switch {
		case u == ' ' && (key || i == 0), u == ':', u == '=', u == '#', u == '!', u == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(u))
		case u == '\t':
			b.WriteString(`\t`)
		case u == '\n':
			b.WriteString(`\n`)
		case u == '\r':
			b.WriteString(`\r`)
		case u == '\f':
			b.WriteString(`\f`)
		case u < 0x20 || u > 0x7e:
			const digits = "0123456789ABCDEF"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[u>>shift&15])
			}
		default:
			b.WriteByte(byte(u))
		}
	}
}

// decodeProperties reads a Java properties text: comments, continued lines, "=" or ":" or blanks
// between key and value, escapes.
func decodeProperties(text string) map[string]string {
	out := map[string]string{}
	for _, line := range logicalLines(text) {
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		i := 0
		for i < len(line) && !strings.ContainsRune("=: \t\f", rune(line[i])) {
			if line[i] == '\\' {
				i++
			}
			i++
		}
		i = min(i, len(line))
		value := strings.TrimLeft(line[i:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		out[unescapeProperty(line[:i])] = unescapeProperty(value)
	}
	return out
}

// logicalLines joins lines that end in an odd number of backslashes with their next.
func logicalLines(text string) []string {
	var out []string
	joined := ""
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r == '\n' || r == '\r'
	}) {
		line = strings.TrimLeft(line, " \t\f")
		tail := len(line) - len(strings.TrimRight(line, `\`))
		comment := joined == "" && line != "" && (line[0] == '#' || line[0] == '!')
		if tail%2 == 1 && !comment {
			joined += line[:len(line)-1]
			continue
		}
		out = append(out, joined+line)
		joined = ""
	}
	return append(out, joined)
}

func unescapeProperty(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var units []uint16
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if r != '\\' || rest == "" {
			units = append(units, utf16.Encode([]rune{r})...)
			continue
		}
		e := rest[0]
		rest = rest[1:]
		switch e {
		case 'u':
			if len(rest) >= 4 {
				if n, err := strconv.ParseUint(rest[:4], 16, 16); err == nil {
					units, rest = append(units, uint16(n)), rest[4:]
				}
			}
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		default:
			units = append(units, uint16(e))
		}
	}
	return string(utf16.Decode(units))
}
