package pipelines_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestKilledBackfill: the next incremental run finishes it, and then has its
// own range to read, no more and no less.
func TestKilledBackfill(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		first    bool // there is no watermark yet
		most     int  // days that the next run may ask for
	}{
		"of old days":            {"2026-01-02", "2026-01-04", false, 7},
		"within the lookback":    {"2026-01-21 10:00:00", "2026-01-21 11:00:00", false, 7},
		"before there were runs": {"2026-01-10", "2026-01-12", true, 30},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiving(t)
			if !c.first {
				l.goOn()
			}
			l.now("2026-01-21 12:00:00")
			l.insert(100, "2026-01-21 05:00:00", "before the backfill")
			l.insert(101, "2026-01-21 10:30:00", "in the backfill")
			r := &resumed{world: l.world, o: l.o, form: l.form}
			r.o.Range = between(extracttest.Wall(c.from), extracttest.Wall(c.to))
			r.stopAt(l.definition(), "read", 1)
			l.now("2026-01-21 13:00:00")
			if _, asked := l.goOn(); len(asked) > c.most {
				t.Errorf("asked for %v", asked)
			}
			l.checkDataset("days", pipelinestest.Truth(l.form, nil))
		})
	}
}

// editedIn tells whether the dataset's file of a day holds a text.
func (r *resumed) editedIn(day, text string) bool {
	r.t.Helper()
	for name, content := range tree(r.t, r.path("days")) {
		if strings.HasPrefix(name, "dt="+day) && strings.Contains(content, text) {
			return true
		}
	}
	return false
}

// TestCheckpointOlderThanTheDataset: another process commits newer rows while this run
// opens its output. What the checkpoint holds is not written over them.
func TestCheckpointOlderThanTheDataset(t *testing.T) {
	r := newDeclared(t)
	def := func() *definition.Definition { return r.daily(days()) }
	r.stopAt(def(), "read", 2)
	if err := r.form.Update(pipelinestest.Result(2, "2026-01-02 11:11:11", "edited")); err != nil {
		t.Fatal(err)
	}
	o := r.o
	var once sync.Once
	o.BuiltIn.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
		once.Do(func() { // this one is about to open its output, and another commits there
			if _, err := pipelines.Run(t.Context(), def(), r.o); err != nil {
				t.Error(err)
			}
		})
		return r.o.BuiltIn.Open(ctx, root, out)
	}
	r.runBy(def(), o)
	if !r.editedIn("2026-01-02", "2026-01-02T11:11:11") {
		t.Error("what a dead run had read was written over newer rows")
	}
}

// TestContinuedFullRunHoldsTheWatermark: whoever goes on from it incrementally
// meets what was edited since.
func TestContinuedFullRunHoldsTheWatermark(t *testing.T) {
	l := newLiving(t)
	l.edit = func(d *definition.Definition) { d.Extract.Incremental = false }
	r := &resumed{world: l.world, o: l.o, form: l.form}
	r.stopAt(l.definition(), "verified", 1)
	l.update(58, "2026-01-20 01:30:00", "edited while nobody ran")
	l.now("2026-01-30 00:00:00")
	l.goOn()
	l.edit = func(*definition.Definition) {}
	l.goOn()
	l.check("2026-01-29 23:59:00")
}

// TestEncodingIsBounded: no more parts are encoded at once, over all forms, than
// there are CPUs, whatever the concurrency of requests is.
func TestEncodingIsBounded(t *testing.T) {
	names := []string{"form1", "form2", "form3", "form4"}
	forms := make([]*formservice.Form, len(names))
	for i, name := range names {
		forms[i] = fourDays()
		forms[i].Directory = name
	}
	r := &resumed{world: newWorld(t, forms...), o: options()}
	def := func() *definition.Definition {
		d := r.daily(definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay}, definition.Output{Path: "{form}.ndjson", Format: "ndjson"})
		d.Forms, d.Source.Requests.Concurrency = names, 2
		return d
	}
	r.stopAt(def(), "verified", 2)
	var now, most, all atomic.Int64
	o := watching(func(_, op, name string) error {
		if op != "stage" || !strings.HasPrefix(name, "dt=") {
			return nil
		}
		n := now.Add(1)
		defer now.Add(-1)
		all.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return nil
	})
	r.runBy(def(), o)
	if most.Load() > int64(runtime.GOMAXPROCS(0)) || all.Load() != 16 {
		t.Errorf("%d of %d parts were staged at once", most.Load(), all.Load())
	}
}

// TestSmallBudgetEnds: a run that spends the day's budget before it has a whole
// sample for its schema, or a whole plan's worth, keeps what it has, so that
// the runs of so many days end.
func TestSmallBudgetEnds(t *testing.T) {
	for _, outs := range [][]definition.Output{{days()}, {{Path: "form1.ndjson", Format: "ndjson"}}} {
		l := newLiving(t, outs...)
		for id := int64(1000); id < 1600; id++ { // thirty results a day
			l.insert(id, extracttest.Wall("2026-01-01 05:00:00").AddDate(0, 0, int(id)%20).Format(formservice.WallTime), "x")
		}
		l.edit = func(d *definition.Definition) {
			d.Extract.Incremental, d.Extract.To, d.Source.Requests.PerDay = false, extracttest.Wall("2026-01-21"), 12
		}
		now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
		l.o.Now = func() time.Time { return now }
		day, requests := 1, 0
		for ; day < 20; day++ {
			l.service.Reset()
			_, err := pipelines.Run(t.Context(), l.definition(), l.o)
			requests += len(l.service.Log())
			if err == nil {
				break
			}
			if !errors.As(err, new(*transport.BudgetError)) {
				t.Fatal(err)
			}
			now = now.Add(24*time.Hour + time.Second)
		}
		if day > 6 || requests > 45 {
			t.Errorf("%s: %d requests in %d days", outs[0].Path, requests, day)
		}
	}
}

// TestBudgetTooSmall: a day's budget that makes no plan, or that ends within the results without
// a date, is told, for otherwise each day's run would do the same again.
func TestBudgetTooSmall(t *testing.T) {
	for perDay, told := range map[int]bool{12: true, 20: true, 40: false} {
		w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Seed: 5, Results: 3000}))
		def := w.definition(definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth})
		def.Source.Requests.PerDay = perDay
		now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
		o := options()
		o.Now = func() time.Time { return now }
		_, err := pipelines.Run(t.Context(), def, o)
		for day := 1; day < 9 && errors.As(err, new(*transport.BudgetError)); day++ {
			now = now.Add(24*time.Hour + time.Second)
			_, err = pipelines.Run(t.Context(), def, o)
		}
		fault, ok := errors.AsType[*definition.Fault](err)
		if ok != told || ok && fault.Code != 78 || !ok && err != nil {
			t.Errorf("%d requests a day: %v", perDay, err)
		}
	}
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Seed: 5, Results: 3000}))
	def := w.definition(definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth})
	def.Source.Requests.PerDay = 25
	plan, err := pipelines.MakePlan(t.Context(), def, options(), false)
	if err != nil || !strings.Contains(strings.Join(plan.Forms[0].Warnings, " "), "per_day: 25 is too small") {
		t.Errorf("the plan warns of %q, %v", plan.Forms[0].Warnings, err)
	}
}
