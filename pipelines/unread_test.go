package pipelines_test

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestDatesInAnotherFormAreTold: what a column of times cannot read is null, counted, and
// told once with an example and what helps.
func TestDatesInAnotherFormAreTold(t *testing.T) {
	for _, value := range []string{"2026-01-05 10:00", "01/05/2026 10:00:00", "1767607200", "24:00:00", "soon\u202e\u009b31m"} {
		t.Run(value, func(t *testing.T) {
			results := make([]formservice.Result, 0, 250)
			for i := range 250 {
				r := pipelinestest.Result(int64(i+1), "2026-01-05 10:00:00", "x")
				r.Metas = append(r.Metas, formservice.Meta{ID: "date_start", Value: value})
				results = append(results, r)
			}
			w := newWorld(t, formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results))
			report := w.run(w.definition(definition.Output{Path: "f.ndjson", Format: "ndjson"}, definition.Output{Path: "f.csv", Format: "csv"}))
			check := func(f *pipelines.FormReport) {
				t.Helper()
				shown := strings.NewReplacer("\u202e\u009b", " ").Replace(value)
				if len(f.Drift) != 1 || !strings.Contains(f.Drift[0], "column date_start: 250 values") || !strings.Contains(f.Drift[0], `such as "`+shown+`"`) || !strings.Contains(f.Drift[0], "formetl schema infer") {
					t.Errorf("drift %q", f.Drift)
				}
				if len(f.Nulled) != 1 || f.Nulled[0].Count != 250 {
					t.Errorf("nulled %+v", f.Nulled)
				}
			}
			check(report.Forms[0])
			if !strings.Contains(w.read("f.ndjson"), `"date_start":null`) {
				t.Errorf("%.200s", w.read("f.ndjson"))
			}
		})
	}
}
