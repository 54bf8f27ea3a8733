package pipelines_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// A run proves what it promises, or says that it did not. Each test here holds one way in
// which a service keeps less than it should, or a form changes while it is read.

// perDay is a form with so many results on each of five days, January 1st to 5th. Their
// ids run through the days by turns, so that each window holds ids of the whole range.
func perDay(results ...int) *formservice.Form {
	var all []formservice.Result
	at := extracttest.Wall("2026-01-01 06:00:00")
	most := slices.Max(results)
	for i := range most {
		for day, n := range results {
			if i < n {
				date := at.AddDate(0, 0, day).Add(time.Duration(i) * time.Minute).Format(formservice.WallTime)
				all = append(all, pipelinestest.Result(int64(len(all)+1), date, fmt.Sprint("answer ", i)))
			}
		}
	}
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, all)
}

// byDay reads the first days of January by windows of a day, one after the other.
func (w *world) byDay(days int, outputs ...definition.Output) *definition.Definition {
	def := w.daily(outputs...)
	def.Extract.To = extracttest.Wall("2026-01-01").AddDate(0, 0, days)
	return def
}

// ids returns how often each result is in the dataset or file.
func (w *world) ids(name string) map[int64]int {
	w.t.Helper()
	times := map[int64]int{}
	for _, p := range readManifest(w.t, filepath.Join(w.path(name), load.ManifestName)).Parts {
		for _, row := range readNDJSON(w.t, filepath.Join(w.path(name), filepath.FromSlash(p.Path))) {
			times[int64(row["result_id"].(float64))]++
		}
	}
	return times
}

// eachOnce checks that a dataset holds each result of the form once, in whatever state.
func (w *world) eachOnce(name string, form *formservice.Form) {
	w.t.Helper()
	times := w.ids(name)
	for _, r := range pipelinestest.Truth(form, nil) {
		if times[r.ID] != 1 {
			w.t.Errorf("result %d (dated %q) is there %d times", r.ID, pipelinestest.Date(r), times[r.ID])
		}
		delete(times, r.ID)
	}
	if len(times) > 0 {
		w.t.Errorf("%v should not be there", times)
	}
}

// isCount tells whether a request of either generation asks how many results there are.
func isCount(r formservice.Request) bool {
	return r.Transaction == formservice.TransactionCount || hasParam(r, "limit=1")
}

func hasParam(r formservice.Request, param string) bool {
	return slices.Contains(strings.Split(r.Query, "&"), param)
}

// TestCountsWithoutResults: the headers tell of results that do not come. Where the counts
// of other days agree, the run fails. Where none agrees, the service gives no reliable counts.
func TestCountsWithoutResults(t *testing.T) {
	for name, c := range map[string]struct {
		ghosts []int // days that the headers count one more of
		proof  bool
		before bool // results in the second before each day, so that each count is a difference
		ends   func(*testing.T, *world, *formservice.Form, *pipelines.Report, error)
	}{
		"one day":                           {[]int{4}, false, false, verifyFails},
		"the first day":                     {[]int{1}, false, false, verifyFails},
		"the first days":                    {[]int{1, 2}, false, false, verifyFails},
		"the last days":                     {[]int{3, 4, 5}, false, false, verifyFails},
		"most":                              {[]int{2, 3, 4}, false, false, verifyFails},
		"one day, verification required":    {[]int{4}, true, false, verifyFails},
		"one day, all counts differences":   {[]int{4}, false, true, verifyFails},
		"last days, all counts differences": {[]int{4, 5}, false, true, verifyFails},
		"all":                               {[]int{1, 2, 3, 4, 5}, false, false, readOnly},
		"all, verification required":        {[]int{1, 2, 3, 4, 5}, true, false, unproven},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form := perDay(5, 30, 1, 40, 6)
			w := newWorld(t, form).byV2()
			if c.before {
				w.service.SetFaults("v2-fractions=random")
				for day := range 5 {
					before := extracttest.Wall("2026-01-01").AddDate(0, 0, day).Add(-time.Second)
					if _, err := form.Insert(pipelinestest.Result(int64(500+day), before.Format(formservice.WallTime), "just before")); err != nil {
						t.Fatal(err)
					}
				}
			}
			var mu sync.Mutex
			w.service.Before = func(r formservice.Request) {
				if r.Transaction != formservice.TransactionResults {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for _, day := range c.ghosts {
					id := int64(1000 + day)
					if isCount(r) {
						_, _ = form.Insert(pipelinestest.Result(id, fmt.Sprintf("2026-01-%02d 20:00:00", day), "ghost")) // it may be there
					} else {
						form.Delete(id)
					}
				}
			}
			def := w.byDay(5, days())
			def.Extract.Proof = c.proof
			report, err := pipelines.Run(t.Context(), def, options())
			w.service.Before = nil
			for _, day := range c.ghosts {
				form.Delete(int64(1000 + day))
			}
			c.ends(t, w, form, report, err)
		})
	}
}

// TestReadingThatMoves: a day has 30 results whenever it is counted, and 29 or 31 the first
// times that it is read. Its count stands still and what is read does not, so the form moves,
// and the run reads on until they agree.
func TestReadingThatMoves(t *testing.T) {
	form := perDay(5, 29)
	w := newWorld(t, form)
	readings := 0
	w.service.Before = func(r formservice.Request) {
		more := 1
		if r.Transaction == formservice.TransactionResults && strings.Contains(r.Query, "fs_min_date=2026-01-02") {
			if !strings.Contains(r.Query, "fs_min_id") { // a later page is of the same reading
				readings++
			}
			if readings < 6 {
				more = readings % 2 * 2
			}
		}
		for i := range 2 {
			if form.Delete(int64(1000 + i)); i < more {
				if _, err := form.Insert(pipelinestest.Result(int64(1000+i), "2026-01-02 20:00:00", "comes and goes")); err != nil {
					t.Error(err)
				}
			}
		}
	}
	report := w.run(w.byDay(2, days()))
	if v := report.Forms[0].Verified; readings != 6 || !v.Match {
		t.Errorf("the day was read %d times, verified %+v", readings, v)
	}
	w.checkDataset("days", pipelinestest.Truth(form, nil))
}

func verifyFails(t *testing.T, w *world, _ *formservice.Form, _ *pipelines.Report, err error) {
	t.Helper()
	if e, ok := errors.AsType[*reconcile.VerifyError](err); !ok || !pipelines.DataAtFault(err) {
		t.Errorf("err = %v", err)
	} else if e.Counted <= e.Extracted {
		t.Errorf("%+v", e)
	}
	nothingWritten(t, w)
}

func nothingWritten(t *testing.T, w *world) {
	t.Helper()
	if left := tree(t, w.path("days")); len(left) != 0 {
		t.Errorf("it left %v", slices.Collect(maps.Keys(left)))
	}
}

func readOnly(t *testing.T, w *world, form *formservice.Form, report *pipelines.Report, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	w.checkDataset("days", pipelinestest.Truth(form, nil))
	v := report.Forms[0].Verified
	if v.Method != load.MethodRead || v.Match || !strings.HasPrefix(v.Unproven, "the service gives no ") {
		t.Errorf("verified %+v", v)
	}
}

func unproven(t *testing.T, w *world, _ *formservice.Form, _ *pipelines.Report, err error) {
	t.Helper()
	if e, ok := errors.AsType[*definition.Fault](err); !ok || !pipelines.DataAtFault(err) || !strings.HasPrefix(e.Text, "not verified, because the service gives no reliable counts") {
		t.Errorf("err = %v", err)
	}
	nothingWritten(t, w)
}

// TestHeadersVanish: the headers are gone from the k-th request on. If counts had agreed
// before, the run fails. Else it says that nothing was verified.
func TestHeadersVanish(t *testing.T) {
	for _, pagination := range []string{"missing", "zero"} {
		fails, reads := 0, 0
		for k := 1; k <= 30; k += 2 {
			form := perDay(5, 30, 1, 40, 6)
			w := newWorld(t, form).byV2()
			n := 0
			w.service.Before = func(r formservice.Request) {
				if r.Transaction == formservice.TransactionResults {
					if n++; n == k {
						w.service.SetFaults(formservice.Faults("").With("v2-pagination", pagination))
					}
				}
			}
			report, err := pipelines.Run(t.Context(), w.byDay(5, days()), options())
			breach, ok := errors.AsType[*extract.BreachError](err)
			switch {
			case n < k:
				k = 30
			case ok:
				fails++
				if !pipelines.DataAtFault(err) || !strings.Contains(breach.Ignores, "the count of results") {
					t.Errorf("request %d: %v", k, err)
				}
				nothingWritten(t, w)
			default:
				reads++
				readOnly(t, w, form, report, err)
			}
		}
		if reads == 0 {
			t.Errorf("%s: %d fail, %d are read", pagination, fails, reads)
		}
	}
}

// TestLastSecondOfDay: dates of milliseconds in the last second of a day, at a service
// that takes bounds of whole seconds. Each result is in its own day, and none of the day
// before is in a file with `from`, or among the parts. A view that hides the dates is refused.
func TestLastSecondOfDay(t *testing.T) {
	for name, shapes := range map[string]formservice.Faults{
		"coarse bounds": "v2-coarse-bounds,v2-fractions=random",
		"by the second": "v2-seconds,v2-fractions=random",
		"exact":         "v2-strict-dates,v2-fractions=random",
	} {
		for _, hidden := range []bool{false, true} {
			for _, verify := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, hidden dates %v, verify %v", name, hidden, verify), func(t *testing.T) {
					t.Parallel()
					form := lastSeconds()
					form.Views = []formservice.View{{ID: "101", Columns: []string{"result_id", "1"}}}
					w := newWorld(t, form).byV2()
					w.service.SetFaults(shapes)
					def := w.byDay(4, fileAndDays()...)
					def.Extract.Verify = verify
					if hidden { // nothing tells which of the day before they are
						def.Extract.View = "101"
						_, err := pipelines.Run(t.Context(), def, options())
						if fault, _ := errors.AsType[*definition.Fault](err); fault == nil || fault.Code != 78 || !strings.Contains(fault.Text, "view 101 does not show") {
							t.Errorf("error %v", err)
						}
						nothingWritten(t, w)
						return
					}
					report := w.run(def)
					v := report.Forms[0].Verified
					if verify && (!v.Match || v.Unproven != "") {
						t.Errorf("verified %+v", v)
					}
					in := func(r formservice.Result) bool {
						d := pipelinestest.Date(r)
						return d >= "2026-01-01" && d < "2026-01-05"
					}
					ownParts(t, w, form, in)
					rows := readNDJSON(t, w.path("form1.ndjson"))
					if n := len(pipelinestest.Truth(form, in)); len(rows) != n {
						t.Errorf("the file has %d rows, want %d", len(rows), n)
					}
				})
			}
		}
	}
}

// lastSeconds has results in the last second of six days from December 31st on, in the
// first second of each day, and at noon.
func lastSeconds() *formservice.Form {
	all := make([]formservice.Result, 0, 30)
	for day := range 6 {
		midnight := extracttest.Wall("2026-01-01").AddDate(0, 0, day)
		for _, at := range []time.Duration{-time.Second, -time.Second, 0, 12 * time.Hour, -time.Second} {
			all = append(all, pipelinestest.Result(int64(len(all)+1), midnight.Add(at).Format(formservice.WallTime), "answer"))
		}
	}
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, all)
}

// ownParts checks that the dataset holds each result once, in the part of its day.
func ownParts(t *testing.T, w *world, form *formservice.Form, keep func(formservice.Result) bool) {
	t.Helper()
	found := map[int64][]string{}
	for _, p := range readManifest(t, filepath.Join(w.path("days"), load.ManifestName)).Parts {
		for _, row := range readNDJSON(t, filepath.Join(w.path("days"), filepath.FromSlash(p.Path))) {
			id := int64(row["result_id"].(float64))
			found[id] = append(found[id], strings.TrimPrefix(filepath.Dir(p.Path), "dt="))
		}
	}
	for _, r := range pipelinestest.Truth(form, keep) {
		if date := pipelinestest.Date(r); !slices.Equal(found[r.ID], []string{date[:len("2026-01-01")]}) {
			t.Errorf("result %d of %s is in %v", r.ID, date, found[r.ID])
		}
		delete(found, r.ID)
	}
	if len(found) > 0 {
		t.Errorf("%v should not be there", found)
	}
}

// TestMoveThatNoCountSees: searches, views and verify: false leave no counts. One result
// moves to an earlier day, or to one that was empty, before the k-th request. It is there
// once, or the run says that it did not prove that.
func TestMoveThatNoCountSees(t *testing.T) {
	needs.Slow(t)
	type move struct{ from, to string }
	moves := needs.Sample([]move{{"2026-01-01", "2026-01-01"}, {"2026-01-01", "2026-01-04"}, {"", "2025-12-20"}, {"", "2026-01-01"}, {"", "2026-01-04"}}, 2)
	edits := uncounted()
	for _, c := range []struct {
		name        string
		api         definition.API
		ignoresSort bool
	}{
		{"search", definition.APIv1, false},
		{"search", definition.APIv2, true},
		{"view", definition.APIv2, false},
		{"not verified", definition.APIv1, false},
		{"not verified", definition.APIv1, true},
	} {
		t.Run(fmt.Sprintf("%s, %s, sort ignored %v", c.name, c.api, c.ignoresSort), func(t *testing.T) {
			t.Parallel()
			for _, move := range moves {
				for k := 1; k <= 30; k++ {
					if !moveUncounted(t, k, move.from, move.to+" 12:00:00", c.api, c.ignoresSort, edits[c.name]) {
						break
					}
				}
			}
		})
	}
}

// uncounted are the definitions whose results are compared with no count.
func uncounted() map[string]func(*definition.Definition) {
	return map[string]func(*definition.Definition){
		"search": func(def *definition.Definition) {
			def.Extract.Search.Where = []extract.Criterion{{Operator: extract.OpContains, Column: "1", Term: "answer"}}
		},
		"view":         func(def *definition.Definition) { def.Extract.View = "101" },
		"not verified": func(def *definition.Definition) { def.Extract.Verify = false },
	}
}

// moveUncounted moves a result from the second day to another one before the k-th request. from
// is the beginning of the range, "" for none. It returns false if there were fewer requests.
func moveUncounted(t *testing.T, k int, from, to string, api definition.API, ignoresSort bool, edit func(*definition.Definition)) bool {
	t.Helper()
	form := perDay(12, 12, 12)
	form.Views = []formservice.View{{ID: "101"}}
	clock := extracttest.Wall("2026-01-09 00:00:00")
	form.SetClock(func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})
	for id := int64(1); id <= 36; id++ { // each has a date_update, in another order than that of ids
		r, _ := form.Get(id * 23 % 37)
		if err := form.Update(r); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, form).byV2()
	w.source.API = api
	w.service.SetFaults(formservice.Faults("").With("ignore-sort", ignoresSort))
	var mu sync.Mutex
	n := 0
	w.service.Before = func(formservice.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == k {
			if err := form.Finish(18, extracttest.Wall(to)); err != nil {
				t.Error(err)
			}
		}
	}
	def := w.byDay(4, days())
	if from == "" {
		def.Extract.From, def.Extract.Window = time.Time{}, extract.Period{} // windows by counts
	}
	edit(def)
	report := w.run(def)
	if n < k {
		return false
	}
	v, times := report.Forms[0].Verified, w.ids("days")
	if ignoresSort && v.Unproven == "" {
		t.Errorf("request %d of %d: verified %+v", k, n, v)
	}
	if times[18] != 1 && !ignoresSort || times[18] > 1 {
		t.Errorf("from %q, to %s, request %d of %d: the result is there %d times, verified %+v", from, to, k, n, times[18], v)
	}
	delete(times, 18)
	if len(times) != form.Len()-1 {
		t.Errorf("request %d of %d: %d others are there", k, n, len(times))
	}
	return true
}

// TestDateThatNothingTells: neither counts nor the list of changes are asked, and a result that
// was not finished gets its first date before the k-th request. It must not come to the part of
// those without a date, though no window that was read before holds it.
func TestDateThatNothingTells(t *testing.T) {
	needs.Slow(t)
	for k, asked := 1, true; asked && k < 40; k++ {
		form := perDay(12, 12, 12)
		for id, start := range map[int64]string{18: "", 20: "", 21: "2026-01-02 07:00:00"} {
			r, _ := form.Get(id)
			r.Metas = []formservice.Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: start}}
			if err := form.Update(r); err != nil {
				t.Fatal(err)
			}
		}
		w, n := newWorld(t, form), 0
		w.service.Before = func(formservice.Request) {
			if n++; n == k {
				r, _ := form.Get(18)
				r.Metas = []formservice.Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: "2026-01-02 08:00:00"}}
				if err := form.Update(r); err != nil {
					t.Error(err)
				}
			}
		}
		def := w.daily(days())
		def.Extract.From, def.Extract.To, def.Extract.Window = time.Time{}, time.Time{}, extract.Period{}
		def.Extract.Verify, def.Extract.Changes = false, definition.ChangesLookback
		w.run(def)
		asked = n >= k
		w.eachOnce("days", form)
		for _, p := range readManifest(t, filepath.Join(w.path("days"), load.ManifestName)).Parts {
			for _, row := range readNDJSON(t, filepath.Join(w.path("days"), filepath.FromSlash(p.Path))) {
				if p.Undated && (row["date_start"] != nil || row["date_finish"] != nil) {
					t.Errorf("request %d of %d: among those without a date is %v", k, n, row)
				}
			}
		}
	}
}

// lateWorld has three results on each of four days, and others that are so old by the
// service's clock, which is ahead of ours by off.
func lateWorld(t *testing.T, account, zone string, off time.Duration, ages ...time.Duration) (*world, *formservice.Form, func(age time.Duration)) {
	t.Helper()
	theirs, err := time.LoadLocation(account)
	if err != nil {
		t.Fatal(err)
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, nil)
	wall := func() time.Time { return extracttest.Wall(time.Now().In(theirs).Add(off).Format(formservice.WallTime)) }
	form.SetClock(wall)
	add := func(age time.Duration) {
		id := int64(form.Len() + 1)
		if _, err := form.Insert(pipelinestest.Result(id, wall().Add(-age).Format(formservice.WallTime), fmt.Sprint("answer ", id))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		add(time.Duration(12-i)*8*time.Hour + 48*time.Hour)
	}
	for _, age := range ages {
		add(age)
	}
	w := newWorld(t, form)
	if w.source.Zone, err = time.LoadLocation(zone); err != nil {
		t.Fatal(err)
	}
	w.byV2().service.Zone = theirs
	w.source.API = definition.APIv1
	w.service.SetFaults(formservice.Faults("").With("date-header-off", off))
	return w, form, add
}

// endless are definitions whose range has no end. Without a first day the pass over results
// without a date meets late ones too; with one only a count or a request of its own does.
func endless() map[string]func(*world) *definition.Definition {
	from := extracttest.Wall(time.Now().UTC().AddDate(0, 0, -60).Format(time.DateOnly))
	to := func(output definition.Output, edit func(*definition.Extract)) func(*world) *definition.Definition {
		return func(w *world) *definition.Definition {
			def := w.definition(output)
			edit(&def.Extract)
			return def
		}
	}
	return map[string]func(*world) *definition.Definition{
		"everything":    to(file(), func(*definition.Extract) {}),
		"from, by days": to(days(), func(e *definition.Extract) { e.From = from }),
		"incremental":   to(days(), func(e *definition.Extract) { e.Incremental, e.Lookback = true, 72*time.Hour }),
		"incremental by lookback": to(days(), func(e *definition.Extract) {
			e.Incremental, e.Lookback, e.Changes = true, 72*time.Hour, definition.ChangesLookback
		}),
		"not verified": to(days(), func(e *definition.Extract) { e.From, e.Verify = from, false }),
		"with a view":  to(days(), func(e *definition.Extract) { e.From, e.View = from, formservice.AllData }),
	}
}

// TestNewestResults: a zone that is too far west, and a clock that is an hour slow, hide the
// newest results from a range that ends now. They are read, and the run says what is wrong.
func TestNewestResults(t *testing.T) {
	needs.Slow(t)
	for name, c := range map[string]struct {
		account, zone string
		off           time.Duration
		api           definition.API
		says          string
	}{
		"zone too far west":   {"Australia/Sydney", "UTC", 0, definition.APIv1, "the time zone seems wrong"},
		"clock an hour slow":  {"UTC", "UTC", time.Hour, definition.APIv1, "behind the service's"},
		"the same, by API v2": {"UTC", "UTC", time.Hour, definition.APIv2, "behind the service's"},
	} {
		for mode, define := range endless() {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				w, form, add := lateWorld(t, c.account, c.zone, c.off, 20*time.Hour, 5*time.Hour, 20*time.Minute)
				w.source.API = c.api
				for run := range 3 {
					def := define(w)
					report := w.run(def)
					now := extracttest.Wall(time.Now().In(w.source.Zone).Add(c.off).Format(formservice.WallTime))
					if def.Outputs[0].Dataset() {
						if m := w.checkDataset("days", pipelinestest.Truth(form, nil)); m.Watermark.After(now) {
							t.Errorf("run %d: the watermark is %s, and the service's clock %s", run, m.Watermark, now)
						}
					} else {
						w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
					}
					if drift := strings.Join(report.Forms[0].Drift, "\n"); strings.Count(drift, c.says) != 1 {
						t.Errorf("run %d: drift %q", run, drift)
					}
					if t.Failed() {
						break
					}
					add(time.Duration(15-5*run) * time.Minute)
				}
			})
		}
	}
}

// TestOrderIsIgnored: a service that does not sort by ids is named, and nothing is written.
func TestOrderIsIgnored(t *testing.T) {
	w := newWorld(t, perDay(100, 100, 100))
	w.service.SetFaults("ignore-direction,page-cap=60")
	_, err := pipelines.Run(t.Context(), w.byDay(3, days(), file()), options())
	if e, ok := errors.AsType[*extract.BreachError](err); !ok || e.Ignores != "the ascending order of ids" || !pipelines.DataAtFault(err) {
		t.Errorf("err = %v", err)
	}
	nothingWritten(t, w)
}

// TestOlderPartGrowsWithEveryPage: an incremental run notices a result in an older month,
// and another one comes to it before every page. It ends, names what is so busy, and
// leaves what was committed.
func TestOlderPartGrowsWithEveryPage(t *testing.T) {
	needs.Slow(t)
	for _, api := range []definition.API{definition.APIv1, definition.APIv2} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			s := newStamped(t)
			s.byV2()
			s.source.API = api
			s.hour()
			plan, before := s.sent(), tree(t, s.path("days"))
			s.at("2026-01-02 00:00:30")
			var mu sync.Mutex
			next := int64(5000)
			grow := func(r formservice.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Transaction == formservice.TransactionResults && !asksWhatChanged(r) && !strings.Contains(r.Query, "sort_id=date_update") && !isCount(r) {
					s.insert(next, fmt.Sprintf("2025-03-10 10:00:%02d", next%60))
					s.clock = s.clock.Add(time.Second)
					next++
				}
			}
			s.insert(4999, "2025-03-10 10:00:00")
			s.service.Before = grow
			s.service.Reset()
			_, err := pipelines.Run(t.Context(), s.definition(), s.o)
			if n := s.sent(); n > plan+2*max(200, plan)+60 { // the last repetition is not cut short
				t.Errorf("%d requests, and %d for all of it", n, plan)
			}
			busy, ok := errors.AsType[*definition.Fault](err)
			if !ok || !strings.Contains(busy.Text, "window 2025-03") || pipelines.DataAtFault(err) {
				t.Errorf("err = %v", err)
			}
			sameTree(t, before, tree(t, s.path("days")))
		})
	}
}
