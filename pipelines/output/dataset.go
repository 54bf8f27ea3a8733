package output

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// dataset is an output that consists of parts.
type dataset struct {
	*place
	inventory load.Inventory // the objects at the destination when the run began
	lacks     atomic.Bool    // set if the set of ids of a part is damaged or missing
}

func (o *dataset) set() *dataset { return o }

func (o *dataset) open(ctx context.Context) error { return o.openAndLook(ctx, o.lookAround) }

// lookAround compares the parts at the destination with the manifest and
// chooses a generation for new parts that none of the present parts has.
func (o *dataset) lookAround(ctx context.Context) (err error) {
	if o.inventory, err = load.TakeInventory(ctx, o.dest, o.manifest); err != nil {
		return err
	}
	o.generation = load.NextGeneration(o.manifest, o.inventory.Unlisted)
	return nil
}

// fits returns the columns in the dataset's manifest, which this run begins with. It returns
// an error if the dataset does not match the definition or holds parts that its manifest does
// not list. In a full run it returns neither, because that replaces any dataset.
func (o *dataset) fits() ([]schemas.Column, error) {
	if o.job.Full {
		return nil, nil
	}
	if err := o.belongs(); err != nil {
		return nil, err
	}
	return o.earlierColumns()
}

// belongs returns an error if the dataset is not the one that the definition describes,
// or holds parts that its manifest does not list.
func (o *dataset) belongs() error {
	if err := o.redefined(); err != nil {
		return err
	}
	return Unlisted(o.job.Def, o.Path, o.manifest, o.inventory)
}

// redefined returns an error if the definition now describes the dataset differently.
func (o *dataset) redefined() error {
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
			return o.changed("the "+c.what+" of the dataset", c.was, c.is, "")
		}
	}
	for _, p := range m.Parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil {
			continue // formetl did not write a part with such a name
		}
		if key.DT != load.DTValue(string(o.out.Partition), key.To) {
			is := cmp.Or(o.out.Partition, definition.PartitionNone)
			return o.changed("the partition of the dataset", partitionOf(key), string(is), "")
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
func (o *dataset) stage(ctx context.Context, s *reconcile.Snapshot) error {
	o.snapshot = s
	columns, _, err := o.ownColumns(ctx, s.Windows)
	if err != nil {
		return err
	}
	parts := o.parts(s)
	if err := o.stageParts(ctx, parts, columns); err != nil {
		return err
	}
	letters, err := o.deadLetters(parts)
	if err != nil {
		return err
	}
	var fresh []load.PreparedPart
	for _, p := range parts {
		if p.prepared != nil {
			fresh = append(fresh, *p.prepared)
		}
	}
	replaced, kept := s.Replaced.Divide(o.manifest)
	reuse, err := o.reuse(ctx, replaced, fresh)
	if err != nil {
		return err
	}
	if err := load.AbortAll(ctx, o.dest, reuse.Duplicates...); err != nil {
		return err
	}
	m := o.wholeManifest(columns, kept, reuse.Parts)
	o.commit = load.Commit{
		RunID: o.job.RunID, Manifest: m, Base: o.base, New: reuse.New,
		Beside: append(o.idSets(parts, reuse), letters...), Hook: o.hook,
	}
	if o.job.Full {
		o.commit.Remove = load.NamesOf(o.inventory.Unlisted)
	}
	o.staging = o.report
	o.staging.holds(&m)
	if len(letters) > 0 {
		o.staging.DeadLetters = o.Path + load.RejectsFolder + "/"
	}
	o.book = codebookFacts{columns: m.Schema, stats: s.Stats, adds: len(kept) > 0}
	return nil
}

// deadLetters returns the objects with the dead letters of the parts: the results that were
// rejected in their windows. It notes each object's digest in its part.
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
		p.prepared.Part.Letters = digest
		letters = append(letters, load.PartObject{Name: load.RejectsName(digest), Encode: func() ([]byte, error) { return lines, nil }})
	}
	return letters, nil
}

// wholeManifest returns the manifest of the new and the kept parts. This run has every column
// of the kept ones; see keepsColumns.
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
	return m
}

// idSets returns the sets of ids to write beside the data: those of new parts, and those of
// reused parts whose set is missing or damaged.
func (o *dataset) idSets(parts []*outputPart, reuse load.Reuse) (sets []load.PartObject) {
	wanted := make(map[string]bool, len(reuse.New))
	for _, p := range reuse.New {
		wanted[p.Name] = true
	}
	for _, p := range reuse.Duplicates {
		wanted[p.Name] = o.lacks.Load()
	}
	for _, p := range parts {
		if p.prepared == nil || !wanted[p.prepared.Part.Path] || p.prepared.Part.Rows == 0 {
			continue
		}
		sets = append(sets, load.PartObject{Name: load.IDsName(p.prepared.Part.IDs), Encode: func() ([]byte, error) {
			return idset.Encode(p.ids()), nil
		}})
	}
	return sets
}

// watermarkBefore returns the watermark that this run continues. It is zero if
// the run replaces a dataset of other results.
func (o *dataset) watermarkBefore() load.WallTime {
	if o.manifest == nil || o.job.Full && o.redefined() != nil {
		return load.WallTime{}
	}
	return o.manifest.Watermark
}

// reuse compares the run's new parts with the parts that they replace, to reuse older parts
// that are equal. It never reuses a part that does not match its manifest, because it has
// another size or other bytes. A full run reuses no part.
func (o *dataset) reuse(ctx context.Context, replaced []load.Part, fresh []load.PreparedPart) (load.Reuse, error) {
	if o.job.Full {
		return load.ReuseParts(nil, fresh), nil
	}
	sound := o.inventory.Sound(replaced)
	r := load.ReuseParts(sound, fresh)
	changed, err := o.changedBytes(ctx, sound, r.Parts)
	if err != nil || len(changed) == 0 {
		return r, err
	}
	sound = slices.DeleteFunc(sound, func(p load.Part) bool { return slices.Contains(changed, p.Path) })
	return load.ReuseParts(sound, fresh), nil
}

// changedBytes returns the paths of the parts that are in both sound and parts, and whose bytes
// do not match the manifest. It also notes in lacks whether one of them lacks its set of ids.
func (o *dataset) changedBytes(ctx context.Context, sound, parts []load.Part) ([]string, error) {
	there := make(map[string]bool, len(sound))
	for _, p := range sound {
		there[p.Path] = true
	}
	reused := slices.DeleteFunc(slices.Clone(parts), func(p load.Part) bool { return !there[p.Path] })
	changed := make([]string, len(reused))
	err := eachPart(ctx, reused, func(ctx context.Context, i int, p load.Part) error {
		_, sum, err := load.Digest(ctx, o.dest, p.Path)
		if err == nil && sum != p.SHA256 || errors.Is(err, load.ErrNotExist) {
			changed[i], err = p.Path, nil
		}
		if err == nil && p.IDs != "" {
			if _, err = o.idsOf(ctx, p); errors.Is(err, idset.ErrDamaged) {
				err = nil
			}
		}
		return err
	})
	return slices.DeleteFunc(changed, func(path string) bool { return path == "" }), err
}

// Reset says what ResetWatermark did to a dataset.
type Reset struct {
	Before, After load.WallTime // the watermark; equal if it did not change
	// Recovery is the recorded commit that ResetWatermark finished first.
	Recovery load.Recovery
}

// ResetWatermark sets the watermark of a dataset back to a time, or to none if
// the time is zero. It holds the dataset's lease meanwhile, and first finishes
// a recorded commit.
func ResetWatermark(ctx context.Context, job *Job, out definition.Output, to load.WallTime) (r Reset, err error) {
	opened, ok := newOutput(job, out).(continued)
	if !ok {
		return r, fmt.Errorf("%s: it has no watermark", out.Path) // a bug: the caller chooses datasets
	}
	if err := opened.open(ctx); err != nil {
		return r, err
	}
	o := opened.set()
	defer func() { err = errors.Join(err, o.close(context.WithoutCancel(ctx))) }()
	r.Recovery = o.recovered
	if o.manifest != nil {
		r.Before, r.After = o.manifest.Watermark, o.manifest.Watermark
	}
	if err := o.belongs(); err != nil || o.manifest == nil {
		return r, err
	}
	if err := o.held(); err != nil {
		return r, err
	}
	if o.table == nil {
		_, err = load.ResetWatermark(ctx, o.dest, to)
	} else {
		var changed bool
		if changed, err = o.manifest.ResetWatermark(to); changed {
			err = o.table.Amend(ctx, o.manifest, o.base)
		}
	}
	if err != nil {
		return r, o.named(err)
	}
	r.After = to
	return r, nil
}

// Unlisted returns an error if an inventory found parts that the dataset's manifest m, nil for
// none, does not list. If a run added parts beside them, readers that find parts by a glob could
// see rows twice. path is the dataset's address.
func Unlisted(def *definition.Definition, path string, m *load.Manifest, i load.Inventory) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	what, cure := "that no manifest lists", fmt.Sprintf("if nobody needs these files, remove them with `%s`; or replace the whole dataset with", def.Command("clean", "--unlisted"))
	if m == nil {
		what, cure = "but no "+load.ManifestName, "restore the manifest, or replace all parts with"
	}
	return &definition.Fault{
		Code: 73,
		Text: fmt.Sprintf("%s contains %s %s, and a run does not write beside such files: %s",
			path, plain.Plural(len(i.Unlisted), "part"), what, plain.Few(load.NamesOf(i.Unlisted), mostNames)),
		Cure: fmt.Sprintf("%s `%s`, without results that the service has deleted", cure, def.Command("run", "--full")),
	}
}

// mostNames is how many parts an error names at most.
const mostNames = 3
