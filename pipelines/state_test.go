package pipelines_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// errDisk is a store that fails.
var errDisk = &load.IOError{Op: "write", Path: "x", Err: errors.New("disk")}

// state looks, and fails the test where the look changes or asks anything.
func (w *world) state(def *definition.Definition, o pipelines.Options) (*upkeep.StateReport, error) {
	w.t.Helper()
	w.service.Reset()
	before := tree(w.t, w.dir)
	report, err := upkeep.State(w.t.Context(), def, o.Options)
	sameTree(w.t, before, tree(w.t, w.dir))
	if counts := w.service.Counts(); len(counts) > 0 {
		w.t.Errorf("the service was asked for %v", counts)
	}
	return report, err
}

func (w *world) mustState(def *definition.Definition, o pipelines.Options) *upkeep.StateReport {
	w.t.Helper()
	report, err := w.state(def, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

func TestStateOfARunThatEnded(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(append(fileAndDays(), months())...)
	run := w.run(def)
	def.Outputs = append(def.Outputs, definition.Output{Path: definition.StdoutPath}, definition.Output{Path: w.path("runs/{run_id}/")})
	r := w.mustState(def, options())
	if len(r.Forms) != 1 || r.Forms[0].Form != "form1" || r.Forms[0].Next != nil || len(r.Checkpoints) > 0 {
		t.Errorf("report %+v", r)
	}
	outs := r.Forms[0].Outputs
	if len(outs) != 4 {
		t.Fatalf("%d outputs", len(outs))
	}
	for i, want := range []string{"..", "2026-01-05 00:00:00", "2026-01-05 00:00:00"} {
		at := outs[i]
		if at.Manifest == nil || at.Manifest.RunID != run.RunID || at.Manifest.Rows != 8 || at.Watermark().String() != want || !at.Nothing() || at.Dataset != (i > 0) {
			t.Errorf("%s: %+v", at.Path, at)
		}
	}
	if last := outs[3]; !last.PerRun || last.Manifest != nil || last.Err != nil {
		t.Errorf("the path of each run: %+v", last)
	}
}

// TestStateTellsLeftoversOnce where files share a folder.
func TestStateTellsLeftoversOnce(t *testing.T) {
	w := newWorld(t)
	w.leave(".", "dead", "a.csv")
	def := w.definition(definition.Output{Path: "a.csv", Format: "csv"}, definition.Output{Path: "b.csv", Format: "csv"})
	outs := w.mustState(def, options()).Forms[0].Outputs
	if len(outs[0].Leftovers) != 1 || len(outs[1].Leftovers) != 0 {
		t.Errorf("leftovers %v and %v", outs[0].Leftovers, outs[1].Leftovers)
	}
}

// TestStateBeforeTheFirstRun makes no folder, whatever is asked for.
func TestStateBeforeTheFirstRun(t *testing.T) {
	w := newWorld(t)
	def := w.definition(definition.Output{Path: "{form}/", Format: "csv"}, definition.Output{Path: "files/{form}.csv", Format: "csv"})
	def.Extract.Incremental = true
	r := w.mustState(def, options())
	for _, at := range r.Forms[0].Outputs {
		if at.Manifest != nil || !at.Nothing() || !at.Watermark().IsZero() {
			t.Errorf("%s: %+v", at.Path, at)
		}
	}
	if next := r.Forms[0].Next; next == nil || !next.IsZero() {
		t.Errorf("the next run begins at %v", next)
	}
	def.Extract.From = extracttest.Wall("2026-01-01")
	if next := w.mustState(def, options()).Forms[0].Next; next.String() != "2026-01-01 00:00:00" {
		t.Errorf("the next run begins at %v", next)
	}
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) > 0 {
		t.Errorf("it made %v, %v", entries, err)
	}
	def.Forms = []string{"form*"}
	o := options()
	o.Forms = []string{"orders"}
	var none *account.NoFormsError
	if _, err := upkeep.State(t.Context(), def, o.Options); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
}

// TestStateTellsWhereTheNextRunBegins: as the next run does it.
func TestStateTellsWhereTheNextRunBegins(t *testing.T) {
	l := newLiving(t, days())
	l.goOn()
	for lookback, want := range map[time.Duration]string{0: "2026-01-20 00:00:00", 72 * time.Hour: "2026-01-17 00:00:00", 100 * 24 * time.Hour: "2025-10-12 00:00:00"} {
		def := l.definition()
		def.Extract.Lookback = lookback
		if next := l.mustState(def, l.o).Forms[0].Next; next.String() != want {
			t.Errorf("with a lookback of %s at %s, want %s", lookback, next, want)
		}
	}
	l.now("2026-01-22 12:00:00")
	next := l.mustState(l.definition(), l.o).Forms[0].Next
	if f, _ := l.goOn(); f.Range.From != *next {
		t.Errorf("told that the next run begins at %s, and it began at %s", next, f.Range.From)
	}
	// An output without a watermark lets it begin anew.
	l.outs = append(l.outs, months())
	if next := l.mustState(l.definition(), l.o).Forms[0].Next; !next.IsZero() {
		t.Errorf("the next run begins at %s", next)
	}
}

// TestStateOfARunThatEndedEarly tells what it had read, and what it was staging.
func TestStateOfARunThatEndedEarly(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days()), "read", 2)
	r.leave("days", "dead", "dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson")
	report := r.mustState(r.daily(days()), r.o)
	if len(report.Checkpoints) != 1 {
		t.Fatalf("checkpoints %+v", report.Checkpoints)
	}
	c := report.Checkpoints[0]
	if c.RunID == "" || c.Form != "form1" || c.Windows != 2 || c.Rows == 0 || c.Bytes == 0 || !c.OpenedAt.Equal(r.o.Now()) {
		t.Errorf("checkpoint %+v", c)
	}
	if at := report.Forms[0].Outputs[0]; at.Manifest != nil || at.Holder != nil || len(at.Leftovers) != 1 || at.Leftovers[0].Run != "dead" {
		t.Errorf("output %+v", at)
	}
}

// TestStateDuringARun says whose it is, and how far it has come.
func TestStateDuringARun(t *testing.T) {
	r := newResumed(t)
	def := r.daily(days(), fileAndDays()[0])
	r.service.Before = func(q formservice.Request) {
		if q.Transaction != formservice.TransactionResults {
			return
		}
		report, err := upkeep.State(t.Context(), def, r.o.Options)
		if err != nil {
			t.Error(err)
			return
		}
		for _, at := range report.Forms[0].Outputs {
			if h := at.Holder; h == nil || h.Pipeline != "e2e" || h.PID != os.Getpid() || h.RunID == "" {
				t.Errorf("%s: held by %+v", at.Path, h)
			}
		}
	}
	r.runBy(def, r.o)
}

// recorded is a commit that stopped half-way and stands recorded.
func (r *resumed) recorded(def *definition.Definition) {
	r.t.Helper()
	o := watching(func(_, op, name string) error {
		if op == "put" && name == load.ManifestName {
			return errDisk
		}
		return nil
	})
	o.Now = r.o.Now
	var commit *load.CommitError
	if _, err := pipelines.Run(r.t.Context(), def, o); !errors.As(err, &commit) || !commit.Recorded {
		r.t.Fatalf("got %v", err)
	}
}

func TestStateOfARecordedCommit(t *testing.T) {
	r := newResumed(t)
	r.recorded(r.daily(days()))
	at := r.mustState(r.daily(days()), r.o).Forms[0].Outputs[0]
	if at.Pending == "" || at.Manifest != nil || len(at.Leftovers) > 0 {
		t.Errorf("%+v", at)
	}
}

// TestStateGoesOn: an output that fails does not stop the others, nor a form.
func TestStateGoesOn(t *testing.T) {
	form1, form2 := fourDays(), fourDays()
	form2.Directory = "form2"
	w := newWorld(t, form1, form2)
	def := w.daily(definition.Output{Path: "{form}/", Format: "ndjson"}, definition.Output{Path: "all/{form}/", Format: "csv"})
	def.Forms, def.Extract.Incremental = []string{"form1", "form2"}, true
	w.run(def)
	if err := os.WriteFile(filepath.Join(w.path("form1"), load.ManifestName), []byte(`{"format": "nd`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := w.state(def, options())
	var failed *output.OutputsError
	var damaged *load.ManifestError
	if !errors.As(err, &failed) || len(failed.Errors) != 1 || !errors.As(err, &damaged) || !strings.Contains(err.Error(), "form form1: "+w.path("form1")) {
		t.Errorf("got %v", err)
	}
	if len(r.Forms) != 2 || r.Forms[0].Outputs[0].Err == nil || r.Forms[0].Next != nil || r.Forms[1].Next == nil {
		t.Fatalf("report %+v", r)
	}
	for _, at := range []*upkeep.OutputState{r.Forms[0].Outputs[1], r.Forms[1].Outputs[0], r.Forms[1].Outputs[1]} {
		if at.Err != nil || at.Watermark().String() != "2026-01-05 00:00:00" {
			t.Errorf("%s: %v, %s", at.Path, at.Err, at.Watermark())
		}
	}
}

func TestStateThatFails(t *testing.T) {
	w := newWorld(t)
	def := w.daily(fileAndDays()...)
	def.Source.Requests.PerDay = 5
	if err := os.MkdirAll(w.path("state"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path("days"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.mustState(def, options()); len(r.Forms) != 1 || r.Forms[0].Outputs[1].Manifest != nil {
		t.Errorf("a file in a folder's place: %+v", r.Forms)
	}
	def.Outputs[0].Path = w.path("{form}.ndjson")
	def.Forms = []string{"../evil"}
	var bad *definition.PathError
	if r, err := w.state(def, options()); !errors.As(err, &bad) || len(r.Forms) != 1 {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(w.path("evil.ndjson")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
