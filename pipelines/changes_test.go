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

// TestHourOfFixedWindows: the clock of the service is so much behind that the watermark
// lies in the first part, which has no beginning. Where the windows begin is found by
// counts.
func TestHourOfFixedWindows(t *testing.T) {
	s := newStamped(t, definition.Output{Path: "days/", Format: "ndjson"})
	s.edit = func(def *definition.Definition) { def.Extract.Window.Days = 1 }
	for id := range int64(1065) {
		s.form.Delete(id)
	}
	s.change(1080, "edited")
	s.service.Faults.DateHeaderOff = -60 * 24 * time.Hour
	s.hour()
	s.later(func() { s.insert(2000, s.clock.Format(formservice.WallTime)) })
	if report, _ := s.hour(); report.Verified.Method != load.MethodChanges || !report.Verified.Match {
		t.Errorf("verified %+v", report.Verified)
	}
}

// TestStalePartIsCutSmall: a part that is read again because a result of it changed is
// cut, so that the next change in it costs less.
func TestStalePartIsCutSmall(t *testing.T) {
	s := newStamped(t, definition.Output{Path: "days/", Format: "ndjson"})
	s.edit = func(def *definition.Definition) { def.Extract.From = extracttest.Wall("2025-01-01") }
	s.hour()
	before := len(readManifest(t, s.path("days/"+load.ManifestName)).Parts)
	cost := make([]int, 0, 3)
	for n := range int64(3) {
		s.clock = s.clock.Add(55 * time.Minute)
		s.change(600+n, "edited")
		s.at(s.clock.Add(5 * time.Minute).Format(formservice.WallTime))
		_, requests := s.hour()
		cost = append(cost, len(requests))
	}
	m := readManifest(t, s.path("days/"+load.ManifestName))
	if len(m.Parts) <= before || cost[1] != 5 || cost[2] != cost[1] || cost[0] <= cost[1] {
		t.Errorf("%d parts of %d, the edits cost %v requests", len(m.Parts), before, cost)
	}
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

// TestRangeThatEndsInThePast: a first run up to a time of the past knows what changed up
// to now. So the next run with the same end asks only what changed since, and one that
// goes further reads nothing before that end again.
func TestRangeThatEndsInThePast(t *testing.T) {
	for name, partition := range map[string]definition.Partition{"months": definition.PartitionMonth, "none": definition.PartitionNone} {
		for _, end := range []string{"2025-11-01", "2025-12-31 23:00:00"} {
			t.Run(name+" "+end, func(t *testing.T) {
				s := newStamped(t, definition.Output{Path: "days/", Format: "ndjson", Partition: partition})
				to := end
				s.edit = func(def *definition.Definition) {
					if to != "" {
						def.Extract.To = extracttest.Wall(to)
					}
				}
				run := func(when string, most int) *pipelines.FormReport {
					t.Helper()
					s.service.Reset()
					r, err := pipelines.Run(t.Context(), s.definition(), s.o)
					if err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					m := s.checkDataset("days", pipelinestest.Truth(s.form, func(r formservice.Result) bool {
						date := pipelinestest.Date(r)
						return s.due(r) && (to == "" || date < extracttest.Wall(to).Format(formservice.WallTime))
					}))
					if m.Changes == nil || m.Changes.KnownTo.IsZero() {
						t.Errorf("%s: changes %+v", when, m.Changes)
					}
					if n := len(s.service.Log()); n > most {
						t.Errorf("%s: %d requests, want at most %d", when, n, most)
						for _, q := range s.service.Log() {
							t.Log(q.Transaction, q.Query)
						}
					}
					if f := r.Forms[0]; !f.Verified.Match {
						t.Errorf("%s: %+v", when, f.Verified)
					}
					return r.Forms[0]
				}
				run("at first", 1000)
				s.at("2026-01-01 01:00:00")
				run("nothing changed", 2)
				s.at("2026-01-01 02:00:00")
				s.change(300, "edited")
				s.change(1095, "edited after the range")
				run("two results changed", 16) // a part may hold a thousand
				s.at("2026-01-01 03:00:00")
				run("and nothing more", 3) // with what lay after the range
				s.move(400, "2025-12-31 23:30:00")
				s.move(1094, "2025-05-05 05:05:05")
				s.at("2026-01-01 04:00:00")
				run("out of the range and into it", 24)
				s.at("2026-01-01 05:00:00")
				to = ""
				s.insert(5000, "2026-01-01 04:30:00")
				f := run("without an end", 12)
				if f.ResultChanges.Method != load.MethodChanges {
					t.Errorf("%+v", f.ResultChanges)
				}
				s.at("2026-01-01 06:00:00")
				run("nothing changed any more", 2)
			})
		}
	}
}
