package pipelines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// planAndRun plans a run and runs it. It returns the plan, and how many requests of
// each kind the run sent: for windows, to ask what changed, and counts.
func (s *stamped) planAndRun() (p *pipelines.FormPlan, results, feed, counts int64) {
	s.t.Helper()
	s.service.Reset()
	r, err := pipelines.MakePlan(s.t.Context(), s.definition(), s.o.Options, false)
	if err != nil {
		s.t.Fatal(err)
	}
	p = r.Forms[0]
	if sent := s.service.Counts(); sent[formservice.TransactionResults] != 0 || sent[formservice.TransactionCount] != p.Requests.Planned {
		s.t.Errorf("the plan sent %v, and says %d counts", sent, p.Requests.Planned)
	}
	_, sent := s.hour()
	for _, q := range sent {
		switch {
		case strings.Contains(q, "fs_sort="):
			feed++
		case strings.HasPrefix(q, formservice.TransactionCount):
			counts++
		default:
			results++
		}
	}
	if want := *p.Requests.Results + *p.Requests.Feed + *p.Requests.Counts; *p.Requests.Total != want {
		s.t.Errorf("the total is %d, its parts give %d", *p.Requests.Total, want)
	}
	return p, results, feed, counts
}

// TestPlanOfChanges compares plans of incremental runs with what the runs send.
func TestPlanOfChanges(t *testing.T) {
	s := newStamped(t)
	p, results, feed, counts := s.planAndRun()
	if p.Changes != nil || feed == 0 || feed > *p.Requests.Feed || counts != *p.Requests.Counts || results > *p.Requests.Results {
		t.Errorf("first run: planned %d, %d, %d (%+v), sent %d, %d, %d", *p.Requests.Results, *p.Requests.Feed, *p.Requests.Counts, p.Changes, results, feed, counts)
	}
	for _, c := range []struct {
		name    string
		do      func()
		windows int
		rows    int64
		most    bool // the run may send fewer requests
	}{
		{"nothing", func() {}, 1, 0, false},
		{"a new result", func() { s.insert(2000, s.clock.Format(formservice.WallTime)) }, 1, 1, false},
		{"a further one", func() { s.insert(2001, s.clock.Format(formservice.WallTime)) }, 1, 2, false},
		{"nothing for a day", func() { s.clock = s.clock.Add(25 * time.Hour) }, 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.later(c.do)
			p, results, feed, counts := s.planAndRun()
			if p.Changes == nil || p.Changes.Method != load.MethodChanges || p.Changes.KnownTo.IsZero() || p.Changes.Reason != "" {
				t.Fatalf("changes %+v", p.Changes)
			}
			if len(p.Windows) != c.windows || *p.Results != c.rows {
				t.Errorf("%d results in windows %v", *p.Results, p.Windows)
			}
			if *p.Requests.Results != results || *p.Requests.Feed != feed || *p.Requests.Counts != counts {
				t.Errorf("planned %d, %d, %d, the run sent %d, %d, %d", *p.Requests.Results, *p.Requests.Feed, *p.Requests.Counts, results, feed, counts)
			}
		})
	}
}
