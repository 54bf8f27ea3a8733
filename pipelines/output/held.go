package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// Holding returns the parts of live datasets that hold one of the ids and that
// r does not replace.
func (s *Set) Holding(ctx context.Context, ids *roaring64.Bitmap, r reconcile.Replaced) ([]reconcile.Held, error) {
	if ids.IsEmpty() {
		return nil, nil
	}
	var hits []reconcile.Held
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
func (o *dataset) holding(ctx context.Context, ids *roaring64.Bitmap, r reconcile.Replaced) ([]reconcile.Held, error) {
	_, kept := r.Divide(o.manifest)
	held, lacks := make([]*roaring64.Bitmap, len(kept)), make([]bool, len(kept))
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
				held[i], lacks[i] = roaring64.New(), true
				return nil
			}
			if err == nil && set.Intersects(ids) {
				held[i] = roaring64.And(set, ids)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var hits []reconcile.Held
	for i, p := range kept {
		if held[i] != nil {
			hits = append(hits, reconcile.Held{Part: p, IDs: held[i]})
		}
		if lacks[i] {
			o.lacks = true
		}
	}
	return hits, nil
}

// Datasets returns the live datasets as earlier runs left them.
func (s *Set) Datasets() (datasets []reconcile.Dataset) {
	for _, t := range s.live() {
		d, ok := t.out.(*dataset)
		if !ok {
			continue
		}
		left := reconcile.Dataset{Manifest: d.manifest, Child: t.def.Exploded()}
		for _, p := range d.inventory.Damaged {
			left.Damaged = append(left.Damaged, p.Part)
		}
		datasets = append(datasets, left)
	}
	return datasets
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

// IDs returns the ids of all results in chosen parts of each live dataset. A part
// without rows has no ids. The error wraps load.ErrIDs if they are not known.
func (s *Set) IDs(ctx context.Context, choose func(reconcile.Dataset) []load.Part) (*roaring64.Bitmap, error) {
	all := roaring64.New()
	for _, t := range s.live() {
		d, ok := t.out.(*dataset)
		if !ok {
			continue
		}
		for _, p := range choose(reconcile.Dataset{Manifest: d.manifest, Child: t.def.Exploded()}) {
			if p.Rows == 0 {
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
