package crashtest

import (
	"testing"

	"github.com/formetl/formetl/load"
)

// TestFileKilledAtEveryPoint kills runs that replace a single file: it is the
// old one or the new one, whole, and a manifest beside it agrees with it.
func TestFileKilledAtEveryPoint(t *testing.T) { eachCrash(t, csvFile, fileCrashes, 3) }

// fileCrashes are the points of a run with a single file, which is one part,
// has no id set and no mark.
func fileCrashes(second bool) []crash {
	var all []crash
	for _, p := range points() {
		switch p.name {
		case string(load.StepBeside), string(load.StepSupersede), string(load.StepMark):
		case "piece", "read":
			for _, k := range times(lastDay) {
				all = append(all, crash{p, k, second})
			}
		default:
			all = append(all, crash{p, 1, second})
		}
	}
	return all
}

// crashedFile checks what the readers of a single file see after a crash.
func (w *world) crashedFile(s sight, before, now rows) {
	w.t.Helper()
	ctx := w.t.Context()
	expected := before
	if s == seesSwap || s == seesNew {
		expected = now
	}
	r, err := w.asFile(ctx)
	sees(w.t, "the reader of the file", r, err, expected)
	if s == seesNoMark || s == seesSwap {
		expected = nil
	}
	r, err = w.byManifest(ctx)
	sees(w.t, "the reader of the manifest", r, err, expected)
	if strays, err := w.strays(ctx); expected != nil && (err != nil || len(strays) > 0) {
		w.t.Errorf("strays are visible: %v, %v", strays, err)
	}
}
