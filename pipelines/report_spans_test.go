package pipelines_test

import (
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestPlannedAndSpans: the report says what the plan expected, as `formetl plan` does, and
// what was read of each window of the range.
func TestPlannedAndSpans(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Schema = declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "string") // else a sample comes first
	plan, err := pipelines.MakePlan(t.Context(), def, options().Options, false)
	if err != nil {
		t.Fatal(err)
	}
	w.service.Before = once(reads("2026-01-04"), func() { w.service.SetFaults("busy=1") })
	def.Source.Requests.Retries = 0
	report, err := pipelines.Run(t.Context(), def, options())
	f, p := report.Forms[0], plan.Forms[0]
	if err == nil || f.Planned == nil || *f.Planned.Results != *p.Results || *f.Planned.Requests.Total != *p.Requests.Total {
		t.Fatalf("%v: %+v, and the plan says %+v", err, f.Planned, p)
	}
	if len(f.Spans) != 4 || f.Spans[0].Results != 2 || f.Spans[3].Results != 0 {
		t.Errorf("%+v", f.Spans)
	}
	w.service.SetFaults("")
	def.Extract.Window.Days, def.Extract.To = 1, def.Extract.From.AddDate(0, 0, 365)
	f = w.run(def).Forms[0]
	var results int64
	windows := 0
	for i, s := range f.Spans {
		results, windows = results+s.Results, windows+s.Windows
		if i > 0 && !f.Spans[i-1].To.Equal(s.From.Time) {
			t.Errorf("a gap before %s", s.From)
		}
	}
	if len(f.Spans) > 60 || windows != 365 || results != 10 {
		t.Errorf("%d spans of %d windows and %d results", len(f.Spans), windows, results)
	}
}
