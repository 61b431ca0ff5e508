package wire

import (
	"errors"
	"testing"

	"hopwire/internal/message"
	"hopwire/openwire"
)

func TestWhatCannotBeSentSaysWhetherItWasTheSize(t *testing.T) {
	m := &message.Message{}
	m.CommandID = 7
	for _, c := range []struct {
		err  error
		want string
	}{
		{&openwire.FrameTooBigError{Size: 2, Limit: 1, Sending: true}, "hopwire.FRAME_TOO_BIG"},
		{errors.New("a string of 70000 encoded bytes"), "hopwire.NOT_ENCODABLE"},
	} {
		r := Unsendable(m, c.err)
		if r.Correlation != 7 || r.Exception.Class != c.want || r.Exception.Message != c.err.Error() {
			t.Errorf("%v: %+v", c.err, r.Exception)
		}
	}
}
