package formservice

import (
	"strings"
	"testing"
)

// TestV2Errors asks a busy service, and one that answers errors with HTTP 200.
func TestV2Errors(t *testing.T) {
	s := startV2(t)
	for _, c := range []struct {
		faults Faults
		target string
		status int
		told   string // in the body
	}{
		{"busy=1", "/forms", 429, `"status":429`},
		{"busy=1,busy-status=503", "/forms", 503, `"status":503`},
		{"busy=1,busy-status=200", "/forms", 200, `"status":429`},
		{"errors-200", "/forms/nothing", 200, `"status":404`},
	} {
		s.SetFaults(c.faults)
		if r := s.v2(t, "GET", c.target); r.status != c.status || !strings.Contains(r.body, c.told) {
			t.Errorf("%s: HTTP %d %s", c.faults, r.status, r.body)
		}
	}
}

// TestV2Behaviours asks under faults that change every answer.
func TestV2Behaviours(t *testing.T) {
	s := startV2(t)
	for faults, query := range map[string]string{"strict-limit": "limit=500", "v2-seconds": "limit=501"} {
		s.SetFaults(Faults(faults))
		if r := s.v2(t, "GET", "/forms/form1/results?"+query); r.status != 422 {
			t.Errorf("%s %s: HTTP %d", faults, query, r.status)
		}
	}
	for _, c := range []struct{ faults, last string }{
		{"cut-pages=2", "3"}, // the headers follow the limit of the request
		{"page-cap=2", "4"},
		{"count-off=3", "4"},
		{"count-off=-6", "1"},
		{"count-all", "3"},
	} {
		s.SetFaults(Faults(c.faults))
		r := s.v2(t, "GET", "/forms/form1/results?limit=3&after_id=9")
		if got := r.header.Get("Pagination-Page-Last"); got != c.last {
			t.Errorf("%s: last page %s, want %s", c.faults, got, c.last)
		}
	}
	s.SetFaults("v2-strict-dates")
	for _, bad := range []string{"2026-01-01T06:00:00.000Z", "1969-12-31T23:59:59Z", "1969-12-31"} {
		if r := s.v2(t, "GET", "/forms/form1/results?after_date="+bad); r.status != 422 || !strings.Contains(r.body, bad) {
			t.Errorf("%s: HTTP %d %s", bad, r.status, r.body)
		}
	}
}
