package pipelines_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// later lets an hour pass: people do something in the middle of it.
func (s *stamped) later(do func()) {
	s.clock = s.clock.Add(30 * time.Minute)
	do()
	s.at(s.clock.Add(30 * time.Minute).Format(formservice.WallTime))
}

// runWhole runs the pipeline, and compares the dataset with the truth.
func (s *stamped) runWhole() *pipelines.FormReport {
	s.t.Helper()
	report, err := pipelines.Run(s.t.Context(), s.definition(), s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, s.due))
	return report.Forms[0]
}

// TestFeedThatDoesNotTell: services and changes that the feed cannot tell. Nothing
// is missed that the lookback or a later run can find, and the report says why.
func TestFeedThatDoesNotTell(t *testing.T) {
	needs.Slow(t)
	for _, c := range []struct {
		name   string
		faults formservice.Faults
		do     func(*stamped)
		method string
		reason string // a part of the reported one
	}{
		{
			"the service ignores fs_sort", "ignore-sort", func(s *stamped) {
				s.change(1090, "within the lookback")
				s.insert(3000, "2025-12-31 20:00:00")
			}, load.MethodLookback, "does not sort",
		},
		{
			"a new result lacks the meta", "", func(s *stamped) {
				s.change(1090, "within the lookback")
				s.form.SetClock(nil)
				s.insert(3000, "2025-12-31 20:00:00")
				s.form.SetClock(func() time.Time { return s.clock })
			}, load.MethodLookback, "without date_update",
		},
		{
			"many new results hide an old edit", "", func(s *stamped) {
				s.change(7, "edited")
				for id := range int64(1900) {
					s.clock = s.clock.Add(time.Second / 2)
					s.insert(20_000+id, s.clock.Format(formservice.WallTime))
				}
			}, load.MethodLookback, "results changed",
		},
		{
			"one second fills a page", "", func(s *stamped) {
				for id := int64(1); id <= 250; id++ {
					s.change(id, "edited")
				}
			}, load.MethodLookback, "within one second",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStamped(t)
			s.hour()
			s.service.SetFaults(c.faults)
			s.later(func() { c.do(s) })
			report := s.runWhole()
			if got := report.ResultChanges; got.Method != c.method || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("result_changes %+v, want %s because %q", got, c.method, c.reason)
			}
			if sorts := c.faults == "" && !strings.Contains(c.reason, "without date_update"); sorts {
				s.later(func() {}) // a run that meets nothing new leaves the crowded second behind
				s.runWhole()
				s.later(func() { s.change(3, "edited in the end") })
				if last := s.runWhole(); last.ResultChanges.Method != load.MethodChanges {
					t.Errorf("the next run: %+v", last.ResultChanges)
				}
			} else if report.Verified.Method != load.MethodCounts {
				t.Errorf("verified %+v", report.Verified)
			}
		})
	}
}

// TestUndatedBehindManyChanges: where more results changed than the service lists, the results
// without a date lie neither in the lookback nor before it, and are read again.
func TestUndatedBehindManyChanges(t *testing.T) {
	s := newStamped(t)
	s.service.SetFaults("page-cap=7")
	s.insert(4000, "")
	s.insert(4001, "")
	run := func() {
		t.Helper()
		if _, err := pipelines.Run(t.Context(), s.definition(), s.o); err != nil {
			t.Fatal(err)
		}
		s.checkDataset("days", pipelinestest.Truth(s.form, func(r formservice.Result) bool { return pipelinestest.Date(r) == "" || s.due(r) }))
	}
	run()
	s.later(func() {
		s.change(4001, "edited")
		for id := range int64(150) {
			s.clock = s.clock.Add(time.Second)
			s.insert(20_000+id, s.clock.Format(formservice.WallTime))
		}
	})
	var log bytes.Buffer
	s.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	run()
	if text := log.String(); !strings.Contains(text, "reads the last days (lookback) again, and older parts") || strings.Contains(text, "--full") {
		t.Error(text)
	}
}

// TestClockSetBackFar: a clock that is set back by more than the margin hides edits
// until a new result shows it.
func TestClockSetBackFar(t *testing.T) {
	s := newStamped(t)
	back := time.Duration(0)
	s.form.SetClock(func() time.Time { return s.clock.Add(-back) })
	s.hour()
	back = 5 * time.Hour
	s.later(func() {
		s.change(40, "hidden")
		s.insert(5000, s.clock.Format(formservice.WallTime))
	})
	report := s.runBy(s.definition(), s.o)
	if c := report.Forms[0].ResultChanges; c.Method != load.MethodLookback || !strings.Contains(c.Reason, "does not list the new result") {
		t.Errorf("%+v", c)
	}
	s.later(func() {})
	s.runWhole()
}
