package pipelines_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// planned makes a plan and checks that nothing but counts were asked.
func planned(t *testing.T, w *world, def *definition.Definition, offline bool) *pipelines.PlanReport {
	t.Helper()
	w.service.Reset()
	r, err := pipelines.MakePlan(t.Context(), def, options().Options, offline)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.service.Counts()[formservice.TransactionResults]; n != 0 {
		t.Errorf("planning asked for %d pages of results", n)
	}
	if offline && len(w.service.Log()) != 0 {
		t.Errorf("an offline plan asked: %v", w.service.Log())
	}
	return r
}

func TestPlanBudget(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: 900, Seed: 5}))
	def := w.definition(definition.Output{Path: "out.csv", Format: "csv", Profile: "strict"})
	def.Extract.To = extracttest.Wall("2026-01-01")
	if b := planned(t, w, def, false).Budget; b.Minutes != nil || b.DayShare != nil {
		t.Errorf("without a budget: %+v", b)
	}
	def.Source.Requests.PerMinute, def.Source.Requests.PerDay = 1000, 50
	r := planned(t, w, def, false)
	total := float64(*r.Forms[0].Requests.Total)
	if got, want := *r.Budget.DayShare, total/50; got < want-1e-4 || got > want+1e-4 {
		t.Errorf("share of the day %v, want %v", got, want)
	}
	if got, want := *r.Budget.Minutes, total/1000; got < want-1e-4 || got > want+1e-4 {
		t.Errorf("minutes %v, want %v", got, want)
	}
}

func TestPlanOffline(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: 100, Seed: 5}))
	def := w.definition(definition.Output{Path: "lake/", Format: "parquet", Partition: definition.PartitionMonth})
	def.Source.Key = transport.Secret{} // none is needed
	def.Forms = []string{"form1", "f*", "skipped"}
	def.Exclude = []string{"skipped"}
	def.Extract.From, def.Extract.To, def.Extract.Window = extracttest.Wall("2025-01-10"), extracttest.Wall("2025-03-10"), extract.Step{Days: 7}
	r := planned(t, w, def, true)
	if len(r.Forms) != 1 || len(r.Patterns) != 1 || r.Budget.Minutes != nil {
		t.Fatalf("forms %v, patterns %v", r.Forms, r.Patterns)
	}
	windows := r.Forms[0].Windows
	if windows[0].From.Time != extracttest.Wall("2025-01-10") || windows[len(windows)-1].To.Time != extracttest.Wall("2025-03-10") {
		t.Errorf("the windows do not cover the range: %v", windows)
	}
	for i := 1; i < len(windows); i++ {
		if windows[i-1].To != windows[i].From || windows[i].Results != nil {
			t.Errorf("window %d: %+v after %+v", i, windows[i], windows[i-1])
		}
	}
	def.Extract.Window = extract.Step{}
	if p := planned(t, w, def, true).Forms[0]; len(p.Windows) != 0 || p.Requests.Total != nil {
		t.Errorf("sized by counts, and planned without any: %+v", p)
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"results":null`) {
		t.Errorf("JSON %s, %v", data, err)
	}
	o := options()
	o.Forms = []string{"gone"}
	if _, err := pipelines.MakePlan(t.Context(), def, o.Options, true); !isNoForms(err) {
		t.Errorf("no form is left: %v", err)
	}
}

func isNoForms(err error) bool {
	var none *account.NoFormsError
	return errors.As(err, &none)
}

func TestPlanFailures(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: 100, Seed: 5}))
	def := w.definition(definition.Output{Path: "out.csv", Format: "csv", Profile: "strict"})
	def.Forms = []string{"gone", "form1"}
	def.Extract.To = extracttest.Wall("2026-01-01")
	r, err := pipelines.MakePlan(t.Context(), def, options().Options, false)
	var failed *account.FormsError
	if !errors.As(err, &failed) || len(failed.Errors) != 1 || r.Forms[0].Error == "" || r.Forms[1].Results == nil {
		t.Errorf("one of two forms fails: %v, %+v", err, r.Forms)
	}
	if r.Budget.Minutes != nil {
		t.Error("a sum of what is not known")
	}
	def.Extract.From = extracttest.Wall("2027-01-01")
	def.Forms = []string{"form1"}
	var empty *reading.RangeError
	if _, err := pipelines.MakePlan(t.Context(), def, options().Options, false); !errors.As(err, &empty) {
		t.Errorf("an empty range: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	cancel(stop)
	if _, err := pipelines.MakePlan(ctx, def, options().Options, false); !errors.Is(err, stop) {
		t.Errorf("cancelled: %v", err)
	}
}
