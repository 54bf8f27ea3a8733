package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// Ids never change, dates may: a form that was begun a year ago and is finished
// today leaves a part that this run does not touch and turns up in one that it
// does. Every part keeps the set of its ids, and one that holds an id which
// this run read is out of date: it is read again and replaced in the same
// commit. So an id is in a dataset once.

// olderRange is a span outside the run's range that is read again, whole parts
// of every dataset.
type olderRange struct {
	window extract.Window
	counts []int64 // the service's so far; extract.Unknown where it was not asked
}

// readOlder reads the parts again that hold an id which this run read
// elsewhere, until there are none.
func (f *formRun) readOlder(ctx context.Context) error {
	for {
		ids := f.freshIDs()
		if ids.IsEmpty() {
			return nil
		}
		hits, err := f.heldElsewhere(ctx, ids)
		if err != nil {
			return err
		}
		f.compared.Or(ids)
		if err := f.readHits(ctx, hits); err != nil {
			return err
		}
		if err := f.settleDuplicates(ctx); err != nil {
			return err
		}
	}
}

// freshIDs are the ids that were read and not yet compared with older parts.
func (f *formRun) freshIDs() *roaring64.Bitmap {
	ids := roaring64.New()
	if f.full {
		return ids // no part stays
	}
	for _, w := range readWindows(f.windows) {
		ids.Or(w.ids)
	}
	ids.AndNot(f.compared)
	return ids
}

// heldElsewhere are the parts that stay so far and hold one of the ids.
func (f *formRun) heldElsewhere(ctx context.Context, ids *roaring64.Bitmap) ([]load.Part, error) {
	var hits []load.Part
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		if !ok {
			continue
		}
		found, err := d.holding(ctx, ids)
		if err != nil {
			if err := f.setAside(ctx, t, fmt.Errorf("%s: %w", d.path, err)); err != nil {
				return nil, err
			}
		}
		hits = append(hits, found...)
	}
	return hits, nil
}

// holding are the parts that stay and hold one of the ids. One whose set cannot
// be read may hold any id between its smallest and its largest.
func (o *datasetOutput) holding(ctx context.Context, ids *roaring64.Bitmap) ([]load.Part, error) {
	_, kept := o.replaced()
	holds, lacks := make([]bool, len(kept)), make([]bool, len(kept))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for i, p := range kept {
		if !meets(ids, p) {
			continue
		}
		group.Go(func() error {
			set, err := o.idsOf(ctx, p)
			if errors.Is(err, load.ErrIDs) {
				o.f.log.LogAttrs(ctx, slog.LevelWarn, "the ids of a part are not known; it is read again",
					slog.String("path", o.path), slog.String("part", p.Path), slog.String("error", err.Error()))
				holds[i], lacks[i] = true, true
				return nil
			}
			holds[i] = err == nil && set.Intersects(ids)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var hits []load.Part
	for i, p := range kept {
		if holds[i] {
			hits = append(hits, p)
		}
		if lacks[i] {
			o.lacks = true
		}
	}
	return hits, nil
}

// meets tells whether an id lies between a part's smallest and largest.
func meets(ids *roaring64.Bitmap, p load.Part) bool {
	it := ids.Iterator()
	it.AdvanceIfNeeded(uint64(p.MinID))                     //nolint:gosec // ids are not negative
	return it.HasNext() && it.PeekNext() <= uint64(p.MaxID) //nolint:gosec // as above
}

// idsOf reads the set of a part's ids. The error wraps load.ErrIDs where there is
// none, or none that can be of that part.
func (o *datasetOutput) idsOf(ctx context.Context, p load.Part) (*roaring64.Bitmap, error) {
	if p.IDs == "" {
		return nil, fmt.Errorf("%w: there is none", load.ErrIDs)
	}
	data, _, err := o.dest.Get(ctx, load.IDsName(p.IDs))
	if errors.Is(err, load.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is none", load.ErrIDs)
	}
	if err != nil {
		return nil, err
	}
	if load.SumIDs(data) != p.IDs {
		return nil, load.ErrIDs
	}
	ids, err := load.DecodeIDs(data)
	if err != nil {
		return nil, err
	}
	if n := ids.GetCardinality(); n == 0 || n != uint64(p.Rows) && !o.out.Exploded() || ids.Minimum() != uint64(p.MinID) || ids.Maximum() != uint64(p.MaxID) { //nolint:gosec // they are not negative
		return nil, fmt.Errorf("%w: it is of another part", load.ErrIDs)
	}
	return ids, nil
}

// readHits plans and reads what older parts hold now.
func (f *formRun) readHits(ctx context.Context, hits []load.Part) error {
	var todo []*windowRun
	undated := false
	for _, p := range hits {
		if p.Undated {
			undated = true
			continue
		}
		r := f.olderRangeOf(p)
		if r == nil {
			continue // another hit's range holds it
		}
		windows, err := f.planOlder(ctx, r)
		if err != nil {
			return err
		}
		todo = append(todo, windows...)
	}
	f.report.Older += len(todo)
	if err := f.readEach(ctx, todo); err != nil {
		return err
	}
	if undated && !f.wantsUndated() {
		return f.readKnownUndated(ctx)
	}
	return nil
}

// olderRangeOf is the range of a part, widened to whole parts of every dataset;
// nil where it is read already.
func (f *formRun) olderRangeOf(p load.Part) *olderRange {
	at := wallRange(extract.Window{From: p.From.Time, To: p.To.Time})
	for _, r := range f.older {
		if hit, _, _ := load.Intersecting([]load.Part{p}, wallRange(r.window)); len(hit) > 0 {
			return nil
		}
	}
	r := &olderRange{window: interval.Widen(spanOf(at), f.committedSets(), f.full)}
	f.older = append(f.older, r)
	return r
}

// planOlder divides an older range into windows, puts them among those of the
// run, and gives those that may hold results.
func (f *formRun) planOlder(ctx context.Context, r *olderRange) ([]*windowRun, error) {
	plan, err := f.newPlan(ctx, r.window, f.counter())
	if err != nil {
		return nil, err
	}
	r.counts = append(r.counts, plan.Total)
	f.log.LogAttrs(ctx, slog.LevelInfo, "an older part is read again",
		slog.String("window", r.window.String()), slog.Int64("results", plan.Total), slog.String("reason", "a result of it has another date now"))
	fresh := f.divide(plan)
	var todo []*windowRun
	for _, w := range fresh {
		w.older = r
		if !w.done {
			todo = append(todo, w)
		}
	}
	f.windows = slices.Insert(f.windows, f.placeOf(r.window), fresh...)
	return todo, nil
}

// placeOf is where windows of a span belong among the run's.
func (f *formRun) placeOf(span extract.Window) int {
	i := slices.IndexFunc(f.windows, func(w *windowRun) bool {
		return w.undated != nil || !w.planned.Window.From.IsZero() && !w.planned.Window.From.Before(span.To)
	})
	if i < 0 {
		return len(f.windows)
	}
	return i
}

// windowsOf are the windows of an older range.
func (f *formRun) windowsOf(r *olderRange) []*windowRun {
	return slices.DeleteFunc(slices.Clone(f.windows), func(w *windowRun) bool { return w.older != r })
}

// verifyOlder compares older ranges with their counts. The planner's is asked
// for before the reading; where it does not agree the range is counted, and
// read again.
func (f *formRun) verifyOlder(ctx context.Context) error {
	for _, r := range f.older {
		for round := 0; ; round++ {
			windows := f.windowsOf(r)
			n := extractedOf(windows)
			if n == r.counts[len(r.counts)-1] {
				break
			}
			counted, err := f.counter()(ctx, r.window)
			if err != nil {
				return err
			}
			if r.counts = append(r.counts, counted); n == counted || round == rereads && plausible(r.counts, n) {
				break
			}
			if round == rereads {
				return &VerifyError{Counted: counted, Extracted: n, Windows: spans(windows)}
			}
			if err := f.readChanged(ctx, windows); err != nil {
				return err
			}
		}
	}
	return nil
}

// olderCounted is what the service counts in the older ranges.
func (f *formRun) olderCounted() (n int64) {
	for _, r := range f.older {
		n += r.counts[len(r.counts)-1]
	}
	return n
}
