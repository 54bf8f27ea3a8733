package s3server_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/formetl/formetl/load/loadtest/s3server"
)

// TestStart starts a server of each kind, kills it and starts it again at the same
// address. Where every test is asked for, it builds the servers first, for all rooms that
// need them.
func TestStart(t *testing.T) {
	s3server.Need(t)
	kinds := []s3server.Kind{s3server.Versitygw()}
	if os.Getenv("FORMETL_TEST_MINIO") != "" {
		kinds = append(kinds, s3server.MinIO())
	}
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			s, err := s3server.Start(t.Context(), k, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
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
