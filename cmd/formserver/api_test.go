package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAPI asks for both generations under each setting.
func TestAPI(t *testing.T) {
	for api, want := range map[string][2]int{"v1": {200, 404}, "v2": {404, 200}, "both": {200, 200}} {
		s := settings{api: api, zone: "America/Chicago", from: "2025-01-01", to: "2026-01-01", results: 10, account: "acme"}
		server, err := s.server(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		server.Key = "key"
		for i, path := range []string{"/api/users/acme/forms?fs_api_key=key", "/api/v2/acme/forms"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Header.Set("Authorization", "bearer key")
			server.ServeHTTP(w, r)
			if w.Code != want[i] {
				t.Errorf("--api %s: %s: HTTP %d, want %d", api, path, w.Code, want[i])
			}
		}
		if server.Zone.String() != "America/Chicago" {
			t.Errorf("zone %s", server.Zone)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--api", "v3"}, &stdout, &stderr, noEnv); code != exitUsage || !strings.Contains(stderr.String(), `--api "v3": give v1, v2 or both`) {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
