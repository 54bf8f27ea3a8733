package output

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// stage encodes the parts, several at a time, and builds the commit that publishes them.
func (o *dataset) stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	columns, _, err := o.columns(ctx)
	if err != nil {
		return nil, err
	}
	parts := o.parts(s)
	if err := stageAll(ctx, o, parts, columns); err != nil {
		return nil, err
	}
	var fresh []load.PreparedPart
	for _, p := range parts {
		fresh = append(fresh, p.prepared...)
	}
	old, kept := s.Replaced.Divide(o.manifest)
	reuse, err := o.reuse(ctx, old, fresh)
	if err != nil {
		return nil, err
	}
	m := o.wholeManifest(columns, kept, reuse.Parts)
	commit := load.DatasetCommit{
		RunID: o.job.RunID, Manifest: m, Base: o.base, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded,
		SupersededIDs: supersededSets(old, m.Parts), Hook: o.hook,
	}
	commit.IDs = o.idSets(parts, reuse)
	if commit.Objects, err = o.deadLetters(ctx); err != nil {
		return nil, err
	}
	var report Report
	report.holds(&m)
	if own := load.RejectsName(o.job.RunID); slices.ContainsFunc(commit.Objects, func(s load.SmallObject) bool { return s.Name == own && s.Data != nil }) {
		report.DeadLetters = o.Path + own
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: s.Stats, Adds: len(kept) > 0}
	return &stagedOutput{
		report: report,
		record: func(ctx context.Context) (func(context.Context) error, error) { return o.record(ctx, commit) },
	}, nil
}

// columns implements preparer.
func (o *dataset) columns(ctx context.Context) ([]schemas.Column, transform.Stats, error) {
	return o.ownColumns(ctx, o.snapshot.Windows)
}

// stageAll stages the parts that were not staged before, several at a time.
func stageAll(ctx context.Context, o preparer, parts []*outputPart, columns []schemas.Column) error {
	p := o.at()
	err := errors.Join(p.takeEarly(ctx, parts, columns), p.takeAdopted(ctx, parts, columns))
	group, encoding := errgroup.WithContext(ctx)
	group.SetLimit(cap(p.job.Encoders))
	for _, part := range parts {
		if err == nil && !part.staged {
			group.Go(func() error {
				return p.job.Encoders.Hold(encoding, func() error { return o.prepare(encoding, part, columns) })
			})
		}
	}
	err = errors.Join(err, group.Wait())
	for _, part := range parts {
		if !part.adopted {
			p.staged = append(p.staged, part.objects()...)
		}
	}
	return err
}

// damaged returns a *load.DamagedPartsError if parts that this run kept do not
// match the manifest. Otherwise it returns nil.
func (o *dataset) damaged() error {
	_, kept := o.snapshot.Replaced.Divide(o.manifest)
	if _, damaged := o.inventory.Sound(kept); len(damaged) > 0 {
		return &load.DamagedPartsError{Dataset: o.Path, Parts: damaged, Run: func(flags string) string { return o.job.Def.Command("run", flags) }}
	}
	return nil
}

// deadLetters returns the run's dead letters as an object. A full run also
// removes all older dead letters, because it reads the rejected results again.
func (o *dataset) deadLetters(ctx context.Context) ([]load.SmallObject, error) {
	letters, err := o.letters(o.snapshot.Windows)
	if err != nil {
		return nil, err
	}
	var objects []load.SmallObject
	own := load.RejectsName(o.job.RunID)
	if letters != nil {
		objects = append(objects, load.SmallObject{Name: own, Data: letters})
	}
	if !o.job.Full {
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

// wholeManifest returns the manifest of the new and the kept parts, with the
// columns of both.
func (o *dataset) wholeManifest(columns []schemas.Column, kept, fresh []load.Part) load.Manifest {
	m := o.newManifest(columns, o.snapshot.Windows, false)
	m.Parts = slices.Concat(kept, fresh)
	if m.Changes = o.snapshot.Changes; m.Changes == nil && o.manifest != nil && !o.job.Full {
		m.Changes = o.manifest.Changes
	}
	m.Watermark = o.snapshot.Interval.Watermark(o.job.Def.Extract, o.watermarkBefore())
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	if len(kept) > 0 && !o.out.Exploded() { // a child's columns are always the same
		m.Schema = withOlder(m.Schema, o.manifest.Schema)
	}
	return m
}

// idSets returns the sets of ids to write beside the data. New parts need
// theirs, and so do reused parts that lack one.
func (o *dataset) idSets(parts []*outputPart, reuse load.Reuse) (sets []load.IDSet) {
	wanted := make(map[string]bool, len(reuse.New))
	for _, p := range reuse.New {
		wanted[p.Name] = true
	}
	for _, p := range reuse.Duplicates {
		wanted[p.Name] = o.lacks
	}
	for _, p := range parts {
		for i, object := range p.prepared {
			if !wanted[object.Part.Path] || object.Part.Rows == 0 {
				continue
			}
			sets = append(sets, load.IDSet{Name: load.IDsName(object.Part.IDs), Encode: func() ([]byte, error) {
				data, _, err := load.EncodeIDs(idsBetween(p.windows, p.spans[i].from, p.spans[i].to))
				return data, err
			}})
		}
	}
	return sets
}

// supersededSets returns the names of the id sets that only the parts in old
// needed.
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

// watermarkBefore returns the watermark that this run continues. It is zero if
// the run replaces a dataset of other results.
func (o *dataset) watermarkBefore() load.WallTime {
	if o.manifest == nil || o.job.Full && o.changed() != nil {
		return load.WallTime{}
	}
	return o.manifest.Watermark
}
