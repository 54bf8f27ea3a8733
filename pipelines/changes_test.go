package pipelines_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// stamped is a form of a year whose service stamps each change, and an hourly run.
type stamped struct {
	*living
	clock time.Time
}

// newStamped has a result every eight hours of 2025, and a result that was edited
// later, so that the service shows that it sorts.
func newStamped(t *testing.T, outs ...definition.Output) *stamped {
	t.Helper()
	var results []formservice.Result
	id := int64(0)
	for at := extracttest.Wall("2025-01-01 01:30:00"); at.Before(extracttest.Wall("2026-01-01")); at = at.Add(8 * time.Hour) {
		id++
		r := pipelinestest.Result(id, at.Format(formservice.WallTime), fmt.Sprint("r", id))
		r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: at.Format(formservice.WallTime)})
		results = append(results, r)
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	if len(outs) == 0 {
		outs = []definition.Output{{Path: "days/", Format: "ndjson", Partition: definition.PartitionMonth}}
	}
	s := &stamped{living: &living{world: newWorld(t, form), form: form, o: options(), outs: outs, edit: func(*definition.Definition) {}}}
	form.SetClock(func() time.Time { return s.clock })
	s.at("2026-01-01 00:00:30")
	s.change(700, "answer")
	return s
}

// at sets the clocks of the service and of formetl.
func (s *stamped) at(wall string) {
	s.clock = extracttest.Wall(wall)
	s.now(wall)
}

// change edits a result.
func (s *stamped) change(id int64, answer string) {
	s.t.Helper()
	r, ok := s.form.Get(id)
	if !ok {
		s.t.Fatalf("there is no result %d", id)
	}
	r.Items = []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{answer}}}
	if err := s.form.Update(r); err != nil {
		s.t.Fatal(err)
	}
}

// hour runs the pipeline and compares the dataset with the truth. It returns the
// requests that the run took.
func (s *stamped) hour() (report *pipelines.FormReport, requests []string) {
	s.t.Helper()
	s.service.Reset()
	r, err := pipelines.Run(s.t.Context(), s.definition(), s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, q := range s.service.Log() {
		requests = append(requests, q.Transaction+" "+q.Query)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, s.due))
	return r.Forms[0], requests
}

// due tells whether a run of now holds a result.
func (s *stamped) due(r formservice.Result) bool {
	date := pipelinestest.Date(r)
	return date != "" && date < s.clock.Add(-time.Minute).Format(formservice.WallTime)
}

// TestHourOfChanges counts the requests of hourly runs, and what they find.
func TestHourOfChanges(t *testing.T) {
	s := newStamped(t)
	s.hour()
	for _, c := range []struct {
		name string
		do   func()
		most int
	}{
		{"nothing", func() {}, 2},
		{"an edit a year ago", func() { s.change(5, "edited") }, 4},
		{"nothing after it", func() {}, 2},
		{"a deletion last year", func() { s.form.Delete(500) }, 8}, // four counts halve a dozen parts
		{"a new result", func() { s.insert(2000, "2026-01-01 04:30:00") }, 4},
		{"a result moves by eleven months", func() { s.move(30, "2025-12-05 10:00:00") }, 6},
		{"a late result", func() { s.insert(2001, "2025-03-05 10:00:00") }, 4},
		{"all of it", func() {
			s.change(6, "edited")
			s.form.Delete(501)
			s.insert(2002, "2026-01-01 07:30:00")
			s.move(31, "2025-11-05 10:00:00")
		}, 14},
	} {
		s.clock = s.clock.Add(55 * time.Minute)
		c.do()
		s.at(s.clock.Add(5 * time.Minute).Format(formservice.WallTime))
		report, requests := s.hour()
		if len(requests) > c.most || report.Verified.Method != load.MethodChanges || !report.Verified.Match {
			t.Errorf("%s: %d requests, verified %+v\n%s", c.name, len(requests), report.Verified, strings.Join(requests, "\n"))
		}
	}
}

// TestHourWithDatesOfLaterYears: a result that the service names is dated years later than now.
// The run reads up to it.
func TestHourWithDatesOfLaterYears(t *testing.T) {
	s := newStamped(t)
	s.hour()
	s.later(func() { s.insert(2000, "2028-05-05 10:00:00") })
	report := s.runBy(s.definition(), s.o)
	if v := report.Forms[0].Verified; v.Method != load.MethodChanges || !v.Match {
		t.Errorf("verified %+v", v)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, nil))
}

func (s *stamped) insert(id int64, date string) {
	s.t.Helper()
	if _, err := s.form.Insert(pipelinestest.Result(id, date, "new")); err != nil {
		s.t.Fatal(err)
	}
}

// move gives a result another date.
func (s *stamped) move(id int64, date string) {
	s.t.Helper()
	if err := s.form.Finish(id, extracttest.Wall(date)); err != nil {
		s.t.Fatal(err)
	}
}
