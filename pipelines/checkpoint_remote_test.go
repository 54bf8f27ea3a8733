package pipelines_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestCheckpointAtDestination resumes on another host, whose state folder is
// empty: what was read lies beside the first output.
func TestCheckpointAtDestination(t *testing.T) {
	for name, outs := range map[string][]definition.Output{
		"a dataset":            {days()},
		"a file":               {fileAndDays()[0]},
		"a file and a dataset": fileAndDays(),
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			def := func() *definition.Definition {
				def := r.daily(slices.Clone(outs)...)
				def.CheckpointAtDestination = true
				return def
			}
			r.stopAt(def(), "read", 2)
			r.leaveHost() // each run is on a host of its own
			state := r.mustState(def(), r.o)
			if len(state.Checkpoints) != 1 || state.Checkpoints[0].Windows != 2 {
				t.Errorf("state tells of %+v", state.Checkpoints)
			}
			plan, err := pipelines.MakePlan(t.Context(), def(), r.o.Options, true)
			if u := plan.Forms[0].Unfinished; err != nil || u == nil || u.Windows != 2 {
				t.Errorf("the plan tells of %+v, %v", u, err)
			}
			asked, report := r.asked(def())
			if f := report.Forms[0]; f.Kept != 2 || f.Continued == "" || len(asked) != 2 {
				t.Errorf("asked for %v, report %+v", asked, f)
			}
			if out := outs[len(outs)-1]; out.Dataset() {
				r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
			}
		})
	}
}

// TestCleanDropsACheckpointAtDestination leaves one that a run holds.
func TestCleanDropsACheckpointAtDestination(t *testing.T) {
	r := newResumed(t)
	def := r.daily(days())
	def.CheckpointAtDestination = true
	r.stopAt(def, "read", 2)
	for _, dry := range []bool{true, false} {
		report, err := maintain.Clean(t.Context(), def, r.o.Options, load.CleanOptions{DryRun: dry})
		if err != nil || report.Checkpoints != 1 {
			t.Errorf("dry run %t: %d checkpoints, %v", dry, report.Checkpoints, err)
		}
	}
	if asked, report := r.asked(def); len(asked) != 4 || report.Forms[0].Continued != "" {
		t.Errorf("the next run asked for %v and resumed from %q", asked, report.Forms[0].Continued)
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
}

// TestRemoteCheckpointThatCannotBeRead: a store that does not answer says
// nothing about what lies there. The run fails, and the next one resumes.
func TestRemoteCheckpointThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ op, pattern string }{
		"it cannot be listed":       {"list", ".formetl/checkpoint/*/"},
		"its header cannot be read": {"get", ".formetl/checkpoint/*/header"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition {
				def := r.daily(days())
				def.CheckpointAtDestination = true
				return def
			}
			r.stopAt(def(), "read", 2)
			if _, err := pipelines.Run(t.Context(), def(), r.failing(c.op, c.pattern)); !errors.Is(err, errBoom) {
				t.Errorf("error %v", err)
			}
			asked, report := r.asked(def())
			if f := report.Forms[0]; f.Kept != 2 || len(asked) != 2 {
				t.Errorf("asked for %v, report %+v", asked, f)
			}
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}
