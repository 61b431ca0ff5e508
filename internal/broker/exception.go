package broker

import (
	"errors"
	"sort"

	"hopwire/internal/message"
)

// exceptionClass maps kinds of errors to what a JMS client knows. The names are javax.jms: clients
// of 6.x translate them, those of 5.x know no others.
var exceptionClass = map[message.ErrorKind]string{
	message.Internal:           "javax.jms.JMSException",
	message.NotFound:           "javax.jms.JMSException",
	message.Denied:             "java.lang.SecurityException",
	message.Limit:              "javax.jms.ResourceAllocationException",
	message.Duplicate:          "javax.jms.JMSException",
	message.Protocol:           "javax.jms.JMSException",
	message.Unavailable:        "javax.jms.JMSException",
	message.Corrupt:            "javax.jms.JMSException",
	message.IllegalState:       "java.lang.IllegalStateException",
	message.InvalidClientID:    "javax.jms.InvalidClientIDException",
	message.InvalidDestination: "javax.jms.InvalidDestinationException",
	message.InvalidSelector:    "javax.jms.InvalidSelectorException",
	message.NoTempDestination:  "org.apache.activemq.DestinationDoesNotExistException",
	message.RolledBack:         "javax.jms.TransactionRolledBackException",
}

// exception gives an error the form it travels in.
func exception(err error) *message.Throwable {
	if t, ok := errors.AsType[*message.Throwable](err); ok {
		return t
	}
	return &message.Throwable{Class: exceptionClass[message.KindOf(err)], Message: err.Error()}
}

// sortedProducers gives producers in the order of their ids, so that what is told about them is
// the same in every run.
func sortedProducers(m map[message.ProducerID]*producer) []*producer {
	out := make([]*producer, 0, len(m))
	for _, p := range m {
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i].info.ID, out[j].info.ID
		if a.Session != b.Session {
			return a.Session < b.Session
		}
		return a.Value < b.Value
	})
	return out
}
