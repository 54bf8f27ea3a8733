package pipelines_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// A long form has 4,000 results, of January 2026, which a full run reads. Each
// incremental run after the first has its last days to read.
const (
	longResults = 4000
	longMonth   = "2026-01-31 00:00:00"
)

// newLong is a form that goes on after January, with every kind of output.
func newLong(t *testing.T) *living {
	t.Helper()
	results := make([]formservice.Result, 0, longResults)
	began := extracttest.Wall("2026-01-01")
	for i := range longResults {
		when := began.Add(time.Duration(i) * 10 * time.Minute).Format(formservice.WallTime) // to January 28th
		results = append(results, pipelinestest.Result(int64(i+1), when, fmt.Sprint("r", i+1)))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	l := &living{world: newWorld(t, form), form: form, o: options(), outs: []definition.Output{days()}}
	l.edit = func(d *definition.Definition) {
		d.Extract.Window = extract.Step{Days: 5}
		d.Extract.From = began
	}
	l.now(longMonth)
	return l
}

// eachMode runs a test in full mode, with a file and a dataset, and for the
// second of two incremental runs. The faults begin at the run that is tested.
func eachMode(t *testing.T, faults formservice.Faults, test func(t *testing.T, l *living)) {
	t.Helper()
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		l := newLong(t)
		l.edit = func(d *definition.Definition) {
			d.Extract = definition.Extract{Settle: time.Minute, Verify: true, Window: extract.Step{Days: 5}, From: extracttest.Wall("2026-01-01")}
			d.Outputs = append(d.Outputs, l.world.definition(file()).Outputs...)
		}
		l.service.SetFaults(faults)
		test(t, l)
	})
	t.Run("incremental", func(t *testing.T) {
		t.Parallel()
		l := newLong(t)
		l.goOn()
		l.now("2026-02-02 00:00:00")
		// Much is new, and results came from days that are not read otherwise.
		for i := range 500 {
			l.insert(int64(longResults+1+i), extracttest.Wall(longMonth).Add(time.Duration(i)*time.Minute).Format(formservice.WallTime), "new")
		}
		for id := int64(100); id < 104; id++ {
			l.finish(id, fmt.Sprintf("2026-02-01 10:00:%02d", id-100))
		}
		l.service.SetFaults(faults)
		test(t, l)
	})
}

// complete checks that every result is there once, as it is, with the watermark where it belongs.
func (l *living) complete() {
	l.t.Helper()
	if def := l.definition(); !def.Extract.Incremental {
		l.checkDataset("days", pipelinestest.Truth(l.form, nil))
		l.checkFile("form1.ndjson", pipelinestest.Truth(l.form, nil))
		return
	}
	l.check("2026-02-01 23:59:00", nil)
}

// TestOneAnswerInFiveGoesWrong at a service that bears only three requests at
// once: 4,000 results come out equal, in a run that ends.
func TestOneAnswerInFiveGoesWrong(t *testing.T) {
	// Busy answers come of the capacity: eight requests at once are too many.
	faults := formservice.Faults{Seed: 2, HTML: 0.07, Cut: 0.05, Truncate: 0.04, Reset: 0.04, Capacity: 3, Latency: 20 * time.Millisecond}
	eachMode(t, faults, func(t *testing.T, l *living) {
		edit := l.edit
		l.edit = func(d *definition.Definition) {
			edit(d)
			d.Source.Requests.Concurrency = 8
		}
		f, _ := l.goOn()
		l.complete()
		wrong, all := 0, l.service.Log()
		for _, r := range all {
			if r.Fault != formservice.NoFault {
				wrong++
			}
		}
		t.Logf("%d of %d answers went wrong, %d at once at most", wrong, len(all), l.service.Peak())
		if 8*wrong < len(all) || l.service.Peak() <= faults.Capacity || !f.Verified.Match {
			t.Errorf("that is no such service; verified %+v", f.Verified)
		}
	})
}

// TestDeletedUnderThePages deletes a result of the very window that is read, at
// every second request: by turns the first of the window, which shifts all
// behind it, and the last. Every result that was there throughout is written
// once.
func TestDeletedUnderThePages(t *testing.T) {
	eachMode(t, formservice.Faults{}, func(t *testing.T, l *living) {
		d := &deleting{form: l.form}
		l.service.Before = d.before
		// The last count may miss one that went after it was read.
		if f, _ := l.goOn(); f.Verified == nil || f.Verified.Reason != "" {
			t.Errorf("verified %+v", f.Verified)
		}
		d.stop()
		if d.requests < 10 || len(d.gone) < d.requests/3 {
			t.Errorf("%d results were deleted at %d requests", len(d.gone), d.requests)
		}
		l.onceEach("days", d.gone)
	})
}

// deleting deletes results of the windows that are asked for.
type deleting struct {
	form *formservice.Form

	mu       sync.Mutex
	stopped  bool
	requests int
	gone     map[int64]bool
}

func (d *deleting) before(r formservice.Request) {
	q, err := url.ParseQuery(r.Query)
	if r.Transaction != formservice.TransactionResults || err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requests++; d.requests%2 == 1 || d.stopped {
		return
	}
	var first, last int64
	d.form.Each(func(r formservice.Result) bool {
		if at := pipelinestest.Date(r); at >= q.Get("fs_min_date") && at <= q.Get("fs_max_date") {
			first, last = cmp.Or(first, r.ID), r.ID
		}
		return true
	})
	id := first
	if d.requests%4 == 0 {
		id = last
	}
	if d.form.Delete(id) {
		if d.gone == nil {
			d.gone = map[int64]bool{}
		}
		d.gone[id] = true
	}
}

func (d *deleting) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
}

// onceEach checks that a dataset holds each result once that was there
// throughout, and no other but those that are gone.
func (l *living) onceEach(name string, gone map[int64]bool) {
	l.t.Helper()
	times := map[int64]int{}
	for _, p := range readManifest(l.t, filepath.Join(l.path(name), load.ManifestName)).Parts {
		for _, row := range readNDJSON(l.t, filepath.Join(l.path(name), filepath.FromSlash(p.Path))) {
			times[int64(row["result_id"].(float64))]++
		}
	}
	for _, r := range pipelinestest.Truth(l.form, nil) {
		if times[r.ID] != 1 {
			l.t.Errorf("result %d was there throughout and is written %d times", r.ID, times[r.ID])
		}
		delete(times, r.ID)
	}
	for id, n := range times {
		if n > 1 || !gone[id] {
			l.t.Errorf("result %d is written %d times, deleted: %t", id, n, gone[id])
		}
	}
}

// TestIgnoredByTheService: a service that ignores the order or the bounds of ids is asked
// once more. Then the run ends, names what was ignored, and leaves what was there.
func TestIgnoredByTheService(t *testing.T) {
	for name, c := range map[string]struct {
		faults  formservice.Faults
		ignores string
	}{
		"fs_min_id":                  {formservice.Faults{IgnoreMinID: true}, "the lower bound of ids"},
		"the order":                  {formservice.Faults{IgnoreDirection: true}, "the ascending order of ids"},
		"no order":                   {formservice.Faults{Unsorted: true}, "the ascending order of ids"},
		"both":                       {formservice.Faults{IgnoreDirection: true, IgnoreMinID: true, IgnoreMaxID: true}, "the ascending order of ids"},
		"the order, and pages of 60": {formservice.Faults{IgnoreDirection: true, PageCap: 60}, "the ascending order of ids"},
		"rows that come twice":       {formservice.Faults{Twice: 50}, "the ascending order of ids"},
		"dates":                      {formservice.Faults{IgnoreDates: true}, "the bounds of dates"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, c.faults, func(t *testing.T, l *living) {
				before, sent := tree(t, l.path("days")), l.sent()
				_, err := pipelines.Run(t.Context(), l.definition(), l.o)
				if e, ok := errors.AsType[*extract.BreachError](err); !ok || e.Ignores != c.ignores || !pipelines.DataAtFault(err) {
					t.Errorf("err = %v, want %q", err, c.ignores)
				}
				if n := l.sent() - sent; n > 40 {
					t.Errorf("%d requests before it was noticed", n)
				}
				sameTree(t, before, tree(t, l.path("days")))
			})
		})
	}
}
