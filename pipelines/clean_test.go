package pipelines_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// leave stages what a run that died left at a folder.
func (w *world) leave(root, run, name string) {
	w.t.Helper()
	d, err := local.New(w.path(root))
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := d.Stage(w.t.Context(), run, name)
	if err == nil {
		_, err = u.Write([]byte("left"))
	}
	if err == nil {
		_, err = u.Prepare(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// leaveCheckpoint makes a checkpoint of no use whose run is gone: it has no
// header.
func (w *world) leaveCheckpoint(name string) {
	w.t.Helper()
	folder := w.path("state/checkpoint/" + name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for _, file := range []string{"lock", "0000000-rows", "0000000-record"} {
		name, then := filepath.Join(folder, file), time.Now().Add(-24*time.Hour)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, then, then)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// found lists what a report says: the output's base, and the runs of what was
// removed there.
func found(r *upkeep.CleanReport) string {
	all := make([]string, 0, len(r.Outputs))
	for _, out := range r.Outputs {
		text := filepath.Base(out.Path) + ":"
		for _, l := range out.Removed {
			text += " " + l.Run
		}
		for _, k := range out.Kept {
			text += " kept:" + k.Run
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestCleanLeavesOutputsAsTheyWere(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(append(fileAndDays(), definition.Output{Path: definition.StdoutPath, Format: "csv"}, definition.Output{Path: "second.csv", Format: "csv"})...)
	def.Outputs[2].Path = definition.StdoutPath
	w.run(def)
	before := tree(t, w.dir)
	w.leave("days", "dead1", "dt=2026-01-01/part-20260101T000000-20260102T000000-000002-0000.ndjson")
	w.leave(".", "dead2", "form1.ndjson")
	w.leave("elsewhere", "dead3", "x.csv")
	w.leaveCheckpoint("0123abcd")
	w.service.Reset()

	left := tree(t, w.dir)
	told, err := upkeep.Clean(t.Context(), def, options().Options, load.CleanOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	sameTree(t, left, tree(t, w.dir))
	did, err := upkeep.Clean(t.Context(), def, options().Options, load.CleanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What lies in a folder that two files share is told once.
	want := "form1.ndjson: dead2; days: dead1"
	for _, r := range []*upkeep.CleanReport{told, did} {
		if found(r) != want || r.Checkpoints != 1 {
			t.Errorf("found %s and %d checkpoints, want %s and 1", found(r), r.Checkpoints, want)
		}
	}
	after := tree(t, w.dir)
	for name := range after {
		if strings.HasPrefix(name, "elsewhere") {
			delete(after, name) // no output of the definition
		}
	}
	sameTree(t, before, after)
	again, err := upkeep.Clean(t.Context(), def, options().Options, load.CleanOptions{})
	if err != nil || found(again) != "" || again.Checkpoints != 0 {
		t.Errorf("cleaning again found %s and %d checkpoints, %v", found(again), again.Checkpoints, err)
	}
	if counts := w.service.Counts(); len(counts) > 0 {
		t.Errorf("the service was asked for %v", counts)
	}
}
