package plural

import "testing"

func TestANumberAndItsNounAgree(t *testing.T) {
	for want, got := range map[string]string{
		"1 message": Of(1, "message"), "0 messages": Of(int64(0), "message"),
		"2 copies": Of(2, "copy"), "1 copy": Of(int32(1), "copy"),
		"is": Form(1, "is", "are"), "are": Form(int64(2), "is", "are"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
