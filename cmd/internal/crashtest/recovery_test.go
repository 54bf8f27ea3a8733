package crashtest

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestRecoveryKilledAgainAndAgain kills the run that recovers from a crash,
// each time a little later, until it lives: what it did so far is not undone
// and is not in its way. Over S3 it dies at its requests; a disk has none, so
// there it dies at moments.
func TestRecoveryKilledAgainAndAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, fault := range needs.Sample([]string{"read:6", "prepared:6", "parts:3"}, 1) {
			t.Run(fault, func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.run()
				before := truth(w.form)
				change(w.form, 1)
				w.runInto(fault)
				kills := 0
				for w.shoot(later(k, kills)) {
					kills++
					w.oneOf(before, truth(w.form))
				}
				w.whole(truth(w.form))
				w.clean()
			})
		}
	})
}

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

// later aims the n-th kill of a row.
func later(k kind, n int) aim {
	if k.s3 {
		return aim{request: 1 + 4*n, after: n%2 == 0}
	}
	pause := 2 * time.Millisecond
	for range n {
		pause += pause/8 + 200*time.Microsecond // a slow machine is not killed for ever
	}
	return aim{pause: pause}
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

// TestCleanAfterACrash cleans up instead of running again: a recorded commit
// is finished, and nothing else is left of the dead run.
func TestCleanAfterACrash(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		all := slices.DeleteFunc(crashes(true), func(c crash) bool { return !c.cleaned() })
		for _, c := range needs.Sample(all, 2) {
			t.Run(c.String(), func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.run()
				want := truth(w.form)
				change(w.form, 1)
				w.runInto(c.String())
				w.clean()
				if c.recorded {
					want = truth(w.form)
				}
				w.whole(want)
				w.run()
				w.whole(truth(w.form))
			})
		}
	})
}

// cleaned chooses crashes that leave different things: the second of three
// times that a point comes, where it comes often.
func (c crash) cleaned() bool {
	switch c.name {
	case "planned", string(load.StepCheck), string(load.StepManifest), string(load.StepMark):
		return false
	}
	return !c.often || c.k > 1 && c.k < occurrences(c.second)[c.name]
}
