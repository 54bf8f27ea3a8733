package crashtest

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestContinuedOverAChangedForm changes the form between a kill and the next
// run. That one takes over windows that were read before: each row is of one
// of the two times, and there once. The run after it makes the truth of now.
func TestContinuedOverAChangedForm(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, fault := range needs.Sample([]string{"read:2", "read:9", "verified", "prepared:4", "parts:4", "supersede:2"}, 2) {
			t.Run(fault, func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.run()
				change(w.form, 3)
				then := truth(w.form)
				w.runInto(fault)
				change(w.form, 4)
				now := truth(w.form)
				w.run()
				r, err := w.byManifest(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.mixed(r.rows, then, now)
				w.run()
				w.whole(now)
				w.clean()
			})
		}
	})
}

// mixed checks that rows are each of one of two times, and that what stood at
// both is there.
func (w *world) mixed(r, then, now rows) {
	w.t.Helper()
	for id, value := range r {
		a, before := then[id]
		b, after := now[id]
		if (!before || value != a) && (!after || value != b) {
			w.t.Errorf("result %d is %q; it was %q, and is %q", id, value, a, b)
		}
	}
	for id, value := range then {
		if now[id] == value && r[id] != value {
			w.t.Errorf("result %d is missing", id)
		}
	}
}

// TestFullAfterACrash begins anew with --full, whatever the dead run left.
func TestFullAfterACrash(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, fault := range needs.Sample([]string{"read:9", "prepared:9", "parts:3", "supersede:4"}, 2) {
			t.Run(fault, func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.run()
				change(w.form, 1)
				w.runInto(fault)
				change(w.form, 2)
				w.run("--full")
				w.whole(truth(w.form))
				w.clean()
			})
		}
	})
}

// TestDefinitionChangedAfterACrash does not mix parts of two definitions.
func TestDefinitionChangedAfterACrash(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, fault := range needs.Sample([]string{"read:9", "prepared:9", "parts:3", "supersede:4"}, 2) {
			t.Run(fault, func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.run()
				change(w.form, 1)
				w.runInto(fault)
				define(declared+"  - {name: again, from: \"item:3\", type: string}\n", w)
				for range 2 { // the first may only finish what is recorded
					w.run()
					w.whole(truth(w.form))
				}
				w.everyRowHas(`"again":`)
				w.clean()
			})
		}
	})
}

// everyRowHas checks that all rows of all parts hold a text.
func (w *world) everyRowHas(text string) {
	w.t.Helper()
	for name := range w.sums() {
		data, err := w.get(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		if lines := strings.Count(string(data), "\n"); strings.Count(string(data), text) != lines {
			w.t.Errorf("%s has rows without %s", name, text)
		}
	}
}

// TestRangeGrewAfterACrash asks for more after a crash than the dead run did, in
// a run that is killed in its turn.
func TestRangeGrewAfterACrash(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, fault := range needs.Sample([]string{"planned", "read:7", "parts:9", "close"}, 2) {
			t.Run(fault, func(t *testing.T) {
				w := newWorld(t, k, ndjsonDataset)
				w.runInto("read:4", "--to", "2026-01-08")
				w.runInto(fault)
				w.run()
				w.whole(truth(w.form))
				w.clean()
			})
		}
	})
}

// TestSeveralOutputsKilled kills a pipeline while it reads, and between and in
// the commits of its outputs: each is that of one run, and the next run brings
// all to the truth.
func TestSeveralOutputsKilled(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for name, outputs := range map[string][]output{
			"datasets": {ndjsonDataset, parquetDataset},
			"mixed":    {ndjsonDataset, csvFile},
		} {
			faults := []string{"read:11", "prepared:11", "intent:2", "unmark", "unmark:2", "parts:7", "manifest:2", string(load.StepClose), "close:2"}
			for _, fault := range needs.Sample(faults, 2) {
				t.Run(name+"/"+fault, func(t *testing.T) {
					worlds := newWorlds(t, k, outputs...)
					worlds[0].run()
					before := truth(worlds[0].form)
					change(worlds[0].form, 1)
					worlds[0].runInto(fault)
					for _, w := range worlds {
						w.oneOf(before, truth(w.form))
					}
					worlds[0].run()
					for _, w := range worlds {
						w.whole(truth(w.form))
						w.clean()
					}
				})
			}
		}
	})
}
