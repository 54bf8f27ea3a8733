package crashtest

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/formetl/formetl/load"
)

// TestRecoveryKilledAtItsSteps kills one run after the other that finishes a
// recorded commit, each a step further.
func TestRecoveryKilledAtItsSteps(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		w := newWorld(t, k, ndjsonDataset)
		w.run()
		before := truth(w.form)
		change(w.form, 1)
		w.runInto("parts:3")
		for _, step := range []string{
			string(load.StepCheck), string(load.StepUnmark), "parts:2",
			string(load.StepManifest), "supersede:2", string(load.StepMark), string(load.StepClose),
		} {
			w.runInto(step)
			w.oneOf(before, truth(w.form))
		}
		w.run()
		w.whole(truth(w.form))
		w.clean()
	})
}

// TestStagedGone takes prepared parts away after a crash, as a lifecycle rule
// of a bucket does: they are read again.
func TestStagedGone(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		t.Run("before the intent", func(t *testing.T) {
			w := newWorld(t, k, ndjsonDataset)
			w.run()
			change(w.form, 1)
			w.runInto("prepared:8")
			w.lose()
			w.run()
			w.whole(truth(w.form))
			w.clean()
		})
		t.Run("after it", func(t *testing.T) {
			w := newWorld(t, k, ndjsonDataset)
			w.run()
			before, mark := truth(w.form), w.mark()
			change(w.form, 1)
			w.runInto("parts:3")
			w.lose()
			w.runInto("planned")
			// The commit was taken back. One who read _SUCCESS before it and
			// saw some of its parts must not find the same _SUCCESS again.
			w.crashed(seesOld, before, nil)
			if bytes.Equal(w.mark(), mark) {
				t.Errorf("_SUCCESS is again what it was before the commit: %q", mark)
			}
			w.run()
			w.whole(truth(w.form))
			w.clean()
		})
	})
}

// mark is what _SUCCESS holds, nil where there is none.
func (w *world) mark() []byte {
	w.t.Helper()
	data, err := w.get(w.t.Context(), load.SuccessName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return data
}

// lose removes every second of the staged objects.
func (w *world) lose() {
	w.t.Helper()
	staged, err := w.staged(w.t.Context())
	if err != nil || len(staged) < 2 {
		w.t.Fatalf("staged is %v, %v", staged, err)
	}
	slices.Sort(staged)
	for i := 0; i < len(staged); i += 2 {
		if err := w.unstage(w.t.Context(), staged[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}
