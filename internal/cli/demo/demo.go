// Package demo is hopwire demo: two linked brokers on this machine, three stories about the network
// between them, told live on the terminal, and checked.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hopwire"
	"hopwire/client"
	"hopwire/internal/terminal"
)

// errNotHeld says that a story did not end as it must.
var errNotHeld = errors.New("a story did not hold; the lines above say which")

// storyTime bounds each story.
const storyTime = 30 * time.Second

// Options say how the demo is played.
type Options struct {
	Live bool // draw a picture that refreshes; else plain lines are written
	Keep bool // leave the configurations when it is over
}

// Run plays the demo. Its folder goes when all stories held, or it was interrupted; else it stays,
// with the stores, and is told.
func Run(ctx context.Context, out io.Writer, o Options) (err error) {
	dir, err := os.MkdirTemp("", "hopwire-demo-")
	if err != nil {
		return err
	}
	defer func() { err = leave(ctx, out, dir, o.Keep, err) }()
	w, err := newWorld(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	s := &show{out: out, live: o.Live, world: w}
	s.say("%s: two linked brokers, a and b", hopwire.About())
	for _, b := range w.sides {
		s.say("  broker %s  %s  (%s)", b.name, b.url, b.file)
	}
	s.say("  your own client: connect to one of these, for example")
	s.say("    hopwire consumer --brokerUrl %s --destination queue://MINE", w.sides[1].url)
	s.say("    hopwire producer --brokerUrl %s --destination queue://MINE --messageCount 10",
		w.sides[0].url)
	if err := w.connect(ctx); err != nil {
		return err
	}
	s.begin(ctx)
	defer s.end()
	held := true
	for _, story := range []func(context.Context, *show) (bool, error){split, move, delayed} {
		bound, cancel := context.WithTimeout(ctx, storyTime)
		ok, err := story(bound, s)
		cancel()
		if err != nil {
			return err
		}
		held = held && ok
	}
	if !held {
		return errNotHeld
	}
	s.say("\nAll three held.")
	return nil
}

// leave removes the demo's folder or tells where it stays.
func leave(ctx context.Context, out io.Writer, dir string, keep bool, err error) error {
	switch {
	case err != nil && ctx.Err() == nil:
		terminal.Fprintf(out, "The configurations and stores stay in %s.\n", dir)
		return err
	case keep:
		terminal.Fprintf(out, "The configurations stay: hopwire start %s %s\n",
			filepath.Join(dir, "a.xml"), filepath.Join(dir, "b.xml"))
		return errors.Join(err, os.RemoveAll(filepath.Join(dir, "data")))
	}
	terminal.Fprintln(out, "The folder of the demo is removed; --keep leaves the two configurations.")
	return errors.Join(err, os.RemoveAll(dir))
}

// side is one of the two brokers with a connection to it.
type side struct {
	name string
	file string
	url  string
	run  *hopwire.Broker
	conn *client.Conn
}

// world is the two brokers.
type world struct {
	dir   string
	sides [2]*side
}

func newWorld(ctx context.Context, dir string) (*world, error) {
	ports, err := freePorts(len(world{}.sides))
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir}
	for i, name := range []string{"a", "b"} {
		s := &side{name: name, file: filepath.Join(dir, name+".xml"),
			url: fmt.Sprintf("tcp://127.0.0.1:%d", ports[i])}
		if err := os.WriteFile(s.file, configuration(dir, i, ports), 0o644); err != nil {
			return nil, err
		}
		w.sides[i] = s
	}
	for _, s := range w.sides {
		setup, err := hopwire.Load(s.file, hopwire.Options{NoWait: true,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		if s.run, err = setup.Open(ctx); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	for _, s := range w.sides {
		s.run.StartBridges()
	}
	return w, nil
}

func (w *world) connect(ctx context.Context) error {
	for _, s := range w.sides {
		conn, err := client.Dial(ctx, s.url, client.WithClientID("demo-"+s.name))
		if err != nil {
			return err
		}
		s.conn = conn
	}
	return nil
}

// close ends clients and brokers.
func (w *world) close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), storyTime)
	defer cancel()
	for _, s := range w.sides {
		if s != nil && s.conn != nil {
			errs = append(errs, s.conn.Close(ctx))
		}
	}
	for _, s := range w.sides {
		if s != nil && s.run != nil {
			s.run.Stop()
		}
	}
	for _, s := range w.sides {
		if s != nil && s.run != nil {
			errs = append(errs, s.run.Wait())
		}
	}
	return errors.Join(errs...)
}

// freePorts gives ports that nobody listens on. Between this and their use somebody else may take
// one; the broker then says so.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// The queues of the stories.
const (
	queueConduit = "DEMO.SPLIT.CONDUIT"
	queueEach    = "DEMO.SPLIT.EACH"
	queueMove    = "DEMO.MOVE"
	queueWait    = "DEMO.WAIT"
)

// replayDelay is that of the third story.
const replayDelay = 3 * time.Second

// configuration is the activemq.xml of a broker of the pair.
func configuration(dir string, i int, ports []int) []byte {
	name, peer := "a", "b"
	if i == 1 {
		name, peer = peer, name
	}
	connector := func(label, attributes string, queues ...string) string {
		var list strings.Builder
		for _, q := range queues {
			terminal.Fprintf(&list, "          <queue physicalName=%q/>\n", q)
		}
		return fmt.Sprintf(`      <networkConnector name="%s" uri="static:(tcp://127.0.0.1:%d)"%s>
        <dynamicallyIncludedDestinations>
%s        </dynamicallyIncludedDestinations>
      </networkConnector>
`, label, ports[1-i], attributes, list.String())
	}
	connectors := connector(name+"-to-"+peer, "", queueMove, queueWait)
	if i == 0 {
		connectors = connector("conduit", "", queueConduit, "MINE") +
			connector("each", ` conduitSubscriptions="false"`, queueEach) + connectors
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
                           http://www.springframework.org/schema/beans/spring-beans.xsd
                           http://activemq.apache.org/schema/core
                           http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="%s"
          dataDirectory="%s">
    <destinationPolicy>
      <policyMap>
        <policyEntries>
          <policyEntry queue="%s">
            <networkBridgeFilterFactory>
              <conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"/>
            </networkBridgeFilterFactory>
          </policyEntry>
          <policyEntry queue="%s">
            <networkBridgeFilterFactory>
              <conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"
                                                     replayDelay="%d"/>
            </networkBridgeFilterFactory>
          </policyEntry>
        </policyEntries>
      </policyMap>
    </destinationPolicy>
    <networkConnectors>
%s    </networkConnectors>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:%d"/>
    </transportConnectors>
  </broker>
</beans>
`, name, filepath.Join(dir, "data"), queueMove, queueWait,
		replayDelay.Milliseconds(), connectors, ports[i])
}
