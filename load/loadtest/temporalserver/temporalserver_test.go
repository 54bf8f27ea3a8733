package temporalserver_test

import (
	"net"
	"testing"

	"github.com/formetl/formetl/load/loadtest/temporalserver"
)

// TestStart starts the server, kills it and starts it again at the same address. Where
// every test is asked for, it builds the server first, for all rooms that need it.
func TestStart(t *testing.T) {
	temporalserver.Program().Need(t)
	s, err := temporalserver.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
