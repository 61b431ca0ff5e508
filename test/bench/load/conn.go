package load

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"hopwire/openwire"
)

// conn is one client connection.
type conn struct {
	names
	socket net.Conn
	in     *bufio.Reader
	frame  []byte // of the last read
}

var connections atomic.Int64

func dial(addr, dest string) (*conn, error) {
	socket, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c := &conn{socket: socket, in: bufio.NewReaderSize(socket, 64<<10)}
	c.names = newNames(fmt.Sprintf("ID:load-%d-%d", os.Getpid(), connections.Add(1)),
		destination(dest))
	if err := c.greet(); err != nil {
		socket.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return c, nil
}

// destination reads queue://NAME or topic://NAME.
func destination(text string) *openwire.Destination {
	if topic, ok := strings.CutPrefix(text, "topic://"); ok {
		return &openwire.Destination{Type: openwire.TypeTopic, PhysicalName: topic}
	}
	return &openwire.Destination{Type: openwire.TypeQueue,
		PhysicalName: strings.TrimPrefix(text, "queue://")}
}

// maxFrame is the largest frame that is read, in bytes.
const maxFrame = 100 << 20

// greet exchanges hellos, before which neither side may send anything else, and opens a connection
// and a session.
func (c *conn) greet() error {
	first, err := hello()
	if err != nil {
		return err
	}
	if _, err := c.socket.Write(first); err != nil {
		return err
	}
	f, err := c.read()
	if err != nil {
		return err
	}
	if len(f) == 0 || f[0] != openwire.TypeWireFormatInfo {
		return fmt.Errorf("the broker began with %.20q, not with a hello", f)
	}
	return c.ask(c.open())
}

// ask sends what has one answer and waits for it.
func (c *conn) ask(frames []byte, err error) error {
	if err != nil {
		return err
	}
	if _, err := c.socket.Write(frames); err != nil {
		return err
	}
	return c.answer()
}

// answer waits for the next response; other commands in between are dropped.
func (c *conn) answer() error {
	for {
		f, err := c.read()
		if err != nil {
			return err
		}
		switch f[0] {
		case openwire.TypeResponse, openwire.TypeIntegerResponse:
			return nil
		case openwire.TypeExceptionResponse, openwire.TypeConnectionError:
			return fmt.Errorf("the broker answered with an exception: %.200q", f)
		}
	}
}

// read returns the next frame without its length; it is valid until the next read.
func (c *conn) read() ([]byte, error) {
	head, err := c.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head))
	if n < 1 || n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if _, err := c.in.Discard(4); err != nil {
		return nil, err
	}
	if cap(c.frame) < n {
		c.frame = make([]byte, 2*n)
	}
	_, err = io.ReadFull(c.in, c.frame[:n])
	return c.frame[:n], err
}
