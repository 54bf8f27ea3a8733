package pipelines

import (
	"context"
	"errors"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// A result without a date that gets one leaves the part of those without. What
// else that part holds is known by its ids: they are asked for, and none is
// looked for by counts. New results without a date are found where no range is
// asked for.

// readKnownUndated reads the results again that the parts of results without a
// date hold and no window of this run gave. Where their ids are not known, all are
// looked for.
func (f *formRun) readKnownUndated(ctx context.Context) error {
	f.undatedMoved = true
	only := roaring64.New()
	for _, d := range f.datasets() {
		ids, err := d.undatedIDs(ctx)
		if errors.Is(err, load.ErrIDs) {
			return f.readUndated(ctx)
		}
		if err != nil {
			return err
		}
		only.Or(ids)
	}
	for _, w := range readWindows(f.windows) {
		only.AndNot(w.ids)
	}
	if only.IsEmpty() {
		return nil
	}
	ranges := clusters(only)
	f.log.LogAttrs(ctx, slog.LevelInfo, "results without a date are read again",
		slog.Uint64("results", only.GetCardinality()), slog.Int("id_ranges", len(ranges)), slog.String("reason", "one of them has a date now"))
	return f.addUndated(ctx, windowRun{undated: &undatedWindow{ranges: ranges, only: only}})
}

// undatedIDs are the ids that the dataset's parts of results without a date hold.
func (o *datasetOutput) undatedIDs(ctx context.Context) (*roaring64.Bitmap, error) {
	all := roaring64.New()
	if o.manifest == nil {
		return all, nil
	}
	for _, p := range o.manifest.Parts {
		if !p.Undated {
			continue
		}
		ids, err := o.idsOf(ctx, p)
		if err != nil {
			return nil, err
		}
		all.Or(ids)
	}
	return all, nil
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
