package output

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// stage encodes the parts, several at a time, and builds the commit that publishes them.
func (o *dataset) stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	columns, _, err := o.ownColumns(ctx, s.Windows)
	if err != nil {
		return nil, err
	}
	parts := o.parts(s)
	if err := o.stageParts(ctx, parts, columns); err != nil {
		return nil, err
	}
	letters, err := o.deadLetters(parts)
	if err != nil {
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
	commit := load.Commit{
		RunID: o.job.RunID, Manifest: m, Base: o.base, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded,
		Beside: append(o.idSets(parts, reuse), letters...), SupersededBeside: supersededSets(old, m.Parts), Hook: o.hook,
	}
	oldLetters, err := o.supersededLetters(ctx, m.Parts)
	if err != nil {
		return nil, err
	}
	commit.SupersededBeside = append(commit.SupersededBeside, oldLetters...)
	var report Report
	report.holds(&m)
	if len(letters) > 0 {
		report.DeadLetters = o.Path + load.RejectsFolder + "/"
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: s.Stats, Adds: len(kept) > 0}
	return &stagedOutput{
		report: report,
		record: func(ctx context.Context) (func(context.Context) error, error) { return o.record(ctx, commit) },
	}, nil
}

// stageParts stages the parts, several at a time.
func (o *dataset) stageParts(ctx context.Context, parts []*outputPart, columns []schemas.Column) error {
	group, encoding := errgroup.WithContext(ctx)
	group.SetLimit(cap(o.job.Encoders))
	for _, part := range parts {
		group.Go(func() error {
			return o.job.Encoders.Hold(encoding, func() error { return o.prepare(encoding, part, columns) })
		})
	}
	err := group.Wait()
	for _, part := range parts {
		for _, object := range part.prepared {
			o.staged = append(o.staged, object.Prepared)
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

// deadLetters gives each part what was rejected in its windows. The first object of the
// part has it, in which Part.Rejected counts it.
func (o *dataset) deadLetters(parts []*outputPart) (letters []load.PartObject, err error) {
	for _, p := range parts {
		lines, err := o.letters(p)
		if err != nil {
			return nil, err
		}
		if lines == nil {
			continue
		}
		sum := sha256.Sum256(lines)
		digest := hex.EncodeToString(sum[:])
		p.prepared[0].Part.Letters = digest
		letters = append(letters, load.PartObject{Name: load.RejectsName(digest), Encode: func() ([]byte, error) { return lines, nil }})
	}
	return letters, nil
}

// supersededLetters returns the names of the dead letters that no part has any more, also
// of those that a run left that died before its commit.
func (o *dataset) supersededLetters(ctx context.Context, now []load.Part) ([]string, error) {
	listed, err := o.dest.List(ctx, load.RejectsFolder+"/")
	needed := make(map[string]bool, len(now))
	for _, p := range now {
		needed[load.RejectsName(p.Letters)] = true
	}
	return slices.DeleteFunc(load.NamesOf(listed), func(name string) bool {
		return needed[name] || !load.IsRejectsName(name)
	}), err
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
func (o *dataset) idSets(parts []*outputPart, reuse load.Reuse) (sets []load.PartObject) {
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
			sets = append(sets, load.PartObject{Name: load.IDsName(object.Part.IDs), Encode: func() ([]byte, error) {
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
