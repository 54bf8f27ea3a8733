package pipelines_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/detail"
	"github.com/formetl/formetl/schemas"
)

// detailed runs a definition as a command does that writes a page.
func (w *world) detailed(def *definition.Definition) *pipelines.FormReport {
	w.t.Helper()
	o := options()
	o.Detailed = true
	report, err := pipelines.Run(w.t.Context(), def, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return report.Forms[0]
}

// daysOf writes days in a line.
func daysOf(f *detail.Form) (line string) {
	for _, d := range f.Days {
		line += fmt.Sprintf("%s %d, ", d.Day.Format("01-02"), d.Rows)
	}
	return line
}

// TestDetail: what a page shows is what the run did, and nobody pays for it otherwise.
func TestDetail(t *testing.T) {
	w := newWorld(t, fourDays())
	w.service.Before = once(reads("2026-01-04"), func() { // a result moves to a window that was read before
		form := w.service.Form("form1")
		r, _ := form.Get(4)
		for i, m := range r.Metas {
			if m.ID == "date_finish" {
				r.Metas[i].Value = "2026-01-01 20:00:00"
			}
		}
		_ = form.Update(r)
	})
	def := w.daily(fileAndDays()...)
	f := w.detailed(def)
	d := f.Detail
	if d == nil || d.Plan == nil {
		t.Fatalf("%+v", d)
	}
	if got, want := daysOf(d.Form), "01-01 3, 01-02 2, 01-03 2, 01-04 1, "; got != want || d.Dayless != 0 {
		t.Errorf("days %s, want %s", got, want)
	}
	if d.Windows != 4 || *d.Plan.Results != 8 || d.Plan.Windows != nil {
		t.Errorf("%d windows, plan %+v", d.Windows, d.Plan)
	}
	var requests, attempts int64
	again := 0
	for _, s := range d.Spans {
		requests, again = requests+s.Asked.Requests, again+s.Again
	}
	for _, m := range d.Traffic.Moments {
		attempts += m.Pages + m.Others + m.Failed
	}
	if all := f.Requests.Results + f.Requests.Count + f.Requests.Retries; attempts != all || requests > f.Requests.Results || requests < 4 || again == 0 || f.Reread == 0 {
		t.Errorf("%d attempts of %d, %d of windows, %d read again; %+v", attempts, all, requests, again, f)
	}
	names := make([]string, 0, len(d.Columns))
	for _, c := range d.Columns {
		names = append(names, c.Name+" "+c.Measure.Least+" "+c.Measure.Most)
	}
	if want := []string{"result_id 1 8", "result_status 8 8", "date_finish 2026-01-01 09:00:00 2026-01-04 10:00:00", "item_1 1 1"}; !reflect.DeepEqual(names, want) {
		t.Errorf("columns %q, want %q", names, want)
	}
	w.service.Before = nil
	if f := w.run(def).Forms[0]; f.Detail != nil {
		t.Error("a run has a detail that nobody asked for")
	}
}

// TestDetailOfLongWindows: rows tell their day where windows do not, also those that the
// run took over from one that ended early.
func TestDetailOfLongWindows(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.definition(definition.Output{Path: "form1.csv", Format: "csv"})
	def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-03-01")
	f := w.detailed(def)
	if got, want := daysOf(f.Detail.Form), "01-01 2, 01-02 2, 01-03 2, 01-04 2, 02-10 1, 02-11 1, "; got != want {
		t.Errorf("days %s, want %s", got, want)
	}
	def = w.daily(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Schema = declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "string") // else a sample comes first
	w.service.Before = once(reads("2026-01-04"), func() { w.service.SetFaults(formservice.Faults{Busy: 1}) })
	def.Source.Requests.Retries = 0
	o := options()
	o.Detailed = true
	report, err := pipelines.Run(t.Context(), def, o)
	if d := report.Forms[0].Detail; err == nil || d.Columns != nil || len(d.Spans) != 4 || d.Spans[3].Unread != 1 || d.Spans[3].Asked.Requests != 1 {
		t.Errorf("%v: %+v", err, d.Form)
	}
	w.service.SetFaults(formservice.Faults{})
	f = w.detailed(def)
	if got, want := daysOf(f.Detail.Form), "01-01 2, 01-02 2, 01-03 2, 01-04 2, "; got != want || f.Detail.Spans[0].Taken != 1 || f.Detail.Spans[0].Asked.Requests != 0 {
		t.Errorf("days %s, want %s; %+v", got, want, f.Detail.Spans[0])
	}
}
