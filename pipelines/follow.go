package pipelines

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// A run that continues datasets asks the service what changed before it decides what to read.
// Other runs ask once their plan shows that results may move between windows, or come and go
// while many are read. With `changes: lookback` no run asks.

// follow asks the service what changed since the datasets were written. If the service tells,
// the run reads only what changed. Otherwise it reads its lookback.
func (f *formRun) follow(ctx context.Context, d *decision) error {
	manifests := f.outputs.Manifests()
	if !f.reader.Def.Extract.Incremental || len(manifests) == 0 {
		return nil
	}
	if f.noFeed != nil {
		d.changes = reconcile.ChangesInDoubt(manifests, f.reader.Form, f.noFeed)
		return nil //nolint:nilerr // the error is why the feed is not asked
	}
	if reason := feedless(f.reader.Form); reason != "" {
		d.changes = reconcile.NoChanges(manifests, reason)
		return nil
	}
	if d.lookback = f.reader.Uncounted(); d.lookback != "" {
		return nil // planned still asks what changes while several windows are read
	}
	if err := f.askChanges(ctx, d); err != nil {
		return err
	}
	if s := d.changes; s.Continues {
		now := load.Wall(f.o.Now().In(f.reader.Def.Source.Zone)).Time
		if latest := s.Latest(); f.beyond.IsZero() && d.Endless() && latest.After(now.Add(reading.ClockLeeway)) && !latest.Before(d.Asked.To) {
			return &reconcile.LateError{Now: now, Beyond: latest.Add(time.Second)}
		}
		d.Interval = d.SinceWatermark(f.reader.Def, manifests, s.NamesSince(reading.LeastWatermark(manifests)))
	}
	return nil
}

// countable tells whether a dataset holds each result once, so that counts say
// whether it is whole.
func countable(outputs *output.Set) bool {
	return slices.ContainsFunc(outputs.Datasets(), func(d reconcile.Dataset) bool { return !d.Child })
}

// feedless says why a run does not ask the service what changed; "" if it asks.
func feedless(r reading.Form) string {
	if r.Def.Extract.Changes == definition.ChangesLookback {
		return "the definition says changes: lookback"
	}
	return ""
}

// askChanges asks the service what changed. A run that takes over what an earlier run read, and
// that does not continue the datasets, uses what the earlier run knew of changes instead.
func (f *formRun) askChanges(ctx context.Context, d *decision) (err error) {
	manifests := f.outputs.Manifests()
	if d.inherited != nil && len(d.inherited.Chains)+len(d.inherited.Counts) > 0 && !d.Continues {
		d.changes = reconcile.ResumeChanges(manifests, d.inherited.Changes)
		f.reader.Pages.CountUnstamped(d.changes.Usable)
		return nil
	}
	d.changes, err = reconcile.AskChanges(ctx, f.reader.Form, reconcile.ChangesSince{
		Manifests: manifests, Lookback: d.Read,
		Continues: d.Continues && countable(f.outputs) && f.reader.Uncounted() == "", DatasetTime: d.DatasetTime(f.reader.Def, manifests),
	})
	if err != nil {
		return err
	}
	f.reader.Pages.CountUnstamped(d.changes.Usable)
	if s := d.changes; s.Reason != "" {
		what, attrs := "this run does not know what changes while it reads", []slog.Attr{slog.String("reason", s.Reason)}
		if s.UndatedStale {
			what = "this run reads the last days (lookback) again, and older parts that may hold changed results"
		} else if d.Continues {
			what = "this run reads only the last days (lookback) again, and may not notice changes to older results"
			attrs = append(attrs, slog.String("hint", "if older results are edited or deleted, run `"+f.reader.Def.Command("run", "--full")+"` now and then, such as weekly"))
		}
		f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "the service's list of changes cannot be used; "+what, attrs...)
	}
	return nil
}

// planned makes the run's plan.
func (f *formRun) planned(ctx context.Context, d *decision) (*extract.Plan, error) {
	r := f.reader
	if s := d.changes; s != nil && s.Continues {
		return planTail(ctx, r, d.Interval, s, f.outputs.Manifests(), f.counts.Remembered(r.Counter(), f.o.Now))
	}
	// The first count is of the whole range. Each further count may show that a window
	// is empty, so the feed of changes is asked before the second count.
	var once sync.Once
	var asked error
	wanted := d.changes == nil && !d.Unbounded() && feedless(r.Form) == "" && f.noFeed == nil
	ask := func() error {
		if wanted {
			once.Do(func() { asked = f.askChanges(ctx, d) })
		}
		return asked
	}
	count := f.counts.Remembered(r.Counter(), f.o.Now)
	if known := count; known != nil {
		var counted atomic.Bool
		count = func(ctx context.Context, w extract.Window) (int64, error) {
			if counted.Swap(true) {
				if err := ask(); err != nil {
					return 0, err
				}
			}
			return known(ctx, w)
		}
	}
	plan, err := r.NewPlan(ctx, d.Interval, d.Read, count)
	if err == nil && reading.MayMiss(plan) {
		err = ask()
	}
	return plan, err
}

// isShort tells whether a tail, the range of a run that continues the datasets, is read without
// counts, because a count would cost more than it saves with so many results. If the tail has
// no beginning, fixed windows still need counts to find where they begin.
func isShort(form reading.Form, tail extract.Window, results int64) bool {
	return (!tail.From.IsZero() || form.Def.Extract.Window.Auto()) && form.IsSmall(tail, results)
}

// emptyPlan returns the plan of an interval that holds no results.
func emptyPlan(form reading.Form, iv reading.Interval) *extract.Plan {
	return &extract.Plan{Range: form.Range(iv, iv.Read), Windows: []extract.Planned{{Window: iv.Read}}, Groups: []int64{0}}
}

// planTail plans the tail: the range of a run that continues the datasets. The plan is empty if
// the range is, or if it holds no results and no changed one is dated there, which the count
// over the datasets confirms. A short tail is not counted, see isShort.
func planTail(ctx context.Context, r *reading.Reader, iv reading.Interval, s *reconcile.Changes, manifests []*load.Manifest, count extract.Counter) (*extract.Plan, error) {
	held := reading.ResultsIn(iv.Read, manifests)
	empty := iv.Read.From.Equal(iv.Read.To)
	if empty || held == 0 && !s.NamesSince(reading.LeastWatermark(manifests)) {
		return emptyPlan(r.Form, iv), nil
	}
	if isShort(r.Form, iv.Read, held+int64(len(s.Named))) {
		count = nil
	}
	return r.NewPlan(ctx, iv, iv.Read, count)
}
