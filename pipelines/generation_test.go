package pipelines_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// byV2 lets a world's service speak both generations, and its pipelines ask by API v2.
func (w *world) byV2() *world {
	w.service.API, w.service.Zone, w.source.API = formservice.Both, w.source.Zone, definition.APIv2
	return w
}

// plainForm has results whose answers are never empty, because API v2 does not tell an
// answer that is empty from none. Some are unfinished, and some lie in the hours in which
// the clocks of America/Chicago change.
func plainForm(results int) *formservice.Form {
	rs := make([]formservice.Result, 0, results)
	at := extracttest.Wall("2025-10-31 20:00:30")
	for i := range results {
		date := at.Add(time.Duration(i) * 97 * time.Minute).Format(formservice.WallTime)
		if i%23 == 7 {
			date = ""
		}
		rs = append(rs, pipelinestest.Result(int64(100+3*i), date, fmt.Sprint("answer ", i)))
	}
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, rs)
}

// TestServiceTellsNoCounts holds that API v2 is read whole if its headers are missing or
// wrong, and that the report and the manifest say how weak the proof is.
func TestServiceTellsNoCounts(t *testing.T) {
	outputs := func() []definition.Output {
		return []definition.Output{{Path: "form1.ndjson", Format: "ndjson"}, months()}
	}
	for _, c := range []struct {
		pagination, method, reason string
	}{
		{"", load.MethodPagination, ""},
		{"missing", load.MethodRead, "the service gives no counts to check the results by"},
		{"zero", load.MethodRead, "the service gives no counts to check the results by"},
		{"more", load.MethodRead, "the service gives no reliable counts: those in its headers never agreed with the results that it sent"},
		{"less", load.MethodRead, "the service gives no reliable counts: those in its headers never agreed with the results that it sent"},
	} {
		for name, edit := range map[string]func(*definition.Extract){
			"everything": func(*definition.Extract) {},
			"a range": func(e *definition.Extract) {
				e.From, e.To = extracttest.Wall("2025-11-02"), extracttest.Wall("2025-12-01")
			},
			"fixed windows":  func(e *definition.Extract) { e.Window = extract.Period{Days: 7} },
			"with no counts": func(e *definition.Extract) { e.Verify = false },
		} {
			if name != "everything" && c.pagination != "less" {
				continue
			}
			t.Run(c.pagination+", "+name, func(t *testing.T) {
				t.Parallel()
				form := plainForm(320)
				w := newWorld(t, form).byV2()
				w.service.SetFaults(formservice.Faults("").With("v2-pagination", c.pagination))
				def := w.definition(outputs()...)
				edit(&def.Extract)
				report := w.run(def)
				want := pipelinestest.Truth(form, func(r formservice.Result) bool {
					d := pipelinestest.Date(r)
					return def.Extract.From.IsZero() || d >= "2025-11-02" && d < "2025-12-01"
				})
				w.checkFile("form1.ndjson", want)
				m := w.checkDataset("months", want)
				if !def.Extract.Verify {
					return
				}
				for _, v := range []load.Verified{*report.Forms[0].Verified, m.Verified} {
					if v.Method != c.method || v.Reason != c.reason || v.Unproven != c.reason || v.Match != (c.reason == "") {
						t.Errorf("verified %+v", v)
					}
				}
			})
		}
	}
}

// TestKilledByOneResumedByTheOther stops a run by API v1 and lets one by v2 go on.
func TestKilledByOneResumedByTheOther(t *testing.T) {
	form := plainForm(620)
	w := newWorld(t, form).byV2()
	def := func(api definition.API) *definition.Definition {
		d := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"}, days())
		d.Source.API, d.Extract.Window = api, extract.Period{Days: 7}
		d.Extract.From, d.Extract.To = extracttest.Wall("2025-10-01"), extracttest.Wall("2026-01-01")
		return d
	}
	if err := stopAfter(t, def(definition.APIv1), options(), 6); err == nil {
		t.Fatal("the run was not stopped")
	}
	report := w.runBy(def(definition.APIv2), options())
	if f := report.Forms[0]; f.WindowsKept == 0 || !f.Verified.Match {
		t.Errorf("%d windows are taken over, verified %+v", f.WindowsKept, f.Verified)
	}
	want := pipelinestest.Truth(form, func(r formservice.Result) bool { return pipelinestest.Date(r) != "" })
	w.checkFile("form1.ndjson", want)
	w.checkDataset("days", want)
}
