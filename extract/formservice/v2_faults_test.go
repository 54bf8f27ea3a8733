package formservice

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestV2SingleFaults asks once under each fault that strikes single requests.
func TestV2SingleFaults(t *testing.T) {
	s := startV2(t)
	for _, c := range []struct {
		faults Faults
		status int // 0: no answer, or one that is cut
		header string
		valid  bool
	}{
		{Faults{Busy: 1}, 429, "Retry-After: ", true},
		{Faults{Busy: 1, BusyStatus: 503, RetryAfter: 7}, 503, "Retry-After: 7", true},
		{Faults{HTML: 1}, 502, "Content-Type: text/html", false},
		{Faults{HTML: 1, HTMLStatus: 200}, 200, "Content-Type: text/html", false},
		{Faults{Redirect: 1}, 302, "Location: https://elsewhere.invalid/api/v2/acme/forms/nothing", false},
		{Faults{Truncate: 1}, 404, "Content-Type: application/json", false},
		{Faults{Empty: 1}, 200, "Content-Length: 0", false},
		{Faults{Cut: 1}, 0, "", false},
		{Faults{Reset: 1}, 0, "", false},
		{Faults{Slow: 1, SlowDelay: time.Microsecond}, 404, "Content-Type: application/json", true},
		{Faults{Latin1: true}, 404, "Content-Type: application/json; charset=ISO-8859-1", true},
	} {
		t.Run(c.faults.String(), func(t *testing.T) {
			s.SetFaults(c.faults)
			r, err := s.tryV2(t, "GET", "/forms/nothing")
			if c.status == 0 {
				if err == nil {
					t.Errorf("answered HTTP %d %q", r.status, r.body)
				}
				return
			}
			if err != nil || r.status != c.status {
				t.Fatalf("HTTP %d, %v; want %d", r.status, err, c.status)
			}
			if name, value, _ := strings.Cut(c.header, ": "); r.header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, r.header.Get(name), value)
			}
			if c.valid {
				v2Error(t, r)
			} else if strings.HasSuffix(r.body, "}}\n") {
				t.Errorf("a whole body: %s", r.body)
			}
		})
	}
	s.SetFaults(Faults{Cut: 1})
	if _, err := s.tryV2(t, "GET", "/forms"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	for faults, target := range map[Faults]string{{Errors200: true}: "/forms/nothing", {Busy: 1, BusyStatus: 200}: "/forms"} {
		s.SetFaults(faults)
		if r := s.v2(t, "GET", target); r.status != http.StatusOK || !strings.Contains(r.body, `"status":4`) {
			t.Errorf("%s: HTTP %d %s", faults, r.status, r.body)
		}
	}
}

// TestV2Behaviours asks under faults that change every answer.
func TestV2Behaviours(t *testing.T) {
	s := startV2(t)
	all := []int64{22, 21, 20, 17, 13, 12, 10}
	for _, c := range []struct {
		faults, query string
		want          []int64
	}{
		{"page-cap=2", "page=2", []int64{20, 17}},
		{"ignore-min-id", "after_id=21", all},
		{"ignore-max-id", "before_id=11", all},
		{"ignore-dates", "after_date=2026-01-05", all},
		{"ignore-min-date", "after_date=2026-01-05", all},
		{"ignore-min-date", "after_date=2026-01-05&before_date=2026-01-02", []int64{10}},
		{"ignore-max-date", "after_date=2026-01-04&before_date=2026-01-02", []int64{21, 12}},
		{"ignore-page", "limit=2&page=3", []int64{22, 21}},
		{"ignore-direction", "limit=2&sort_direction=asc", []int64{22, 21}},
		{"ignore-search", "limit=2&search_equals%5B1%5D=ben", []int64{22, 21}},
		{"ignore-sort", "limit=3&sort_id=date_finish", []int64{22, 21, 20}},
		{"twice=11", "limit=4", []int64{22, 22, 21, 20}},
		{"v2-clamp-limit", "limit=501&after_id=21", []int64{22}},
		{"strict-limit", "limit=499&after_id=21", []int64{22}},
		{"cut-pages=2", "limit=3&page=2", []int64{17, 13}},
		{"by-date", "limit=5&sort_direction=asc&after_id=10&sort_id=id", []int64{21, 22, 13, 17, 20}},
		{"v2-strict-dates", "after_date=1970-01-01&before_date=2026-01-01T06:00:01Z", []int64{10}},
		{"v2-seconds", "after_date=2026-01-02T06:00:00.999Z&before_date=2026-01-03T06:00:00.999Z", []int64{17}},
		{"delete-every=1", "limit=7", nil},
	} {
		faults, err := ParseFaults(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		s.SetFaults(faults)
		got := s.v2IDs(t, c.query)
		if c.want == nil && len(got) == 6 {
			continue
		}
		equalIDs(t, c.faults+" "+c.query, got, c.want...)
	}
	s.SetFaults(Faults{Unsorted: true, ContentType: "text/plain"})
	r := s.v2(t, "GET", "/forms/form1/results")
	if got := r.header.Get("Content-Type"); got != "text/plain" {
		t.Errorf("Content-Type %q", got)
	}
	ids := s.v2IDs(t, "")
	if len(ids) != 6 || slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("unsorted: %v", ids)
	}
	for faults, query := range map[string]string{"strict-limit": "limit=500", "v2-seconds": "limit=501"} {
		f, _ := ParseFaults(faults)
		s.SetFaults(f)
		if r := s.v2(t, "GET", "/forms/form1/results?"+query); r.status != 422 {
			t.Errorf("%s %s: HTTP %d", faults, query, r.status)
		}
	}
	s = startV2(t)
	for _, c := range []struct{ faults, last string }{
		{"cut-pages=2", "3"}, // the headers follow the limit of the request
		{"page-cap=2", "4"},
		{"count-off=3", "4"},
		{"count-off=-6", "1"},
		{"count-all", "3"},
	} {
		f, _ := ParseFaults(c.faults)
		s.SetFaults(f)
		r := s.v2(t, "GET", "/forms/form1/results?limit=3&after_id=9")
		if got := r.header.Get("Pagination-Page-Last"); got != c.last {
			t.Errorf("%s: last page %s, want %s", c.faults, got, c.last)
		}
	}
	s.SetFaults(Faults{V2: V2Shapes{StrictDates: true}})
	for _, bad := range []string{"2026-01-01T06:00:00.000Z", "1969-12-31T23:59:59Z", "1969-12-31"} {
		if r := s.v2(t, "GET", "/forms/form1/results?after_date="+bad); r.status != 422 || !strings.Contains(r.body, bad) {
			t.Errorf("%s: HTTP %d %s", bad, r.status, r.body)
		}
	}
	for _, list := range []string{"v2-fractions=some", "v2-pagination=no"} {
		if _, err := ParseFaults(list); err == nil {
			t.Errorf("%s was accepted", list)
		}
	}
}
