package transport

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestAPortThatIsTakenIsToldWithWhoHasIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen("tcp://"+l.Addr().String(), nil)
	want := fmt.Sprintf("tcp://%s: address already in use; pid %d (", l.Addr(), os.Getpid())
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(),
		") has it") {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnAddressOfAnotherMachineIsToldWithThoseOfThis(t *testing.T) {
	_, err := Listen("tcp://192.0.2.1:0", nil)
	const want = "tcp://192.0.2.1:0: cannot assign requested address; the addresses of this machine" +
		" are 127.0.0.1"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
