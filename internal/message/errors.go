package message

import (
	"errors"
	"fmt"
)

// ErrorKind says what kind of failure an error is; fronts map it to their protocol's terms.
type ErrorKind uint8

// The kinds of errors.
const (
	Internal           ErrorKind = iota
	NotFound                     // the named thing does not exist
	Denied                       // no right to do it, or wrong credentials
	Limit                        // a size, count or space limit
	Duplicate                    // it exists already
	Protocol                     // the peer broke the protocol
	Unavailable                  // not now: stopping, no peer, no disk
	Corrupt                      // stored or received bytes make no sense
	IllegalState                 // not in this state
	InvalidClientID              // client id missing or in use
	InvalidDestination           // no such destination, or not for this
	InvalidSelector              // the selector does not parse
	NoTempDestination            // the temporary destination, named by the text alone, is gone
	RolledBack                   // the transaction was rolled back
)

// Error is a failure with its kind. Text is one line that says what and what to do.
type Error struct {
	Kind  ErrorKind
	Text  string
	Cause error
}

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error; a %w verb keeps the cause.
func Errorf(kind ErrorKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Text: err.Error(), Cause: errors.Unwrap(err)}
}

// KindOf gives the kind of an error, Internal for errors without one.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
