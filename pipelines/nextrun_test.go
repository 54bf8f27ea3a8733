package pipelines_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
)

// takenOver runs to the end and gives how many results the log says were taken over.
func (r *resumed) takenOver(def *definition.Definition) (results int64, report *pipelines.Report) {
	r.t.Helper()
	var log bytes.Buffer
	o := r.o
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	report, err := pipelines.Run(r.t.Context(), def, o)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(log.String()) {
		var record struct {
			Msg     string `json:"msg"`
			Results int64  `json:"results"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			r.t.Fatal(err)
		}
		if record.Msg == "resuming from the checkpoint of an earlier run" {
			results = record.Results
		}
	}
	return results, report
}

// TestStateTellsWhatTheNextRunDoes: wherever a run was stopped, the state says what the
// next one does, and that does it.
func TestStateTellsWhatTheNextRunDoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(r *resumed, def *definition.Definition)
		resumes bool
		why     string
	}{
		{"never ran", func(*resumed, *definition.Definition) {}, false, ""},
		{"stopped with its plan alone", func(r *resumed, def *definition.Definition) { r.stopAt(def, "planned", 1) }, false, ""},
		{"stopped after a window", func(r *resumed, def *definition.Definition) { r.stopAt(def, "read", 1) }, true, ""},
		{"stopped after three windows", func(r *resumed, def *definition.Definition) { r.stopAt(def, "read", 3) }, true, ""},
		{"stopped when all was read", func(r *resumed, def *definition.Definition) { r.stopAt(def, "verified", 1) }, true, ""},
		{"stopped when all was staged", func(r *resumed, def *definition.Definition) { r.stopAt(def, "prepared", 1) }, true, ""},
		{"the definition has changed", func(r *resumed, def *definition.Definition) {
			r.stopAt(def, "read", 2)
			def.Extract.View = "7"
		}, false, "the definition has changed since"},
		{"another run has committed", func(r *resumed, def *definition.Definition) {
			r.stopAt(def, "read", 2)
			r.writeManifest()
		}, false, "days/ has changed since"},
		{"everything is wanted", func(r *resumed, def *definition.Definition) {
			r.stopAt(def, "read", 2)
			r.o.Full = true
		}, false, "everything is to be read anew"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newResumed(t)
			def := r.daily(days())
			c.prepare(r, def)
			will := r.mustState(def, r.o).Forms[0].Will
			if will.UnderWay != nil || len(will.Finishes) > 0 || (will.Resumes != nil) != c.resumes || !strings.HasSuffix(will.Why, c.why) || (will.Why == "") != (c.why == "") {
				t.Fatalf("%+v", will)
			}
			if c.name == "the definition has changed" {
				def.Extract.View = "" // the service has no such view
				return
			}
			results, report := r.takenOver(def)
			if !c.resumes {
				if results != 0 || report.Forms[0].Continued != "" {
					t.Errorf("%d results of run %s are taken over", results, report.Forms[0].Continued)
				}
				return
			}
			if w := will.Resumes; w.Results != results || w.RunID != report.Forms[0].Continued || w.Oldest.IsZero() || w.Newest.Before(w.Oldest) {
				t.Errorf("told %+v, and %d results of run %s are taken over", w, results, report.Forms[0].Continued)
			}
		})
	}
}

// TestStateTellsOfRecordedCommits: the next run finishes them before anything else, and
// resumes where the same run had read for another output.
func TestStateTellsOfRecordedCommits(t *testing.T) {
	r := newResumed(t)
	def := r.daily(days())
	r.killAt(def, "days", load.StepManifest)
	will := r.mustState(def, r.o).Forms[0].Will
	if len(will.Finishes) != 1 || will.Resumes != nil || !strings.HasPrefix(will.Finishes[0].Path, r.path("days")) {
		t.Fatalf("%+v", will)
	}
	finished := will.Finishes[0].RunID
	first := ""
	o := r.o
	o.At = func(point string) {
		if m := r.manifestOf(def); point == "planned" && m != nil {
			first = m.RunID
		}
	}
	if _, err := pipelines.Run(t.Context(), def, o); err != nil {
		t.Fatal(err)
	}
	if first != finished {
		t.Errorf("told that the commit of %s is finished, and the plan found that of %q", finished, first)
	}
	if will := r.mustState(def, r.o).Forms[0].Will; len(will.Finishes) > 0 || will.Resumes != nil || will.Discards != "" {
		t.Errorf("then %+v", will)
	}
}

// manifestOf is the manifest of the first output, while a run may be under way.
func (r *resumed) manifestOf(def *definition.Definition) *load.Manifest {
	report, err := maintain.State(r.t.Context(), def, r.o.Options)
	if err != nil {
		r.t.Error(err)
		return nil
	}
	return report.Forms[0].Outputs[0].Manifest
}
