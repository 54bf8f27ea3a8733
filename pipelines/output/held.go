package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
	"golang.org/x/sync/errgroup"
)

// Holding returns the parts of live datasets that hold one of the ids and that
// r does not replace.
func (s *Set) Holding(ctx context.Context, ids *roaring64.Bitmap, r reconcile.Replaced) ([]load.Part, error) {
	var hits []load.Part
	for _, t := range s.live() {
		d, ok := t.out.(*dataset)
		if !ok {
			continue
		}
		found, err := d.holding(ctx, ids, r)
		if err != nil {
			if err := s.setAside(ctx, t, d.named(err)); err != nil {
				return nil, err
			}
		}
		hits = append(hits, found...)
	}
	return hits, nil
}

// holding returns the parts of this dataset that hold one of ids and that r does not replace.
// If a part's set of ids cannot be read, the part counts if an id lies in its range.
func (o *dataset) holding(ctx context.Context, ids *roaring64.Bitmap, r reconcile.Replaced) ([]load.Part, error) {
	_, kept := r.Divide(o.manifest)
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
				o.job.Log.LogAttrs(ctx, slog.LevelWarn, "the ids of a part are not known; it is read again",
					slog.String("path", o.Path), slog.String("part", p.Path), slog.String("error", err.Error()))
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

// meets tells whether one of ids lies between a part's smallest and largest id.
func meets(ids *roaring64.Bitmap, p load.Part) bool {
	if p.Rows == 0 {
		return false
	}
	it := ids.Iterator()
	it.AdvanceIfNeeded(uint64(p.MinID))                     //nolint:gosec // ids are not negative
	return it.HasNext() && it.PeekNext() <= uint64(p.MaxID) //nolint:gosec // as above
}

// idsOf reads the set of a part's ids. The error wraps load.ErrIDs if there is
// no set or if it belongs to another part.
func (o *dataset) idsOf(ctx context.Context, p load.Part) (*roaring64.Bitmap, error) {
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

// UndatedIDs returns the ids of all results without a date in the live
// datasets. The error wraps load.ErrIDs if they are not known.
func (s *Set) UndatedIDs(ctx context.Context) (*roaring64.Bitmap, error) {
	all := roaring64.New()
	for _, t := range s.live() {
		d, ok := t.out.(*dataset)
		if !ok || d.manifest == nil {
			continue
		}
		for _, p := range d.manifest.Parts {
			if !p.Undated || p.Rows == 0 {
				continue
			}
			ids, err := d.idsOf(ctx, p)
			if err != nil {
				return nil, err
			}
			all.Or(ids)
		}
	}
	return all, nil
}
