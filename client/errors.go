package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"hopwire/internal/transport"
	"hopwire/openwire"
)

// The errors that a program can act on; errors.Is finds them.
var (
	// ErrClosed is a call on something that was closed.
	ErrClosed = errors.New("closed")
	// ErrUnavailable means that no broker could be reached, or that the connection to it was lost
	// and there is none to replace it.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrInDoubt is a commit whose answer was lost: it may or may not have taken place. The
	// transaction is over for the client; what was not committed comes again.
	ErrInDoubt = errors.New("commit in doubt")
	// ErrRolledBack is a commit that could not be, and was rolled back.
	ErrRolledBack = errors.New("transaction rolled back")
	// ErrOwnHandler is a call by a handler that would wait for that handler: let it return first,
	// or make the call on another goroutine.
	ErrOwnHandler = errors.New("called by a handler that it would wait for")
	// ErrSlowConsumer ends a consumer that the broker closed because it was slow. What it had goes to
	// others.
	ErrSlowConsumer = errors.New("the broker ended it as a slow consumer (slowConsumerStrategy)")
	// ErrInterrupted ends a browser whose connection was replaced.
	ErrInterrupted = errors.New("interrupted by a lost connection")
)

// BrokerError is what a broker answered instead of doing what it was asked.
type BrokerError struct {
	// Class is the Java class of the exception, e.g. "javax.jms.InvalidClientIDException"; ActiveMQ 6
	// says "jakarta.jms." instead of "javax.jms.".
	Class   string
	Message string
}

// Error is the broker's message, or the class if it sent none. The exception about a destination
// that is not there has no text but its name.
func (e *BrokerError) Error() string {
	switch {
	case e.Message == "":
		return "broker: " + e.Class
	case !strings.HasSuffix(e.Class, ".DestinationDoesNotExistException"):
		return "broker: " + e.Message
	case strings.HasPrefix(e.Message, "temp-"):
		return "broker: no such temporary destination: " + e.Message
	}
	return "broker: no such destination: " + e.Message
}

func brokerError(t *openwire.Throwable) error {
	if t == nil {
		return &BrokerError{Class: "java.lang.Exception", Message: "unexplained exception"}
	}
	return &BrokerError{Class: t.Class, Message: t.Message}
}

// answerError is the error of a response, nil if it is none.
func answerError(answer openwire.DataStructure) error {
	if x, ok := answer.(*openwire.ExceptionResponse); ok {
		return brokerError(x.Exception)
	}
	return nil
}

// unavailable marks an error of the network.
func unavailable(addr string, err error) error {
	return fmt.Errorf("%s: %w: %w", addr, ErrUnavailable, inWords(err))
}

// inWords is an error of a connection that was made, without what package net repeats.
func inWords(err error) error {
	//nolint:errorlint // what is wrapped has words of its own
	if _, is := err.(*net.OpError); is || err == io.EOF || err == io.ErrUnexpectedEOF {
		return transport.InWords(err, 0)
	}
	if s, is := errors.AsType[*openwire.StrangerError](err); is {
		return &noBroker{s}
	}
	return err
}

// noBroker is a peer that was dialled and speaks another protocol.
type noBroker struct{ stranger *openwire.StrangerError }

func (e *noBroker) Error() string { return e.stranger.Answer() }
func (e *noBroker) Unwrap() error { return e.stranger }
