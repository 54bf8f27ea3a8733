package upkeep_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// Whole runs and what they leave are tested in package pipelines. These tests are
// about a definition that never ran.

func neverRun(t *testing.T) (*definition.Definition, pipelines.Options) {
	source := definition.Source{BaseURL: "https://x.invalid", Account: "acme", Zone: time.UTC}
	def := pipelinestest.Definition(t.TempDir(), source, definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Forms, def.Extract.Incremental, def.Extract.From = []string{"a", "b"}, true, extracttest.Wall("2026-01-01")
	o := pipelinestest.Options()
	o.Now = func() time.Time { return extracttest.Wall("2026-02-01") }
	return def, o
}

func TestStateOfADefinitionThatNeverRan(t *testing.T) {
	def, o := neverRun(t)
	report, err := upkeep.State(t.Context(), def, o)
	if err != nil || len(report.Forms) != 2 || len(report.Checkpoints) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, f := range report.Forms {
		if len(f.Outputs) != 1 || f.Outputs[0].Manifest != nil || f.Next == nil || f.Next.String() != "2026-01-01 00:00:00" {
			t.Errorf("form %s: %+v, next %v", f.Form, f.Outputs, f.Next)
		}
	}
}

// TestLeftoversAreToldOnce: forms whose files lie in one folder all find what lies there.
func TestLeftoversAreToldOnce(t *testing.T) {
	def, o := neverRun(t)
	def.Outputs[0] = pipelinestest.Definition(t.TempDir(), def.Source, definition.Output{Path: "{form}.csv", Format: "csv"}).Outputs[0]
	folder := filepath.Join(filepath.Dir(def.Outputs[0].Path), load.ControlFolder, "dead")
	if err := errors.Join(os.MkdirAll(folder, 0o750), os.WriteFile(filepath.Join(folder, "staged-x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	state, stateErr := upkeep.State(t.Context(), def, o)
	cleaned, cleanErr := upkeep.Clean(t.Context(), def, o, load.CleanOptions{DryRun: true})
	if stateErr != nil || len(state.Forms[0].Outputs[0].Leftovers) != 1 || len(state.Forms[1].Outputs[0].Leftovers) != 0 {
		t.Errorf("%+v, %v", state, stateErr)
	}
	if cleanErr != nil || len(cleaned.Outputs) != 1 || len(cleaned.Outputs[0].Removed) != 1 {
		t.Errorf("%+v, %v", cleaned, cleanErr)
	}
}

func TestNothingToResetOrToClean(t *testing.T) {
	def, o := neverRun(t)
	reset, err := upkeep.ResetState(t.Context(), def, o, time.Time{})
	if err != nil || len(reset.Outputs) != 2 || slices.ContainsFunc(reset.Outputs, func(r *upkeep.ResetOutput) bool { return !r.Before.IsZero() }) {
		t.Errorf("%+v, %v", reset, err)
	}
	cleaned, err := upkeep.Clean(t.Context(), def, o, load.CleanOptions{})
	if err != nil || len(cleaned.Outputs) != 0 || cleaned.Checkpoints != 0 {
		t.Errorf("%+v, %v", cleaned, err)
	}
	if made, err := filepath.Glob(filepath.Dir(filepath.Dir(def.Outputs[0].Path)) + "/[ab]"); err != nil || len(made) > 0 {
		t.Errorf("they made %v, %v", made, err)
	}
}

// TestOutputsThatFail do not stop the others, and each is told.
func TestOutputsThatFail(t *testing.T) {
	def, o := neverRun(t)
	lake := def.Outputs[0]
	def.Outputs = append(def.Outputs, definition.Output{Path: definition.StdoutPath, Format: "csv"})
	for _, name := range []string{"one-{run_id}/", "two-{run_id}/"} {
		out := lake
		out.Path = filepath.Dir(filepath.Clean(lake.Path)) + "/" + name
		def.Outputs = append(def.Outputs, out)
	}
	broken := filepath.Join(filepath.Dir(filepath.Clean(lake.Path)), "a")
	if err := errors.Join(os.MkdirAll(broken, 0o750), os.WriteFile(filepath.Join(broken, load.ManifestName), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	state, err := upkeep.State(t.Context(), def, o)
	if err == nil || len(state.Forms) != 2 || len(state.Forms[0].Outputs) != 3 || state.Forms[0].Next != nil || state.Forms[1].Next == nil {
		t.Errorf("state: %+v, %v", state, err)
	}
	reset, err := upkeep.ResetState(t.Context(), def, o, time.Time{})
	if err == nil || !strings.HasPrefix(err.Error(), "1 of 2 forms failed") || len(reset.Outputs) != 2 {
		t.Errorf("reset: %+v, %v", reset, err)
	}
	// That a path cannot be cleaned is told once, and not for each form.
	if _, err = upkeep.Clean(t.Context(), def, o, load.CleanOptions{}); err == nil || strings.Count(err.Error(), "cleaning a path with {run_id}") != 2 {
		t.Errorf("clean: %v", err)
	}
	def.Extract.Incremental = false
	if state, _ = upkeep.State(t.Context(), def, o); state.Forms[1].Next != nil {
		t.Errorf("a full run begins at %v", state.Forms[1].Next)
	}
}

// TestChosenForms: all three refuse a form that the definition has not.
func TestChosenForms(t *testing.T) {
	def, o := neverRun(t)
	o.Forms = []string{"c"}
	_, stateErr := upkeep.State(t.Context(), def, o)
	_, resetErr := upkeep.ResetState(t.Context(), def, o, time.Time{})
	_, cleanErr := upkeep.Clean(t.Context(), def, o, load.CleanOptions{})
	for _, err := range []error{stateErr, resetErr, cleanErr} {
		if _, none := errors.AsType[*definition.Fault](err); !none {
			t.Errorf("got %v", err)
		}
	}
}
