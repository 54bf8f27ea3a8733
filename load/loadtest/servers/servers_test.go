package servers_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/formetl/formetl/load/loadtest/servers"
)

// TestStart starts a server of each kind, kills it and starts it again at the same
// address. Where every test is asked for, it builds the servers first, for all rooms that
// need them.
func TestStart(t *testing.T) {
	s3 := func(k servers.S3Kind) func(context.Context, string) (*servers.Server, error) {
		return func(ctx context.Context, dir string) (*servers.Server, error) {
			s, err := servers.StartS3(ctx, k, dir, nil)
			if err != nil {
				return nil, err
			}
			return s.Server, nil
		}
	}
	for _, c := range []struct {
		program servers.Program
		start   func(ctx context.Context, dir string) (*servers.Server, error)
		asked   bool
	}{
		{servers.Versitygw().Program, s3(servers.Versitygw()), true},
		{servers.MinIO().Program, s3(servers.MinIO()), os.Getenv("FORMETL_TEST_MINIO") != ""},
		{servers.Temporal(), servers.StartTemporal, true},
	} {
		t.Run(c.program.Name, func(t *testing.T) {
			if !c.asked {
				t.Skip("nobody asks for it")
			}
			c.program.Need(t)
			s, err := c.start(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.program.Name == servers.Temporal().Name {
				connects(t, s.Address)
				return
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusForbidden {
				t.Errorf("nobody in particular gets %d, %v", answer.StatusCode, err)
			}
		})
	}
}

func connects(t *testing.T, address string) {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
