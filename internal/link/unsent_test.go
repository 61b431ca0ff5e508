package link

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/openwire"
)

func TestMessageThatCannotBeEncodedDoesNotEndTheLink(t *testing.T) {
	big := &openwire.FrameTooBigError{Size: 2, Limit: 1, Sending: true}
	for _, ask := range []bool{true, false} {
		m := &message.Message{}
		m.CommandID, m.ResponseRequired = 5, ask
		var got []message.Command
		unsent(nil, m, big, func(c message.Command) { got = append(got, c) })
		if r, ok := got[0].(*message.Response); len(got) != 1 || !ok || r.Correlation != 5 ||
			r.Exception.Class != message.FrameTooBig.Class() {
			t.Errorf("answer asked %v: %+v", ask, got)
		}
	}
}
