package pipelines_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// reset resets, and fails the test where that touches data or asks the service for
// anything but the forms of globs.
func (w *world) reset(def *definition.Definition, o pipelines.Options, to time.Time) (*upkeep.ResetReport, error) {
	w.t.Helper()
	w.service.Reset()
	before := w.committed()
	report, err := upkeep.ResetState(w.t.Context(), def, o, to)
	sameTree(w.t, before, w.committed())
	allowed := 0
	if pipelines.NeedsForms(def, o) {
		allowed = 1
	}
	if counts := w.service.Counts(); len(counts) > allowed || counts[formservice.TransactionForms] != allowed {
		w.t.Errorf("the service was asked for %v", counts)
	}
	return report, err
}

// committed are the data in the world's folder, without manifests, and without
// what is staged.
func (w *world) committed() map[string]string {
	w.t.Helper()
	all := dataOnly(tree(w.t, w.dir))
	for name := range all {
		if strings.Contains(name, load.ControlFolder) {
			delete(all, name)
		}
	}
	return all
}

// asItWas tells whether a reset changed nothing of an output.
func asItWas(o *upkeep.ResetOutput) bool {
	return o.Before.Equal(o.After.Time) && o.Recovery.RunID == ""
}

func TestResetLetsTheNextRunBeginAnew(t *testing.T) {
	again := days()
	again.Path = "again/"
	l := newLiving(t, days(), again)
	l.goOn()
	l.now("2026-01-21 12:00:00")
	for _, c := range []struct{ to, watermark, began string }{
		{"", "..", ".."},
		{"2026-01-10 15:00:00", "2026-01-10 15:00:00", "2026-01-07 00:00:00"}, // less the lookback
	} {
		var to time.Time
		if c.to != "" {
			to = extracttest.Wall(c.to)
		}
		report, err := l.reset(l.definition(), l.o, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range report.Outputs {
			if out.Before.IsZero() || out.After.String() != c.watermark || asItWas(out) {
				t.Errorf("%+v", out)
			}
		}
		if len(report.Outputs) != 2 {
			t.Errorf("%d outputs", len(report.Outputs))
		}
		for _, at := range l.mustState(l.definition(), l.o).Forms[0].Outputs {
			if at.Watermark().String() != c.watermark || at.Manifest.Rows == 0 {
				t.Errorf("%s: %s, %d rows", at.Path, at.Watermark(), at.Manifest.Rows)
			}
		}
		l.checkTidy()
		// Resetting again finds nothing.
		report, err = l.reset(l.definition(), l.o, to)
		if err != nil || slices.ContainsFunc(report.Outputs, func(o *upkeep.ResetOutput) bool { return !asItWas(o) }) {
			t.Errorf("again: %+v, %v", report.Outputs[0], err)
		}
		f, _ := l.goOn()
		if f.Range.From.String() != c.began {
			t.Errorf("reset to %s: the next run began at %s, want %s", c.watermark, f.Range.From, c.began)
		}
		l.check("2026-01-21 11:59:00")
	}
}

// TestResetDropsWhatARunLeft that ended early: the next one asks for all again.
func TestResetDropsWhatARunLeft(t *testing.T) {
	r := newResumed(t)
	stopped := r.stopAt(r.daily(days()), "read", 2)
	before := tree(t, r.dir)
	if c, err := upkeep.Clean(t.Context(), r.daily(days()), r.o, load.CleanOptions{DryRun: true}); err != nil || c.Checkpoints != 1 {
		t.Errorf("a dry run of clean finds %+v, %v", c, err)
	}
	sameTree(t, before, tree(t, r.dir))
	report, err := r.reset(r.daily(days()), r.o, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Checkpoints; len(c) != 1 || c[0].Windows != 2 || c[0].Rows != 4 || c[0].RunID != stopped.RunID {
		t.Errorf("discarded %+v", c)
	}
	r.checkTidy()
	if asked, report := r.asked(r.daily(days())); len(asked) != 4 || report.Forms[0].Continued != "" {
		t.Errorf("the next run asked for %v and resumed %q", asked, report.Forms[0].Continued)
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))

	r.stopAt(r.daily(days()), "read", 2)
	r.overwrite("header", "{")
	if report, err = r.reset(r.daily(days()), r.o, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if c := report.Checkpoints; len(c) != 1 || c[0].RunID != "unknown" { // its folder's name tells the pipeline and the form
		t.Errorf("of a broken checkpoint discarded %+v", c)
	}
	r.checkTidy()
	if at := r.mustState(r.daily(days()), r.o).Forms[0].Outputs[0]; !at.Watermark().IsZero() {
		t.Errorf("left %+v", at)
	}
	if asked, report := r.asked(r.daily(days())); len(asked) != 4 || report.Forms[0].Continued != "" {
		t.Errorf("the next run asked for %v and resumed %q", asked, report.Forms[0].Continued)
	}
}

// TestResetForwards is refused, and nothing is dropped then.
func TestResetForwards(t *testing.T) {
	r := newResumed(t)
	r.runBy(r.daily(days()), r.o)
	r.form.Delete(1)
	r.stopAt(r.daily(days()), "read", 1)
	before := tree(t, r.dir)
	_, err := r.reset(r.daily(days()), r.o, extracttest.Wall("2026-01-05").Add(time.Second))
	if !errors.Is(err, load.ErrUsage) || !strings.Contains(err.Error(), "up to 2026-01-05 00:00:00") {
		t.Errorf("got %v", err)
	}
	sameTree(t, before, tree(t, r.dir))
	if _, report := r.asked(r.daily(days())); report.Forms[0].WindowsKept != 1 {
		t.Errorf("the checkpoint is gone: %+v", report.Forms[0])
	}
}
