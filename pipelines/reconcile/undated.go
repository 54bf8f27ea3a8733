package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

// wantsUndated tells whether results without a date are read: they belong to
// the answer, or a dataset that is replaced whole holds some.
func (c *Reconciler) wantsUndated() bool {
	if c.Interval.Everything() || c.undatedMoved || c.Reader.Dateless {
		return true
	}
	return c.Full && slices.ContainsFunc(c.Parts.Manifests(), holdsUndated)
}

// holdsUndated tells whether an earlier run left results without a date.
func holdsUndated(m *load.Manifest) bool {
	return m != nil && slices.ContainsFunc(m.Parts, func(p load.Part) bool { return p.Undated })
}

// ReadUndated looks for results without a date, where they belong to the answer,
// and reads them as a window of their own, which comes last.
func (c *Reconciler) ReadUndated(ctx context.Context) error {
	if !c.wantsUndated() {
		return nil
	}
	c.Work.Undated = true
	if c.Reader.Dateless {
		return nil // they are in the one window
	}
	total, n, err := extract.CountUndated(ctx, c.Reader.Client, c.Reader.Name)
	if err != nil {
		return err
	}
	if err := c.checkRest(ctx, total, n); err != nil {
		return err
	}
	ranges, err := extract.UndatedRanges(ctx, c.Reader.Client, c.Reader.Name, total, n)
	if err != nil || len(ranges) == 0 {
		return err
	}
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "results without a date", slog.Int64("results", n), slog.Int("id_ranges", len(ranges)))
	c.Reader.Expect(n)
	return c.addUndated(ctx, reading.Undated{Ranges: ranges}, n)
}

// checkRest looks for results that are neither in the range nor without a date.
// They are later ones, or the service ignores fs_min_date: then every result
// counts as a later one, and those without a date do not show.
func (c *Reconciler) checkRest(ctx context.Context, total, undated int64) error {
	in := c.Plan.Total
	if in <= 0 || total <= in+undated || !c.Interval.Read.From.IsZero() {
		return nil
	}
	rest := extract.Window{From: c.Interval.Read.To}
	later, err := c.Reader.Counter()(ctx, rest)
	if err != nil || later < total {
		return err
	}
	return &extract.DatesError{Windows: [2]extract.Window{c.Interval.Read, rest}}
}

// addUndated reads results without a date as the run's last window.
func (c *Reconciler) addUndated(ctx context.Context, u reading.Undated, counts ...int64) error {
	u.Read, u.Dated = c.Interval.Read, func() *roaring64.Bitmap {
		dated := roaring64.New()
		for _, w := range readWindows(c.Windows) {
			if w.Undated == nil {
				dated.Or(w.IDs)
			}
		}
		return dated
	}
	w := &reading.Window{Planned: extract.Planned{Count: extract.Unknown}, Undated: &u, Counts: counts}
	c.Windows = append(c.Windows, w)
	return c.Reader.Read(ctx, []*reading.Window{w})
}

// undatedWindow is the window of the results without a date, nil if there is none.
func undatedWindow(windows []*reading.Window) *reading.Window {
	if n := len(windows); n > 0 && windows[n-1].Undated != nil {
		return windows[n-1]
	}
	return nil
}

// A result that gets a date leaves the part of results without a date. The ids of
// that part are known, so the other results are asked for by their ids, and not
// looked for by counts. New results without a date are found where no range is
// asked for.

// readKnownUndated reads the results again that the parts of results without a
// date hold and no window of this run gave. Where their ids are not known, all are
// looked for.
func (c *Reconciler) readKnownUndated(ctx context.Context) error {
	c.undatedMoved = true
	only, err := c.Parts.UndatedIDs(ctx)
	if errors.Is(err, load.ErrIDs) {
		return c.ReadUndated(ctx)
	}
	if err != nil {
		return err
	}
	for _, w := range readWindows(c.Windows) {
		only.AndNot(w.IDs)
	}
	if only.IsEmpty() {
		return nil
	}
	ranges := clusters(only)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "results without a date are read again",
		slog.Uint64("results", only.GetCardinality()), slog.Int("id_ranges", len(ranges)), slog.String("reason", "one of them has a date now"))
	return c.addUndated(ctx, reading.Undated{Ranges: ranges, Only: only})
}

// clusterSpan is how many ids a range holds at most: ids are whole numbers, so
// one request brings all its results (specification, section 8).
const clusterSpan = 100

// clusters are ranges of ids that hold a set, each by one request.
func clusters(ids *roaring64.Bitmap) []extract.UndatedRange {
	var ranges []extract.UndatedRange
	for it := ids.Iterator(); it.HasNext(); {
		id := int64(it.Next()) //nolint:gosec // ids were int64
		if last := len(ranges) - 1; last >= 0 && id-ranges[last].IDs.Min < clusterSpan {
			ranges[last].IDs.Max = id
			continue
		}
		ranges = append(ranges, extract.UndatedRange{IDs: extract.IDRange{Min: id, Max: id}, Mixed: true})
	}
	return ranges
}
