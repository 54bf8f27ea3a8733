package crashtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// sight is what readers see after a crash.
type sight int

const (
	seesOld    sight = iota // every reader sees the earlier run whole
	seesNoMark              // by the manifest the earlier run; no _SUCCESS, or no manifest beside the file of the earlier run
	seesSwap                // by the manifest this run; no _SUCCESS, or no manifest beside the file of this run
	seesNew                 // every reader sees this run whole
)

// point is a named action of a run, before which formetl kills itself.
type point struct {
	name string
	// first and second are how often it comes in a first run into a dataset, and in one that follows
	// a change.
	first, second int
	sight         sight
	file          sight // of a single file
}

// points are those of a run, in order. Windows without results have a piece too, and nothing that
// is staged. Beside parts lie sets of ids and dead letters, which are superseded with them.
func points() []point {
	return []point{
		{name: "planned", first: 1, second: 1},
		{name: "piece", first: lastDay, second: lastDay},
		{name: "read", first: lastDay, second: lastDay},
		{name: "verified", first: 1, second: 1},
		{name: "snapshot", first: 1, second: 1},
		{name: "staged", first: firstDays, second: 12},
		{name: "prepared", first: firstDays, second: 12},
		{name: string(load.StepCheck), first: 1, second: 1},
		{name: string(load.StepBeside), first: firstDays + 3, second: 9},
		{name: string(load.StepIntent), first: 1, second: 1},
		{name: string(load.StepUnmark), first: 1, second: 1},
		{name: string(load.StepParts), first: firstDays, second: 6, sight: seesNoMark, file: seesNoMark},
		{name: string(load.StepLetters), file: seesSwap}, // of files
		{name: string(load.StepManifest), first: 1, second: 1, sight: seesNoMark, file: seesSwap},
		{name: string(load.StepSupersede), second: 12, sight: seesSwap},
		{name: string(load.StepMark), first: 1, second: 1, sight: seesSwap},
		{name: string(load.StepClose), first: 1, second: 1, sight: seesNew, file: seesNew},
		{name: "codebook", first: 1, second: 1, sight: seesNew, file: seesNew},
	}
}

// times gives which of n occurrences are tried: the first, a middle one and the last.
func times(n int) []int {
	if n == 0 {
		return nil
	}
	return slices.Compact([]int{1, max(1, (n+1)/2), n})
}

// crash is one kill at a point, in a first run or in one that replaces parts.
type crash struct {
	point
	k      int
	second bool
}

func (c crash) String() string { return fmt.Sprintf("%s:%d", c.name, c.k) }

// crashes are all that are tried on a dataset.
func crashes(second bool) []crash {
	var all []crash
	for _, p := range points() {
		n := p.first
		if second {
			n = p.second
		}
		for _, k := range times(n) {
			all = append(all, crash{p, k, second})
		}
	}
	return all
}

// TestDatasetKilledAtEveryPoint kills a run before each of its actions. What
// readers see then is told exactly; the next run makes the truth of it.
func TestDatasetKilledAtEveryPoint(t *testing.T) { eachCrash(t, ndjsonDataset, crashes, 4) }

// eachCrash tests n of the crashes of a first run and n of a second one.
func eachCrash(t *testing.T, o output, crashes func(second bool) []crash, n int) {
	t.Helper()
	needs.Slow(t)
	eachPlace(t, func(t *testing.T, k kind) {
		for _, second := range []bool{false, true} {
			t.Run(map[bool]string{false: "first", true: "second"}[second], func(t *testing.T) {
				for _, c := range needs.Sample(crashes(second), n) {
					t.Run(c.String(), func(t *testing.T) { c.test(t, newWorld(t, k, o)) })
				}
			})
		}
	})
}

func (c crash) test(t *testing.T, w *world) {
	t.Helper()
	var before rows // nil: nothing is there
	if c.second {
		w.run()
		if left, err := w.leftovers(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("after a run that ended well there is left %v, %v", left, err)
		}
		before = truth(w.form)
		change(w.form)
	}
	w.runInto(c.String())
	if w.output.file == "" {
		w.crashed(c.sight, before, truth(w.form))
	} else {
		w.crashedFile(c.file, before, truth(w.form))
	}
	w.run()
	w.whole(truth(w.form))
	w.clean()
	w.whole(truth(w.form))
}

// crashed checks what the readers of a dataset see after a crash. Strays are
// none of theirs only while the intent is being carried out.
func (w *world) crashed(s sight, before, now rows) {
	w.t.Helper()
	ctx := w.t.Context()
	expected, marked := before, before
	if s == seesSwap || s == seesNew {
		expected = now
	}
	switch s {
	case seesNoMark, seesSwap:
		marked = nil
	case seesNew:
		marked = now
	case seesOld:
	}
	r, err := w.byManifest(ctx)
	sees(w.t, "the reader of the manifest", r, err, expected)
	r, err = w.byGlob(ctx)
	sees(w.t, "the reader that globs", r, err, marked)
	if s == seesOld || s == seesNew {
		if strays, err := w.strays(ctx); err != nil || len(strays) > 0 {
			w.t.Errorf("strays are visible: %v, %v", strays, err)
		}
	}
}
