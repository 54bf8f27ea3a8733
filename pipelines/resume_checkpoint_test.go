package pipelines_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
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
// for again, whatever it is to become.
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
				asked, report := r.asked(def())
				want := []string{"2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"}[stop:]
				if f := report.Forms[0]; !slices.Equal(asked, want) || f.Continued != stopped.RunID || f.Kept != stop || f.Rows != 8 || !f.Verified.Match {
					t.Errorf("asked for %v, report %+v", asked, f)
				}
				r.checkAll(outs, inJanuary)
				r.noCheckpoint()
			})
		}
	}
}

// TestResumeInTheOwnRange: a single file holds its own run's range, to which
// what an earlier run read counts.
func TestResumeInTheOwnRange(t *testing.T) {
	for name, outs := range shapes() {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition {
				d := r.daily(slices.Clone(outs)...)
				d.Extract.From, d.Extract.To = extracttest.Wall("2026-02-01"), time.Time{}
				return d
			}
			r.stopAt(def(), "read", 12)
			if _, err := r.form.Insert(pipelinestest.Result(100, "2026-02-17 09:00:00", "late")); err != nil {
				t.Fatal(err)
			}
			if err := r.form.Finish(10, extracttest.Wall("2026-02-16 10:00:00")); err != nil { // it was read on the 10th
				t.Fatal(err)
			}
			r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
			asked, report := r.asked(def())
			for _, day := range asked {
				if day < "2026-02-13" && day != "2026-02-10" {
					t.Errorf("asked again for %s", day)
				}
			}
			if f := report.Forms[len(report.Forms)-1]; f.Range.To.String() != "2026-02-18 11:59:00" {
				t.Errorf("the range is %v", f.Range)
			}
			r.checkAll(outs, func(x formservice.Result) bool { return pipelinestest.Date(x) >= "2026-02" })
			r.noCheckpoint()
		})
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
			if f := report.Forms[0]; f.Kept != c.kept || (f.Continued != "") != (c.kept > 0 || name == "no verification") {
				t.Errorf("kept %d, want %d, report %+v", f.Kept, c.kept, f)
			}
			from, to := def.Extract.From.Format(formservice.WallTime), def.Extract.To.Format(formservice.WallTime)
			if def.Outputs[0].Format == "ndjson" && name != "compression" && filepath.Base(def.Outputs[0].Path) == "form1.ndjson" {
				r.checkFile("form1.ndjson", pipelinestest.Truth(r.form, func(x formservice.Result) bool { return pipelinestest.Date(x) >= from && pipelinestest.Date(x) < to }))
			}
		})
	}
}

// TestDiscardedCheckpointIsTold by a definition, with the reason; nobody expects
// of an export that it resumes another.
func TestDiscardedCheckpointIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*declaredRun, *definition.Definition)
		reason string
	}{
		"a search":        {func(_ *declaredRun, d *definition.Definition) { d.Schema = nil }, "the definition has changed since"},
		"--full":          {func(r *declaredRun, _ *definition.Definition) { r.o.Full = true }, "everything is to be read anew"},
		"afresh":          {func(r *declaredRun, _ *definition.Definition) { r.o.Resume.Within = -1 }, "everything is to be read anew"},
		"a newer version": {func(r *declaredRun, _ *definition.Definition) { r.manifestBehind("form1.ndjson") }, "form1.ndjson has changed since"},
		"another output":  {func(r *declaredRun, d *definition.Definition) { d.Outputs = r.daily(wholeDataset()).Outputs }, "the outputs have changed since"},
	} {
		for _, file := range []string{"e2e.yaml", ""} {
			if name == "another output" && file == "" { // another export
				continue
			}
			t.Run(name+file, func(t *testing.T) {
				r := newDeclared(t)
				define := func() *definition.Definition {
					def := r.daily(slices.Clone(shapes()["a file"])...)
					if file != "" {
						def.File = r.path(file)
					}
					return def
				}
				stopped := r.stopAt(define(), "read", 2)
				def := define()
				c.change(r, def)
				var log bytes.Buffer
				r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				if asked, report := r.asked(def); len(asked) != 4 || report.Forms[0].Continued != "" {
					t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
				}
				level := "WARN"
				if file == "" {
					level = "INFO"
				}
				told := false
				for line := range strings.Lines(log.String()) {
					told = told || strings.Contains(line, "level="+level) && strings.Contains(line, "the checkpoint of an earlier run is discarded") &&
						strings.Contains(line, "earlier_run="+stopped.RunID) && strings.Contains(line, c.reason)
				}
				if !told {
					t.Errorf("the log says:\n%s", &log)
				}
			})
		}
	}
}

// manifestBehind leaves a file and its manifest as another run would.
func (r *declaredRun) manifestBehind(name string) {
	r.t.Helper()
	other := r.daily(definition.Output{Path: name, Format: "ndjson"})
	other.State = r.path("elsewhere")
	if _, err := pipelines.Run(r.t.Context(), other, r.o); err != nil {
		r.t.Fatal(err)
	}
}

// TestCheckpointOfAPathForEachRun: a path that holds the run's id is the same output.
func TestCheckpointOfAPathForEachRun(t *testing.T) {
	r := newDeclared(t)
	out := definition.Output{Path: "{run_id}.ndjson", Format: "ndjson"}
	r.stopAt(r.daily(out), "read", 2)
	if asked, report := r.asked(r.daily(out)); len(asked) != 2 || report.Forms[0].Kept != 2 {
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
			if f := report.Forms[0]; f.Kept != c.kept || len(asked) != 4-c.kept {
				t.Errorf("kept %d, asked for %v", f.Kept, asked)
			}
			if told != c.told || oldest != c.oldest || told > 0 && before != 0 {
				t.Errorf("told of %d from %s after %d requests, want %d from %s", told, oldest, before, c.told, c.oldest)
			}
			r.checkAll([]definition.Output{file()}, inJanuary)
			r.noCheckpoint()
		})
	}
}

// TestDamagedCheckpoint costs what is damaged, and no run.
func TestDamagedCheckpoint(t *testing.T) {
	for pattern, want := range map[string]int{"0000001-*-rows": 2, "*-record": 4, "header": 4} {
		t.Run(pattern, func(t *testing.T) {
			r := newDeclared(t)
			r.stopAt(r.daily(file()), "read", 3)
			r.overwrite(pattern, "{")
			if asked, _ := r.asked(r.daily(file())); len(asked) != want {
				t.Errorf("asked for %v", asked)
			}
			r.checkAll([]definition.Output{file()}, inJanuary)
			r.noCheckpoint()
		})
	}
}

// TestCheckpointAndChanges: the form changed between two attempts, also by a column
// that nobody knew.
func TestCheckpointAndChanges(t *testing.T) {
	for name, change := range map[string]func(*declaredRun){
		"moved to a later day":         func(r *declaredRun) { _ = r.form.Finish(1, extracttest.Wall("2026-01-04 15:00:00")) },
		"moved to a day that was read": func(r *declaredRun) { _ = r.form.Finish(4, extracttest.Wall("2026-01-01 15:00:00")) },
		"deleted":                      func(r *declaredRun) { r.form.Delete(2) },
		"inserted":                     func(r *declaredRun) { _, _ = r.form.Insert(pipelinestest.Result(99, "2026-01-01 11:00:00", "new")) },
		"a late column": func(r *declaredRun) {
			x := pipelinestest.Result(98, "2026-01-04 11:00:00", "new")
			x.Items = append(x.Items, formservice.Answer{ID: "77", Type: "text", Index: 2, Values: []string{"v"}})
			_, _ = r.form.Insert(x)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			r.stopAt(r.daily(fileAndDays()...), "read", 2)
			change(r)
			_, report := r.asked(r.daily(fileAndDays()...))
			if f := report.Forms[0]; !f.Verified.Match {
				t.Errorf("report %+v", f)
			}
			r.checkAll(fileAndDays(), inJanuary)
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
	if asked, report := r.asked(r.daily(file())); !slices.Equal(asked, []string{"2026-01-04"}) || report.Forms[0].Kept != 3 {
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

// TestCleanDropsTheCheckpoint of its definition, and the next run begins anew.
func TestCleanDropsTheCheckpoint(t *testing.T) {
	r := newDeclared(t)
	r.stopAt(r.daily(file()), "read", 2)
	other := r.daily(definition.Output{Path: "other.ndjson", Format: "ndjson"})
	other.Name = "other"
	r.stopAt(other, "read", 1)
	for _, dry := range []bool{true, false} {
		if report, err := upkeep.Clean(t.Context(), r.daily(file()), r.o.Options, load.CleanOptions{DryRun: dry}); err != nil {
			t.Errorf("%+v, %v", report, err)
		}
	}
	if report, err := upkeep.Clean(t.Context(), r.daily(file()), r.o.Options, load.CleanOptions{}); err != nil {
		t.Errorf("%+v, %v", report, err)
	}
	if asked, report := r.askedUntidy(r.daily(file())); len(asked) != 4 || report.Forms[0].Kept != 0 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
	other = r.daily(definition.Output{Path: "other.ndjson", Format: "ndjson"})
	other.Name = "other"
	if asked, report := r.asked(other); len(asked) != 3 || report.Forms[0].Kept != 1 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
}

// TestPlanTellsOfAnUnfinishedRun without asking for anything.
func TestPlanTellsOfAnUnfinishedRun(t *testing.T) {
	for name, outs := range shapes() {
		r := newDeclared(t)
		stopped := r.stopAt(r.daily(slices.Clone(outs)...), "read", 2)
		report, err := pipelines.MakePlan(t.Context(), r.daily(slices.Clone(outs)...), r.o.Options, true)
		if err != nil {
			t.Fatal(err)
		}
		if u := report.Forms[0].Unfinished; u == nil || u.Windows != 2 || u.Results != 4 || u.RunID != stopped.RunID {
			t.Errorf("%s: %+v", name, u)
		}
		r.asked(r.daily(slices.Clone(outs)...))
		if report, err = pipelines.MakePlan(t.Context(), r.daily(slices.Clone(outs)...), r.o.Options, true); err != nil || report.Forms[0].Unfinished != nil {
			t.Errorf("%s: %+v, %v", name, report.Forms[0].Unfinished, err)
		}
	}
}
