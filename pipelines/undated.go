package pipelines

import (
	"context"
	"log/slog"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
)

// everything tells whether no range was asked for: then results without a
// date belong to the answer too.
func (f *formRun) everything() bool {
	e := f.def.Extract
	return e.From.IsZero() && e.To.IsZero() && f.o.From.IsZero() && f.o.To.IsZero()
}

// readUndated looks for results without a date and reads them as a window of
// their own, which comes last.
func (f *formRun) readUndated(ctx context.Context) error {
	if !f.everything() {
		return nil
	}
	total, n, err := f.client.CountUndated(ctx, f.form)
	if err != nil {
		return err
	}
	ranges, err := f.client.UndatedRanges(ctx, f.form, total, n)
	if err != nil || len(ranges) == 0 {
		return err
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "results without a date", slog.Int64("results", n), slog.Int("id_ranges", len(ranges)))
	w := &windowRun{planned: extract.Planned{Count: extract.Unknown}, undated: ranges, index: f.nextIndex()}
	f.windows = append(f.windows, w)
	for _, out := range f.outputs {
		if d, ok := out.(*datasetOutput); ok {
			d.addUndated(w)
		}
	}
	return f.readEach(ctx, []*windowRun{w})
}

// datedIDs tells which results are not among the undated: those that the
// windows of time gave (a service may give undated ones where only an upper
// bound is asked for), and, where ranges are mixed, those dated later than the
// run's range.
func (f *formRun) datedIDs(ctx context.Context, ranges []extract.UndatedRange) (func(id int64) bool, error) {
	mixed := false
	for _, r := range ranges {
		mixed = mixed || r.Mixed
	}
	dated := roaring64.New()
	known := func(id int64) bool { return dated.Contains(uint64(id)) } //nolint:gosec // ids are not negative
	for _, w := range f.windows {
		if w.ids != nil && !w.isUndated() {
			dated.Or(w.ids)
		}
	}
	if !mixed {
		return known, nil
	}
	err := f.reader.Each(ctx, extract.Window{From: f.rng.To}, extract.IDRange{}, func(p *extract.Page) error {
		for i := range p.Len() {
			dated.Add(uint64(p.ID(i))) //nolint:gosec // ids are not negative
		}
		return nil
	})
	return known, err
}

// footerWindow names a window in a file's metadata.
func footerWindow(from, to time.Time) string { return extract.Window{From: from, To: to}.String() }
