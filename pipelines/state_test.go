package pipelines_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
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
