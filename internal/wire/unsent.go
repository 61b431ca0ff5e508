package wire

import (
	"errors"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// Unsendable is the answer that a bridge gets, instead of the peer's, to a message that could not
// be encoded for the peer (Config.Unsent): the class of its exception tells whether the size was
// the cause.
func Unsendable(m *message.Message, err error) *message.Response {
	reason := message.NotEncodable
	if _, big := errors.AsType[*openwire.FrameTooBigError](err); big {
		reason = message.FrameTooBig
	}
	return &message.Response{Correlation: m.CommandID,
		Exception: &message.Throwable{Class: reason.Class(), Message: err.Error()}}
}
