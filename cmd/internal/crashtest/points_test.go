package crashtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
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
	name  string
	sight sight
	file  sight // of a single file
	often bool  // it comes once for each window or part
	// recorded tells that the intent is recorded: the run will be finished.
	recorded bool
}

// points are those of a run, in order.
func points() []point {
	return []point{
		{name: "planned"},
		{name: "piece", often: true},
		{name: "read", often: true},
		{name: "verified"},
		{name: "snapshot"},
		{name: "staged", often: true},
		{name: "prepared", often: true},
		{name: string(load.StepCheck)},
		{name: string(load.StepBeside), often: true},
		{name: string(load.StepIntent)},
		{name: string(load.StepUnmark), recorded: true},
		{name: string(load.StepParts), sight: seesNoMark, file: seesNoMark, often: true, recorded: true},
		{name: string(load.StepLetters), file: seesSwap, recorded: true}, // of files
		{name: string(load.StepManifest), sight: seesNoMark, file: seesSwap, recorded: true},
		{name: string(load.StepSupersede), sight: seesSwap, often: true, recorded: true},
		{name: string(load.StepMark), sight: seesSwap, recorded: true},
		{name: string(load.StepClose), sight: seesNew, file: seesNew, recorded: true},
		{name: "codebook", sight: seesNew, file: seesNew, recorded: true},
	}
}

// census is how often each point comes in a run over the form, where the
// dataset holds what the form held before.
func census(before, now map[int]day) map[string]int {
	// Windows without results have a piece too, and nothing that is staged.
	n := map[string]int{"piece": lastDay, "read": lastDay}
	for day := 1; day <= lastDay; day++ {
		old, fresh := before[day].rows, now[day].rows
		if len(fresh) > 0 {
			n["staged"]++
			n["prepared"]++
		}
		if now[day].rejected != "" {
			n[string(load.StepBeside)]++
		}
		if was := before[day].rejected; was != "" && was != now[day].rejected {
			n[string(load.StepSupersede)]++
		}
		if old.equal(fresh) {
			continue
		}
		if len(fresh) > 0 {
			n[string(load.StepBeside)]++
			n[string(load.StepParts)]++
		}
		if len(old) > 0 {
			n[string(load.StepSupersede)] += 2 // with its id set
		}
	}
	return n
}

// day is what the form holds of a day: rows, and the ids of results that are rejected.
type day struct {
	rows     rows
	rejected string
}

// byDay divides the truth into days.
func byDay(form *formservice.Form) map[int]day {
	all := truth(form)
	days := map[int]day{}
	form.Each(func(r formservice.Result) bool {
		is := days[dayOf(r)]
		if is.rows == nil {
			is.rows = rows{}
		}
		if value, ok := all[r.ID]; ok {
			is.rows[r.ID] = value
		} else {
			is.rejected += fmt.Sprint(r.ID, " ")
		}
		days[dayOf(r)] = is
		return true
	})
	return days
}

// times gives which of n occurrences are tried: the first, a middle one and
// the last.
func times(n int) []int {
	return slices.Compact([]int{1, max(1, (n+1)/2), n})
}

// crash is one kill at a point, in a first run or in one that replaces parts.
type crash struct {
	point
	k      int
	second bool
}

func (c crash) String() string { return fmt.Sprintf("%s:%d", c.name, c.k) }

// occurrences is how often each point comes in a run.
func occurrences(second bool) map[string]int {
	form := newForm()
	if !second {
		return census(nil, byDay(form))
	}
	before := byDay(form)
	change(form)
	return census(before, byDay(form))
}

// crashes are all that are tried on a dataset.
func crashes(second bool) []crash {
	n := occurrences(second)
	var all []crash
	for _, p := range points() {
		if p.name == string(load.StepLetters) {
			continue
		}
		if !p.often {
			all = append(all, crash{p, 1, second})
			continue
		}
		if n[p.name] == 0 {
			continue // nothing is superseded in a first run
		}
		for _, k := range times(n[p.name]) {
			all = append(all, crash{p, k, second})
		}
	}
	return all
}

// TestDatasetKilledAtEveryPoint kills a run before each of its actions. What
// readers see then is told exactly; the next run makes the truth of it.
func TestDatasetKilledAtEveryPoint(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, second := range []bool{false, true} {
			t.Run(map[bool]string{false: "first", true: "second"}[second], func(t *testing.T) {
				for _, c := range needs.Sample(crashes(second), 4) {
					t.Run(c.String(), func(t *testing.T) { c.test(t, newWorld(t, k, ndjsonDataset)) })
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
	w.crashed(c.sight, before, truth(w.form))
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
					change(worlds[0].form)
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
