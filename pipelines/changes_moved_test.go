package pipelines_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// movedWorld is a form with two results on each of so many days of January, whose
// service stamps each change.
func movedWorld(t *testing.T, days int, faults formservice.Faults) (*world, *formservice.Form) {
	t.Helper()
	var results []formservice.Result
	for id := int64(1); id <= int64(2*days); id++ {
		date := fmt.Sprintf("2026-01-%02d %02d:00:00", (id+1)/2, 8+id%2)
		r := pipelinestest.Result(id, date, fmt.Sprint("r", id))
		r.Metas = append(r.Metas, formservice.Meta{ID: "user_ip", Value: address(id)}, formservice.Meta{ID: "date_update", Value: date})
		results = append(results, r)
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	clock := extracttest.Wall("2026-01-10 12:00:00")
	form.SetClock(func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})
	w := newWorld(t, form)
	w.service.SetFaults(faults)
	return w, form
}

// eachOutput tests a file and a dataset, on services that sort and that do not.
func eachOutput(t *testing.T, test func(t *testing.T, faults formservice.Faults, out definition.Output, check func(*world, *formservice.Form, *load.Verified))) {
	t.Helper()
	for _, out := range fileAndDays() {
		for name, faults := range map[string]formservice.Faults{
			"sorts": {}, "ignores fs_sort": {IgnoreSort: true}, "lacks stamps": {LackUpdate: 1},
		} {
			t.Run(strings.TrimSuffix(out.Path, "/")+", "+name, func(t *testing.T) {
				test(t, faults, out, func(w *world, form *formservice.Form, v *load.Verified) {
					t.Helper()
					if faults != (formservice.Faults{}) {
						if v.Method != load.MethodCounts {
							t.Errorf("verified %+v", v)
						}
						return
					}
					if v.Method != load.MethodChanges || !v.Match {
						t.Errorf("verified %+v", v)
					}
					if truth := pipelinestest.Truth(form, nil); strings.HasSuffix(out.Path, "/") {
						w.checkDataset("days", truth)
					} else {
						w.checkFile("form1.ndjson", truth)
					}
				})
			})
		}
	}
}

// TestMovedBehindTheReaderAndOneDeleted: two windows of a day. After day 1 is read, a
// result of day 2 moves to day 1 and one of day 1 is deleted, so all counts agree.
func TestMovedBehindTheReaderAndOneDeleted(t *testing.T) {
	eachOutput(t, func(t *testing.T, faults formservice.Faults, out definition.Output, check func(*world, *formservice.Form, *load.Verified)) {
		w, form := movedWorld(t, 2, faults)
		w.service.Before = once(reads("2026-01-02"), func() {
			if err := form.Finish(3, extracttest.Wall("2026-01-01 11:00:00")); err != nil {
				t.Error(err)
			}
			form.Delete(1)
		})
		def := w.daily(out)
		def.Extract.To = extracttest.Wall("2026-01-03")
		check(w, form, w.run(def).Forms[0].Verified)
	})
}

// TestMovedBetweenAKillAndTheNextRun: a run is killed after two of four windows. A
// result of day 4 moves to day 1 and one of day 1 is deleted. Nothing changes while
// a run is under way.
func TestMovedBetweenAKillAndTheNextRun(t *testing.T) {
	eachOutput(t, func(t *testing.T, faults formservice.Faults, out definition.Output, check func(*world, *formservice.Form, *load.Verified)) {
		w, form := movedWorld(t, 4, faults)
		r := &resumed{world: w, o: options(), form: form}
		r.stopAt(w.daily(out), "read", 2)
		if err := form.Finish(7, extracttest.Wall("2026-01-01 11:00:00")); err != nil {
			t.Fatal(err)
		}
		form.Delete(1)
		report := w.run(w.daily(out)).Forms[0]
		if report.Continued == "" || report.Kept != 2 {
			t.Errorf("the run kept %d windows of %q, want 2", report.Kept, report.Continued)
		}
		check(w, form, report.Verified)
	})
}

// TestRequestsWithoutAFeed: on a service that does not sort, a day of hourly runs
// costs what it costs with changes: lookback, and a look at the service once a day.
func TestRequestsWithoutAFeed(t *testing.T) {
	const looks = 6 // two days begin, and a look takes at most three requests
	for name, faults := range map[string]formservice.Faults{"ignores fs_sort": {IgnoreSort: true}, "lacks stamps": {LackUpdate: 1}} {
		t.Run(name, func(t *testing.T) {
			spent := map[definition.Changes]int{}
			for _, how := range []definition.Changes{definition.ChangesAuto, definition.ChangesLookback} {
				s := newStamped(t)
				s.service.SetFaults(faults)
				s.edit = func(def *definition.Definition) { def.Extract.Changes = how }
				if _, err := pipelines.Run(t.Context(), s.definition(), s.o); err != nil {
					t.Fatal(err)
				}
				for hour := range 24 {
					s.later(func() {
						if hour%4 == 1 {
							s.insert(int64(4000+hour), s.clock.Format(formservice.WallTime))
						}
						if hour%6 == 2 {
							s.change(1090+int64(hour%4), fmt.Sprint("edited in hour ", hour)) // within the lookback
						}
					})
					s.service.Reset()
					all, err := pipelines.Run(t.Context(), s.definition(), s.o)
					if err != nil {
						t.Fatal(err)
					}
					spent[how] += len(s.service.Log())
					if faults.IgnoreSort { // else answers lack what the truth holds
						s.checkDataset("days", pipelinestest.Truth(s.form, s.due))
					}
					report := all.Forms[0]
					if c := report.ResultChanges; c == nil || c.Method != load.MethodLookback || c.Reason == "" || report.Verified.Method != load.MethodCounts {
						t.Fatalf("changes %+v, verified %+v", c, report.Verified)
					}
				}
			}
			if auto, lookback := spent[definition.ChangesAuto], spent[definition.ChangesLookback]; auto > lookback+looks {
				t.Errorf("%d requests, and %d with changes: lookback", auto, lookback)
			} else {
				t.Logf("%d requests, and %d with changes: lookback", auto, lookback)
			}
		})
	}
}
