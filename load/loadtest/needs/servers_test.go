package needs_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestStart starts a server of each kind, kills it and starts it again at the same
// address. Where every test is asked for, it builds the servers first, for all rooms that
// need them.
func TestStart(t *testing.T) {
	s3 := func(k needs.S3Kind) func(context.Context, string) (*needs.Server, error) {
		return func(ctx context.Context, dir string) (*needs.Server, error) {
			s, err := needs.StartS3(ctx, k, dir, nil)
			if err != nil {
				return nil, err
			}
			return s.Server, nil
		}
	}
	for _, c := range []struct {
		program needs.GoProgram
		start   func(ctx context.Context, dir string) (*needs.Server, error)
		asked   bool
	}{
		{needs.Versitygw().GoProgram, s3(needs.Versitygw()), true},
		{needs.MinIO().GoProgram, s3(needs.MinIO()), os.Getenv("FORMETL_TEST_MINIO") != ""},
		{needs.Temporal(), needs.StartTemporal, true},
	} {
		t.Run(c.program.Name, func(t *testing.T) {
			if !c.asked {
				t.Skip("nobody asks for it")
			}
			c.program.Require(t)
			s, err := c.start(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.program.Name == needs.Temporal().Name {
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
