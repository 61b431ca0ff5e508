package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"hopwire"
	"hopwire/internal/manage"
	"hopwire/internal/message"
	"hopwire/internal/plural"
)

// words are the longer texts of the help, and what else its tags name.
var words = kong.Vars{
	"version":   hopwire.About(),
	"brokerURL": "tcp://localhost:61616",

	"anyBrokerURL": "The broker: tcp://host:port or failover:(tcp://...). Also --amqurl.",
	"anyDest": "Where to or from: queue://NAME, topic://NAME, or the name of a queue;" +
		" queue://TEST if left out.",

	"brokerFlag": "Only the broker of this name; may be given several times.",
	"pidFlag":    "Only brokers of this process, which hopwire status shows.",

	"statusAll": "Show all there is: also empty and temporary destinations, and long lists whole.",
	"statusSort": "Order of destinations and durable subscriptions: pending puts what is stuck, and" +
		" most, first.",

	"explainDest": "A queue, or topic://NAME, which tells of its durable subscriptions, or" +
		" temp-queue://NAME; a pattern (A.* or A.>) or list (A,B) explains those that have messages.",

	"purgeDest": "A queue, or topic://NAME: of it what its durable subscriptions keep and cannot be" +
		" read.",

	"startFile": "Configuration files, one broker each; xbean:FILE, as for ActiveMQ, is FILE.",
	"startCompat": "Whose defaults hold: 5 for ActiveMQ up to 5.17, 6 for 5.18 and later. 0, if" +
		" left out, is 5 with a warning about settings that only newer versions have.",
	"startDefine": "Value of a placeholder, which the file writes as ${...} with the name inside." +
		" The file needs a PropertyPlaceholderConfigurer bean for that, as in ActiveMQ; what that" +
		" bean's property files define comes first.",

	"repairHelp": `The broker must be stopped. What can be read is copied into a new store, which
takes the place of the old one; that stays beside it, so there must be as much room again, and
64 MiB. What cannot be read is counted for each destination. A store without damage is left as it
is.
Exit codes: 0 when it is repaired, or nothing is damaged; 1 when it cannot be repaired, or the disk
has no room for that; 2 for a wrong file or user; 3 when the broker runs.`,

	"producerPersistent": "Messages survive the broker's end. So if left out; --persistent=false" +
		" sends non-persistent ones.",
	"producerSleep":      "Milliseconds between two messages.",
	"producerBatch":      "Messages of a transaction; 0 is none.",
	"producerTTL":        "Milliseconds until messages expire; 0 is never.",
	"producerSize":       "Send byte messages of this size, up to 100 MiB less 64 KiB.",
	"producerTextSize":   "Send texts of this size, up to 100 MiB less 64 KiB.",
	"producerPayloadURL": "Send the text of a file (file:PATH, or a path) or http address.",
	"producerGroupID":    "Group that the messages belong to.",

	"consumerHelp": `Exit codes: 0 when the messages asked for came, or, without --messageCount,
when nothing more came within --wait; 1 when fewer came than --messageCount says, or something
failed; 2 for a wrong command line; 3 when the broker cannot be reached.`,
	"consumerCount": "Messages that each thread takes before it ends; 1000 if left out. If given," +
		" fewer are a failure.",
	"consumerAckMode": "AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE, DUPS_OK_ACKNOWLEDGE," +
		" INDIVIDUAL_ACKNOWLEDGE or SESSION_TRANSACTED.",
	"consumerDurable": "Use a durable subscription of a topic, named after the thread (consumer-1," +
		" ...). It keeps what is sent while the consumer is away.",
	"consumerClientID": "Client id; --durable needs one.",
	"consumerWait": "End when nothing came so long; with a unit, as 500ms or 10s. 0 waits for ever," +
		" as ActiveMQ's consumer does.",

	"browseDest": "Names of queues. A pattern, A.* (one element) or A.> (any number), shows the" +
		" messages of all queues that it fits, and A,B those of both; quote it for the shell.",
	"browseSame": "The same as an argument.",
	"browseURL":  "The broker: tcp://host:port or failover:(tcp://...). Also --brokerUrl.",
}

const encrypted = "there is none; what ActiveMQ encrypted is read with ACTIVEMQ_ENCRYPTION_PASSWORD"

// elsewhere tells what does here what commands of ActiveMQ do that have other names.
var elsewhere = map[string]string{
	"bstat":         "hopwire status shows brokers, and hopwire explain why messages wait",
	"dstat":         "hopwire status shows destinations",
	"query":         "hopwire status shows brokers, their bridges and destinations",
	"list":          "hopwire status lists the running brokers",
	"restart":       "hopwire stop returns when the broker is gone; then hopwire start FILE",
	"console":       "hopwire start FILE runs brokers in the foreground",
	"create":        "no instance is made: hopwire start FILE runs any activemq.xml",
	"export":        "hopwire browse QUEUE prints messages; nothing writes them to a file",
	"encrypt":       encrypted,
	"decrypt":       encrypted,
	"journal-audit": "there is no journal of ActiveMQ; messages are consumed from the old broker",
}

// instead tells what does what others would call so.
var instead = map[string]string{
	"check":    "hopwire start --check FILE tells what a file means here",
	"validate": "hopwire start --check FILE tells what a file means here",
	"move":     "nothing moves messages but clients: hopwire consumer and hopwire producer",
	"dlq":      "hopwire browse ActiveMQ.DLQ prints dead letters, and hopwire status counts them",
	"import":   "nothing reads messages from a file",
}

// meant tells what to use for a command that is none here, "" when nobody knows.
func meant(word string) string {
	if text := elsewhere[word]; text != "" {
		return word + " is a command of ActiveMQ; here " + text
	}
	if text := instead[word]; text != "" {
		return "no command is called " + word + "; " + text
	}
	return ""
}

// waitsMost is how many reasons a line of status names.
const waitsMost = 3

// waiting tells why messages of a queue wait; "" when none do, or just go.
func waiting(d *manage.Destination) string {
	var why []string
	for _, r := range d.Waits {
		if message.Reason(r) == message.Committing {
			continue
		}
		text := message.Reason(r).Words()
		if text == "" {
			text = r
		}
		if !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	if len(why) == 0 {
		return ""
	}
	more := ""
	if len(why) > waitsMost {
		why, more = why[:waitsMost], ", ..."
	}
	return strings.Join(why, ", ") + more
}

func isTopic(name string) bool { return strings.HasPrefix(name, "topic://") }

// namedMost is how many queues a line of status names that wait for the same reasons.
const namedMost = 3

// waitingLines tells of queues whose messages wait, in one line for those with the same reasons.
func waitingLines(list []manage.Destination) (lines []string) {
	byWhy := map[string][]*manage.Destination{}
	var whys []string
	for i := range list {
		why := waiting(&list[i])
		if why != "" && byWhy[why] == nil {
			whys = append(whys, why)
		}
		byWhy[why] = append(byWhy[why], &list[i])
	}
	for _, why := range whys {
		them, names, n := byWhy[why], []string{}, int64(0)
		for _, d := range them {
			names = append(names, d.Name)
			n += d.Size - int64(d.InFlight)
		}
		see, more := strings.TrimPrefix(names[0], "queue://"), ""
		if len(names) > 1 {
			see = "QUEUE"
			if slices.ContainsFunc(names, isTopic) {
				see = "DESTINATION"
			}
		}
		if k := len(names) - namedMost; k > 0 {
			names, more = names[:namedMost], fmt.Sprintf(" and %d more", k)
		}
		wait := ""
		if n > 0 {
			wait = " " + plural.Of(n, "message") + " " + plural.Form(n, "waits", "wait") + ":"
		}
		lines = append(lines, fmt.Sprintf("%s%s:%s %s; see hopwire explain %s",
			strings.Join(names, ", "), more, wait, why, see))
	}
	return lines
}
