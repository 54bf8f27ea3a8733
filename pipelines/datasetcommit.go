package pipelines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/schemas"
)

// unify encodes the parts again that do not have all columns of the run: a
// late column turned up in another part. So all parts of a run have one
// schema, and a rerun, which knows the column from the beginning, gives the
// same bytes.
func (o *datasetOutput) unify(ctx context.Context, columns []schemas.Column) error {
	want, err := columnsDigest(columns, o.f.schema.HMACKey)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.f.def.Source.Requests.Concurrency)
	for _, p := range o.list {
		if len(p.prepared) == 0 || p.columns == want {
			continue
		}
		group.Go(func() error {
			return o.f.o.places.hold(ctx, func() error { return o.prepare(ctx, p, columns) })
		})
	}
	return group.Wait()
}

func (o *datasetOutput) commit(ctx context.Context) (OutputReport, error) {
	report, err := o.publish(ctx)
	if err == nil || mustStay(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone) {
		// What is recorded is finished by the next run, which needs what is
		// staged; what cannot be done any more was dropped with its journal.
		o.list, o.journal = nil, nil
	}
	if err != nil {
		return report, fmt.Errorf("%s: %w", o.path, err)
	}
	return report, nil
}

func (o *datasetOutput) publish(ctx context.Context) (OutputReport, error) {
	f := o.f
	columns, err := o.shown(f.windows, o.manifest)
	if err != nil {
		return OutputReport{}, err
	}
	if err := o.unify(ctx, columns); err != nil {
		return OutputReport{}, err
	}
	var fresh []load.PreparedPart
	for _, p := range o.list {
		fresh = append(fresh, p.prepared...)
	}
	old, kept := o.replaced()
	reuse := o.reuse(old, fresh)
	m := o.wholeManifest(columns, kept, reuse.Parts)
	commit := load.DatasetCommit{
		RunID: f.runID, Manifest: m, Base: o.base, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded,
		SupersededIDs: supersededSets(old, m.Parts), Journal: o.token(), Hook: o.hook(f),
	}
	if commit.IDs, err = o.idSets(reuse); err != nil {
		return OutputReport{}, err
	}
	if commit.Objects, err = o.deadLetters(ctx); err != nil {
		return OutputReport{}, err
	}
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	report := OutputReport{Rows: m.Rows, Parts: len(m.Parts), Watermark: m.Watermark}
	for _, p := range m.Parts {
		report.Bytes += p.Bytes
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: statsOf(f.windows), Adds: len(kept) > 0}
	return report, commit.Do(ctx, o.dest)
}

// reuse compares the run's parts with those that they replace. A part that is
// not as its manifest says is never reused. A full run reuses none, and removes
// what no manifest lists.
func (o *datasetOutput) reuse(old []load.Part, fresh []load.PreparedPart) load.Reuse {
	if o.f.full {
		r := load.ReuseParts(nil, fresh)
		for _, p := range old {
			r.Superseded = append(r.Superseded, p.Path)
		}
		r.Superseded = append(r.Superseded, load.NamesOf(o.inventory.Unlisted)...)
		return r
	}
	sound, damaged := o.inventory.Sound(old)
	r := load.ReuseParts(sound, fresh)
	for _, p := range damaged {
		r.Superseded = append(r.Superseded, p.Path)
	}
	return r
}

// damaged is a *load.DamagedPartsError where parts that this run left in the
// dataset are not as its manifest says, nil otherwise.
func (o *datasetOutput) damaged() error {
	_, kept := o.replaced()
	if _, damaged := o.inventory.Sound(kept); len(damaged) > 0 {
		return &load.DamagedPartsError{Dataset: o.path, Parts: damaged}
	}
	return nil
}

// deadLetters are those of the run as an object. A run that replaces the whole
// dataset removes all others: what they tell of is read again.
func (o *datasetOutput) deadLetters(ctx context.Context) ([]load.SmallObject, error) {
	letters, err := o.letters(o.f.windows)
	if err != nil {
		return nil, err
	}
	var objects []load.SmallObject
	own := load.RejectsName(o.f.runID)
	if letters != nil {
		objects = append(objects, load.SmallObject{Name: own, Data: letters})
	}
	if !o.f.full {
		return objects, nil
	}
	listed, err := o.dest.List(ctx, load.RejectsFolder+"/")
	if err != nil {
		return nil, err
	}
	for _, name := range load.NamesOf(listed) {
		if name != own || letters == nil {
			objects = append(objects, load.SmallObject{Name: name})
		}
	}
	return objects, nil
}

// wholeManifest is the whole dataset's: the columns of the parts that stay
// stay too.
func (o *datasetOutput) wholeManifest(columns []schemas.Column, kept, fresh []load.Part) load.Manifest {
	m := o.newManifest(columns, o.f.windows, o.manifest, false)
	m.Parts = slices.Concat(kept, fresh)
	m.Watermark = o.watermark()
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	if len(kept) > 0 && !o.out.Exploded() { // a child's columns are always the same
		m.Schema = withOlder(m.Schema, o.manifest.Schema)
	}
	return m
}

// replaced divides the old parts into those that this run's take the place of
// and those that stay.
func (o *datasetOutput) replaced() (old, kept []load.Part) {
	if o.manifest == nil {
		return nil, nil
	}
	if o.f.full {
		return o.manifest.Parts, nil
	}
	hit, rest, _ := load.Intersecting(o.manifest.Parts, wallRange(o.f.rng))
	for _, r := range o.f.older {
		var again []load.Part
		again, rest, _ = load.Intersecting(rest, wallRange(r.window))
		hit = append(hit, again...)
	}
	for _, p := range rest {
		if p.Undated && o.f.wantsUndated() {
			hit = append(hit, p)
		} else {
			kept = append(kept, p)
		}
	}
	return hit, kept
}

// idSets are the sets of the ids of new parts, as objects beside the data, and
// of parts that came out as they were but lack theirs.
func (o *datasetOutput) idSets(reuse load.Reuse) ([]load.SmallObject, error) {
	wanted := make(map[string]bool, len(reuse.New))
	for _, p := range reuse.New {
		wanted[p.Name] = true
	}
	for _, p := range reuse.Duplicates {
		wanted[p.Name] = o.lacks
	}
	var sets []load.SmallObject
	for _, p := range o.list {
		var before int64
		for i, object := range p.prepared {
			results := p.resultsIn(i)
			if wanted[object.Part.Path] {
				data, name, err := idSet(idsBetween(p.windows, before, before+results))
				if err != nil {
					return nil, err
				}
				sets = append(sets, load.SmallObject{Name: load.IDsName(name), Data: data})
			}
			before += results
		}
	}
	return sets, nil
}

// supersededSets are the names of the sets that no part of a manifest needs
// any more.
func supersededSets(old []load.Part, now []load.Part) []string {
	needed := make(map[string]bool, len(now))
	for _, p := range now {
		needed[p.IDs] = true
	}
	var names []string
	for _, p := range old {
		if p.IDs != "" && !needed[p.IDs] {
			names = append(names, load.IDsName(p.IDs))
		}
	}
	return names
}

// idSet is a set of ids as it is kept, and its checksum: equal sets are equal
// bytes, however they came about.
func idSet(ids *roaring64.Bitmap) (data []byte, name string, err error) {
	same := roaring64.BitmapOf(ids.ToArray()...)
	same.RunOptimize()
	if data, err = same.ToBytes(); err != nil {
		return nil, "", err
	}
	return data, digest(data), nil
}
