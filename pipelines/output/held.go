package output

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// Datasets returns the live datasets as earlier runs left them.
func (s *Set) Datasets() (datasets []reconcile.Dataset) {
	for _, d := range s.datasets() {
		datasets = append(datasets, d.asFound())
	}
	return datasets
}

// asFound returns the dataset as earlier runs left it.
func (o *dataset) asFound() reconcile.Dataset {
	found := reconcile.Dataset{Path: o.Path, Manifest: o.manifest, Child: o.out.Exploded()}
	for _, p := range o.inventory.Damaged {
		found.Damaged = append(found.Damaged, p.Part)
	}
	return found
}

// IDs returns the ids of all results in the parts of each live dataset that choose returns. A
// part without rows has no ids. The error wraps idset.ErrDamaged if a part's ids are not known.
func (s *Set) IDs(ctx context.Context, choose func(reconcile.Dataset) []load.Part) (idset.Set, error) {
	var sets []idset.Set
	for _, d := range s.datasets() {
		for _, p := range choose(d.asFound()) {
			if p.Rows == 0 {
				continue
			}
			ids, err := d.idsOf(ctx, p)
			if err != nil {
				return nil, err
			}
			sets = append(sets, ids)
		}
	}
	return idset.Union(sets...), nil
}

// Holding returns the parts of live datasets that hold one of the ids and that
// r does not replace.
func (s *Set) Holding(ctx context.Context, ids idset.Set, r reconcile.Replaced) ([]reconcile.Held, error) {
	if ids.IsEmpty() {
		return nil, nil
	}
	var hits []reconcile.Held
	for _, d := range s.datasets() {
		found, err := d.holding(ctx, ids, r)
		if err != nil {
			if err := s.setAside(ctx, d.place, d.named(err)); err != nil {
				return nil, err
			}
		}
		hits = append(hits, found...)
	}
	return hits, nil
}

// holding returns the parts of this dataset that hold one of ids and that r does not replace.
// A part whose set of ids cannot be read is returned if one of ids lies in its range of ids.
func (o *dataset) holding(ctx context.Context, ids idset.Set, r reconcile.Replaced) ([]reconcile.Held, error) {
	_, kept := r.Divide(o.manifest)
	near := slices.DeleteFunc(kept, func(p load.Part) bool { return p.Rows == 0 || ids.Between(p.MinID, p.MaxID).IsEmpty() })
	hits := make([]reconcile.Held, len(near))
	err := eachPart(ctx, near, func(ctx context.Context, i int, p load.Part) error {
		set, err := o.idsOf(ctx, p)
		hits[i].Part = p
		switch {
		case errors.Is(err, idset.ErrDamaged):
			o.job.Log.LogAttrs(ctx, slog.LevelWarn, "the list of a part's ids is damaged; the part is read again",
				slog.String("path", o.Path), slog.String("part", p.Path), slog.String("error", err.Error()))
			hits[i].IDs = idset.Set{}
		case err != nil:
			return err
		case set.Intersects(ids):
			hits[i].IDs = set.Intersect(ids)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(hits, func(h reconcile.Held) bool { return h.IDs == nil }), nil
}

// eachPart calls do for the parts, several at a time, until one fails.
func eachPart(ctx context.Context, parts []load.Part, do func(ctx context.Context, i int, p load.Part) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for i, p := range parts {
		group.Go(func() error { return do(ctx, i, p) })
	}
	return group.Wait()
}

// idsOf reads the set of a part's ids. The error wraps idset.ErrDamaged if the set is missing
// or damaged.
func (o *dataset) idsOf(ctx context.Context, p load.Part) (idset.Set, error) {
	if o.table != nil {
		return o.table.IDs(ctx, p)
	}
	ids, err := load.PartIDs(ctx, o.dest, p, o.out.Exploded())
	if errors.Is(err, idset.ErrDamaged) {
		o.lacks.Store(true)
	}
	return ids, err
}
