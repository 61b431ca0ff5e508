package interop

import (
	"testing"

	"hopwire/test/interop/broker"
)

func TestTheBinaryGreetsStopsAndComesBack(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "h", Persistent: true})
	b.Stop()
	b.Restart()
	b.Kill9()
	b.Restart()
}
