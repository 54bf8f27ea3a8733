package pipelines_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// declaredRun is a run whose windows are read one after the other from their
// beginning: a schema that was to be inferred would have begun them all.
type declaredRun struct{ *resumed }

func newDeclared(t *testing.T) *declaredRun {
	t.Helper()
	return &declaredRun{newResumed(t)}
}

func (r *declaredRun) daily(outs ...definition.Output) *definition.Definition {
	d := r.resumed.daily(outs...)
	d.Schema = &schemas.Schema{Name: "form1", Unknown: schemas.UnknownAdd, Columns: []schemas.Column{
		{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
	}}
	return d
}

func file() definition.Output { return definition.Output{Path: "form1.ndjson", Format: "ndjson"} }

func wholeDataset() definition.Output { return definition.Output{Path: "whole/", Format: "ndjson"} }

// checkAll compares every output with the truth.
func (r *declaredRun) checkAll(outs []definition.Output, keep func(formservice.Result) bool) {
	r.t.Helper()
	for _, o := range outs {
		if o.Dataset() {
			r.checkDataset(strings.TrimSuffix(o.Path, "/"), pipelinestest.Truth(r.form, keep))
		} else {
			r.checkFile(o.Path, pipelinestest.Truth(r.form, keep))
		}
	}
}

// shapes are outputs that share one checkpoint, however they divide what was read.
func shapes() map[string][]definition.Output {
	return map[string][]definition.Output{
		"a file": {file()}, "parts": {days()}, "a file and a dataset": {file(), days()}, "one part": {wholeDataset()},
		"divided otherwise": {days(), wholeDataset()}, "two files": {file(), {Path: "other.ndjson", Format: "ndjson"}},
	}
}

// TestResumeInEveryShape: what was read of a run that was stopped is not asked
// for again, whatever it is to become, and a plan tells of it.
func TestResumeInEveryShape(t *testing.T) {
	for name, outs := range shapes() {
		for stop := 1; stop <= 4; stop++ {
			t.Run(fmt.Sprint(name, stop), func(t *testing.T) {
				r := newDeclared(t)
				def := func() *definition.Definition { return r.daily(slices.Clone(outs)...) }
				stopped := r.stopAt(def(), "read", stop)
				if kept := stopped.Forms[0].ResultsKept; kept == nil || *kept != int64(2*stop) {
					t.Errorf("the report of the run that was stopped says that %v results are kept", kept)
				}
				planned := func() *pipelines.Unfinished {
					t.Helper()
					report, err := pipelines.MakePlan(t.Context(), def(), r.o, true)
					if err != nil {
						t.Fatal(err)
					}
					return report.Forms[0].Unfinished
				}
				if u := planned(); u == nil || u.Windows != stop || u.Results != int64(2*stop) || u.RunID != stopped.RunID {
					t.Errorf("the plan tells of %+v", u)
				}
				asked, report := r.asked(def())
				want := []string{"2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"}[stop:]
				if f := report.Forms[0]; !slices.Equal(asked, want) || f.Continued != stopped.RunID || f.WindowsKept != stop || f.Rows != 8 || !f.Verified.Match {
					t.Errorf("asked for %v, report %+v", asked, f)
				}
				r.checkAll(outs, inJanuary)
				r.noCheckpoint()
				if u := planned(); u != nil {
					t.Errorf("afterwards the plan tells of %+v", u)
				}
			})
		}
	}
}

// TestWhatACheckpointIsGoodFor: pieces are taken over that lie within the new
// run's windows, where the definition still reads the same rows.
func TestWhatACheckpointIsGoodFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*declaredRun, *definition.Definition)
		kept   int
	}{
		"nothing":        {func(*declaredRun, *definition.Definition) {}, 2},
		"another path":   {func(r *declaredRun, d *definition.Definition) { d.Outputs[0].Path = r.path("other.ndjson") }, 0},
		"another format": {func(r *declaredRun, d *definition.Definition) { d.Outputs[0].Format = "csv" }, 2},
		"an output more": {func(r *declaredRun, d *definition.Definition) {
			d.Outputs = r.definition(file(), definition.Output{Path: "more.csv", Format: "csv"}).Outputs
		}, 0},
		"more retries":    {func(_ *declaredRun, d *definition.Definition) { d.Source.Requests.Retries++ }, 2},
		"larger windows":  {func(_ *declaredRun, d *definition.Definition) { d.Extract.Window, _ = definition.ParseWindow("2d") }, 1},
		"a shorter range": {func(_ *declaredRun, d *definition.Definition) { d.Extract.From = extracttest.Wall("2026-01-02") }, 1},
		"smaller windows": {func(_ *declaredRun, d *definition.Definition) { d.Extract.Window, _ = definition.ParseWindow("12h") }, 0},
		"no verification": {func(_ *declaredRun, d *definition.Definition) { d.Extract.Verify = false }, 0}, // the tails are asked for
		"another zone":    {func(r *declaredRun, d *definition.Definition) { d.Source.Zone, r.source.Zone = time.UTC, time.UTC }, 0},
		"another end":     {func(_ *declaredRun, d *definition.Definition) { d.Extract.To = extracttest.Wall("2026-01-02 12:00:00") }, 1},
		"--full":          {func(r *declaredRun, _ *definition.Definition) { r.o.Full = true }, 0},
		"a search": {func(_ *declaredRun, d *definition.Definition) {
			d.Extract.Search.Where = []extract.Criterion{{Column: "1", Operator: extract.OpNotEmpty}}
		}, 0},
		"no schema":    {func(_ *declaredRun, d *definition.Definition) { d.Schema = nil }, 0},
		"a partition":  {func(r *declaredRun, d *definition.Definition) { d.Outputs = r.definition(file(), months()).Outputs }, 0},
		"compression":  {func(_ *declaredRun, d *definition.Definition) { d.Outputs[0].Compression = "gzip" }, 2},
		"another name": {func(_ *declaredRun, d *definition.Definition) { d.Name = "other" }, 0},
		"another file": {func(r *declaredRun, d *definition.Definition) { d.File = r.path("other.yaml") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			r.stopAt(r.daily(file()), "read", 2)
			def := r.daily(file())
			c.change(r, def)
			_, report := r.askedUntidy(def)
			if name == "another path" || name == "another name" || len(def.Outputs) > 1 { // what was read for others stays
				if n := len(r.checkpoints("header")); n != 1 {
					t.Errorf("%d checkpoints are left", n)
				}
				r.leaveHost()
			}
			r.checkTidy()
			if f := report.Forms[0]; f.WindowsKept != c.kept || (f.Continued != "") != (c.kept > 0 || name == "no verification") {
				t.Errorf("kept %d, want %d, report %+v", f.WindowsKept, c.kept, f)
			}
			from, to := def.Extract.From.Format(formservice.WallTime), def.Extract.To.Format(formservice.WallTime)
			if def.Outputs[0].Format == "ndjson" && name != "compression" && filepath.Base(def.Outputs[0].Path) == "form1.ndjson" {
				r.checkFile("form1.ndjson", pipelinestest.Truth(r.form, func(x formservice.Result) bool { return pipelinestest.Date(x) >= from && pipelinestest.Date(x) < to }))
			}
		})
	}
}

// TestCheckpointOfAPathForEachRun: a path that holds the run's id is the same output.
func TestCheckpointOfAPathForEachRun(t *testing.T) {
	r := newDeclared(t)
	out := definition.Output{Path: "{run_id}.ndjson", Format: "ndjson"}
	r.stopAt(r.daily(out), "read", 2)
	if asked, report := r.asked(r.daily(out)); len(asked) != 2 || report.Forms[0].WindowsKept != 2 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
}

// TestResumeWithin bounds how old what is taken over may be, window by window,
// and tells of it before the first request.
func TestResumeWithin(t *testing.T) {
	for name, c := range map[string]struct {
		then   string // when it is run again; the windows are read at 12:00, 12:40 and 13:00
		full   bool
		kept   int
		told   int64
		oldest string
	}{
		"at once":                   {then: "2026-02-15 13:01:00", kept: 2, told: 4, oldest: "12:40"},
		"within the hour":           {then: "2026-02-15 13:39:00", kept: 2, told: 4, oldest: "12:40"},
		"some of it after the hour": {then: "2026-02-15 13:41:00", kept: 1, told: 2, oldest: "13:00"},
		"all of it after the hour":  {then: "2026-02-15 14:01:00"},
		"a clock that was set back": {then: "2026-02-15 10:00:00"},
		"afresh":                    {then: "2026-02-15 13:01:00", full: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			for _, at := range []string{"12:00:00", "12:40:00", "13:00:00"} {
				r.o.Now = zoned(t, r.world, "2026-02-15 "+at)
				r.stopAt(r.daily(file()), "read", 1)
			}
			r.o.Now, r.o.Full = zoned(t, r.world, c.then), c.full
			told, oldest, before := int64(0), "", -1
			r.service.Reset()
			r.o.Resume = pipelines.Resume{Within: time.Hour, Told: func(n int64, first time.Time) {
				told, oldest, before = n, first.In(r.source.Zone).Format("15:04"), len(r.service.Log())
			}}
			asked, report := r.asked(r.daily(file()))
			if f := report.Forms[0]; f.WindowsKept != c.kept || len(asked) != 4-c.kept {
				t.Errorf("kept %d, asked for %v", f.WindowsKept, asked)
			}
			if told != c.told || oldest != c.oldest || told > 0 && before != 0 {
				t.Errorf("told of %d from %s after %d requests, want %d from %s", told, oldest, before, c.told, c.oldest)
			}
			r.checkAll([]definition.Output{file()}, inJanuary)
			r.noCheckpoint()
		})
	}
}

// TestCheckpointOfAFailure: errors that the next run may not meet keep what was
// read, those of the data do not.
func TestCheckpointOfAFailure(t *testing.T) {
	r := newDeclared(t)
	def := r.daily(file())
	def.Source.Requests.PerDay = 5 // a count, what changed last, and three windows
	_, err := pipelines.Run(t.Context(), def, r.o)
	if e := (*transport.BudgetError)(nil); !errors.As(err, &e) {
		t.Fatal(err)
	}
	if asked, report := r.asked(r.daily(file())); !slices.Equal(asked, []string{"2026-01-04"}) || report.Forms[0].WindowsKept != 3 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}

	r = newDeclared(t)
	r.service.Before = func(q formservice.Request) { // a result that never stays in one window
		for _, day := range []string{"2026-01-01", "2026-01-02"} {
			if reads(day)(q) {
				_ = r.form.Finish(1, extracttest.Wall(day+" 15:00:00"))
			}
		}
	}
	if _, err := pipelines.Run(t.Context(), r.daily(file()), r.o); err == nil {
		t.Fatal("the run ended well")
	}
	r.noCheckpoint()
}
