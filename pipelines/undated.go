package pipelines

import (
	"context"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// wantsUndated tells whether results without a date are read: they belong to
// the answer, or a dataset that is replaced whole holds some.
func (f *formRun) wantsUndated() bool {
	if f.iv.Everything() || f.undatedMoved || f.dateless {
		return true
	}
	for _, d := range f.datasets() {
		if f.full && d.hasUndated() {
			return true
		}
	}
	return false
}

// readUndated looks for results without a date and reads them as a window of
// their own, which comes last.
func (f *formRun) readUndated(ctx context.Context) error {
	if !f.wantsUndated() {
		return nil
	}
	f.report.readUndated = true
	if f.dateless {
		return nil // they are in the one window
	}
	total, n, err := extract.CountUndated(ctx, f.client, f.form)
	if err != nil {
		return err
	}
	if err := f.checkRest(ctx, total, n); err != nil {
		return err
	}
	ranges, err := extract.UndatedRanges(ctx, f.client, f.form, total, n)
	if err != nil || len(ranges) == 0 {
		return err
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "results without a date", slog.Int64("results", n), slog.Int("id_ranges", len(ranges)))
	if f.expected != extract.Unknown {
		f.expected += n
	}
	return f.addUndated(ctx, windowRun{undated: &undatedWindow{ranges: ranges}, counts: []int64{n}})
}

// checkRest looks for results that are neither in the range nor without a date.
// They are later ones, or the service ignores fs_min_date: then every result
// counts as a later one, and those without a date do not show.
func (f *formRun) checkRest(ctx context.Context, total, undated int64) error {
	in := f.plan.Total
	if in <= 0 || total <= in+undated || !f.iv.Read.From.IsZero() {
		return nil
	}
	rest := extract.Window{From: f.iv.Read.To}
	later, err := f.counter()(ctx, rest)
	if err != nil || later < total {
		return err
	}
	return &extract.DatesError{Windows: [2]extract.Window{f.iv.Read, rest}}
}

// addUndated reads results without a date as the run's last window.
func (f *formRun) addUndated(ctx context.Context, of windowRun) error {
	of.planned = extract.Planned{Count: extract.Unknown}
	w := &of
	f.windows = append(f.windows, w)
	return f.readEach(ctx, []*windowRun{w})
}

// undatedWindow is the window of the results without a date, nil if there is none.
func (f *formRun) undatedWindow() *windowRun {
	if n := len(f.windows); n > 0 && f.windows[n-1].undated != nil {
		return f.windows[n-1]
	}
	return nil
}

// datedIDs tells which results are not among the undated: those that the
// windows of time gave (a service may give undated ones where only an upper
// bound is asked for), and, where ranges are mixed, those dated later than the
// run's range. Where the window is read again every range may be mixed:
// results get their date when they are finished.
func (f *formRun) datedIDs(ctx context.Context, w *windowRun) (func(id int64) bool, error) {
	dated := roaring64.New()
	known := func(id int64) bool { return dated.Contains(uint64(id)) } //nolint:gosec // ids are not negative
	f.mu.Lock()
	for _, other := range f.windows {
		if other.ids != nil && other.undated == nil {
			dated.Or(other.ids)
		}
	}
	f.mu.Unlock()
	if only := w.undated.only; only != nil {
		return func(id int64) bool { return known(id) || !only.Contains(uint64(id)) }, nil //nolint:gosec // as above
	}
	mixed := w.tries > 1
	for _, r := range w.undated.ranges {
		mixed = mixed || r.Mixed
	}
	if !mixed {
		return known, nil
	}
	if !f.iv.Read.From.IsZero() {
		if err := f.addOlder(ctx, dated, w.undated.ranges); err != nil {
			return nil, err
		}
	}
	err := f.reader.Each(ctx, extract.Window{From: f.iv.Read.To}, extract.IDRange{}, func(p *page.Page) error {
		addIDs(dated, p)
		return nil
	})
	return known, err
}

// addOlder adds the dated results of ranges of ids that lie before the run's
// range. Parts that stay do not tell: one that came late is in none.
func (f *formRun) addOlder(ctx context.Context, dated *roaring64.Bitmap, ranges []extract.UndatedRange) error {
	for _, r := range ranges {
		err := f.reader.Each(ctx, extract.Window{From: extract.Epoch, To: f.iv.Read.From}, r.IDs, func(p *page.Page) error {
			addIDs(dated, p)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func addIDs(set *roaring64.Bitmap, p *page.Page) {
	for i := range p.Len() {
		set.Add(uint64(p.ID(i))) //nolint:gosec // ids are not negative
	}
}
