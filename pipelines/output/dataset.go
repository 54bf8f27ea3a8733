package output

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// dataset is an output that consists of parts.
type dataset struct {
	*place
	inventory  load.Inventory // the objects there when the run began
	generation int
	lacks      bool // the set of ids of a part is damaged or missing
}

// lookAround compares the parts at the destination with the manifest and
// chooses a generation that none of them has.
func (o *dataset) lookAround(ctx context.Context) (err error) {
	if o.inventory, err = load.TakeInventory(ctx, o.dest, o.manifest); err != nil {
		return err
	}
	var parts []load.Part
	if o.manifest != nil {
		parts = slices.Clone(o.manifest.Parts)
	}
	for _, object := range o.inventory.Unlisted {
		parts = append(parts, load.Part{Path: object.Name})
	}
	o.generation = load.NextGeneration(parts)
	return nil
}

// fits returns an error if the dataset does not match the definition or holds parts that
// its manifest does not list. A full run replaces any dataset, so it returns nil then.
func (o *dataset) fits() error {
	if o.job.Full {
		return nil
	}
	if err := o.changed(); err != nil {
		return err
	}
	def := o.job.Def
	return o.inventory.Err(o.Path, def.Command("run", "--full"), def.Command("clean", "--unlisted"))
}

// changed returns an error if the definition now describes the dataset differently.
func (o *dataset) changed() error {
	m := o.manifest
	if m == nil {
		return nil
	}
	was, is := m.Source, o.job.source()
	for _, c := range []struct{ what, was, is string }{
		{"format", m.Format, o.format.Name},
		{"csv profile", cmp.Or(m.Profile, strictProfile), cmp.Or(o.out.Profile, strictProfile)},
		{"form", m.Form, o.job.Form},
		{"account", was.Account, is.Account},
		{"timezone", was.Timezone, is.Timezone},
		{"view", cmp.Or(was.View, "none"), cmp.Or(is.View, "none")},
		{"search", cmp.Or(was.Search, "none"), cmp.Or(is.Search, "none")},
	} {
		if c.was != c.is {
			return &DatasetChangedError{Path: o.Path, What: c.what, Was: c.was, Is: c.is}
		}
	}
	return o.checkPartition(m.Parts)
}

// checkPartition returns an error if a part has another kind of partition than the definition.
func (o *dataset) checkPartition(parts []load.Part) error {
	for _, p := range parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil {
			continue // formetl did not write it
		}
		if key.DT != load.DTValue(string(o.out.Partition), key.To) {
			is := cmp.Or(o.out.Partition, definition.PartitionNone)
			return &DatasetChangedError{Path: o.Path, What: "partition", Was: partitionOf(key), Is: string(is)}
		}
	}
	return nil
}

// partitionOf returns the kind of partition that a part's name shows.
func partitionOf(key load.PartKey) string {
	if key.DT == "" {
		return string(definition.PartitionNone)
	}
	for _, p := range []definition.Partition{definition.PartitionDay, definition.PartitionMonth, definition.PartitionYear} {
		if !key.Undated && load.DTValue(string(p), key.To) == key.DT {
			return string(p)
		}
	}
	return "dt=" + key.DT
}

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
	commit := load.DatasetCommit{
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

// reuse compares the run's new parts with those that they replace, to reuse
// equal ones. It never reuses a part that does not match its manifest: one of another
// size, or with other bytes. A full run reuses none, and removes objects that no
// manifest lists.
func (o *dataset) reuse(ctx context.Context, old []load.Part, fresh []load.PreparedPart) (load.Reuse, error) {
	if o.job.Full {
		r := load.ReuseParts(nil, fresh)
		for _, p := range old {
			r.Superseded = append(r.Superseded, p.Path)
		}
		r.Superseded = append(r.Superseded, load.NamesOf(o.inventory.Unlisted)...)
		return r, nil
	}
	sound, damaged := o.inventory.Sound(old)
	r := load.ReuseParts(sound, fresh)
	changed, err := o.changedBytes(ctx, sound, r.Parts)
	if err != nil {
		return r, err
	}
	if len(changed) > 0 {
		r = load.ReuseParts(slices.DeleteFunc(sound, func(p load.Part) bool { return changed[p.Path] }), fresh)
		for path := range changed {
			r.Superseded = append(r.Superseded, path)
		}
		slices.Sort(r.Superseded)
	}
	for _, p := range damaged {
		r.Superseded = append(r.Superseded, p.Path)
	}
	return r, nil
}

// changedBytes returns the paths of parts of sound that are among parts and whose bytes
// are not those of the manifest. It also notes whether one of them lacks its set of ids.
func (o *dataset) changedBytes(ctx context.Context, sound, parts []load.Part) (map[string]bool, error) {
	opener, ok := o.dest.(load.Opener)
	if !ok {
		return nil, nil
	}
	there := make(map[string]bool, len(sound))
	for _, p := range sound {
		there[p.Path] = true
	}
	differs, lacks := make([]bool, len(parts)), make([]bool, len(parts))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for i, p := range parts {
		if !there[p.Path] {
			continue
		}
		group.Go(func() (err error) {
			if differs[i], err = bytesDiffer(inGroup, opener, p); err != nil || p.IDs == "" {
				return err
			}
			_, err = o.idsOf(inGroup, p)
			lacks[i] = errors.Is(err, load.ErrIDs)
			if lacks[i] {
				err = nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	o.lacks = o.lacks || slices.Contains(lacks, true)
	changed := map[string]bool{}
	for i, p := range parts {
		if differs[i] {
			changed[p.Path] = true
		}
	}
	return changed, nil
}

// bytesDiffer tells whether a part's SHA-256 is not the manifest's.
func bytesDiffer(ctx context.Context, from load.Opener, p load.Part) (bool, error) {
	_, sum, err := load.Digest(ctx, from, p.Path)
	if errors.Is(err, load.ErrNotExist) {
		return true, nil
	}
	return sum != p.SHA256, err
}

// Reset says what ResetWatermark did to a dataset.
type Reset struct {
	Before, After load.WallTime // the watermark; equal if it did not change
	// Recovery is the recorded commit that ResetWatermark finished first.
	Recovery load.Recovery
}

// ResetWatermark sets the watermark of a dataset back to a time, or to none if
// the time is zero. It holds the dataset's lease meanwhile, and first finishes
// a recorded commit. It does nothing if no run has left anything there.
func ResetWatermark(ctx context.Context, job *Job, out definition.Output, to load.WallTime) (r Reset, err error) {
	p, err := job.placeOf(out)
	if err != nil {
		return r, err
	}
	found, err := p.left(ctx)
	if found == nil || err != nil {
		return r, err
	}
	opened, err := p.open(ctx)
	if err != nil {
		return r, err
	}
	o, _ := opened.(*dataset)
	err = o.reset(ctx, found, &r, to)
	return r, errors.Join(err, o.close(context.WithoutCancel(ctx)))
}

// left returns what runs left at a dataset, or nil if they left nothing. It takes no
// lease, because that would create the folder of a dataset that was never written.
func (p *place) left(ctx context.Context) (*load.Found, error) {
	dest, err := p.job.Tables.Open(ctx, p.Root, p.out)
	if err != nil {
		return nil, err
	}
	found, err := load.Look(ctx, dest, "")
	if err != nil && !errors.Is(err, load.ErrNoSweep) {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	_, _, err = dest.Get(ctx, load.ManifestName)
	if errors.Is(err, load.ErrNotExist) && found.Nothing() {
		return nil, nil
	}
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	return &found, nil
}

// reset sets the watermark back and fills in r. Opening the dataset has already
// finished a recorded commit.
func (o *dataset) reset(ctx context.Context, found *load.Found, r *Reset, to load.WallTime) error {
	r.Recovery = load.Recovery{RunID: found.Pending, Finished: o.manifest != nil && o.manifest.RunID == found.Pending}
	if o.manifest != nil {
		r.Before, r.After = o.manifest.Watermark, o.manifest.Watermark
	}
	if err := o.fits(); err != nil || o.manifest == nil {
		return err
	}
	if err := o.held(); err != nil {
		return err
	}
	if _, err := load.ResetWatermark(ctx, o.dest, to); err != nil {
		return o.named(err)
	}
	r.After = to
	return nil
}
