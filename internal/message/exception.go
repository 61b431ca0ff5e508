package message

import "errors"

// classes map kinds of errors to what a JMS client knows. The names are javax.jms: clients of 6.x
// translate them, those of 5.x know no others.
var classes = map[ErrorKind]string{
	Internal:           "javax.jms.JMSException",
	NotFound:           "javax.jms.JMSException",
	Denied:             "java.lang.SecurityException",
	Limit:              "javax.jms.ResourceAllocationException",
	Duplicate:          "javax.jms.JMSException",
	Protocol:           "javax.jms.JMSException",
	Unavailable:        "javax.jms.JMSException",
	Corrupt:            "javax.jms.JMSException",
	IllegalState:       "java.lang.IllegalStateException",
	InvalidClientID:    "javax.jms.InvalidClientIDException",
	InvalidDestination: "javax.jms.InvalidDestinationException",
	InvalidSelector:    "javax.jms.InvalidSelectorException",
	NoTempDestination:  "org.apache.activemq.DestinationDoesNotExistException",
	RolledBack:         "javax.jms.TransactionRolledBackException",
}

// Exception gives an error the form it travels in, to clients and to peers.
func Exception(err error) *Throwable {
	if t, ok := errors.AsType[*Throwable](err); ok {
		return t
	}
	return &Throwable{Class: classes[KindOf(err)], Message: err.Error()}
}
