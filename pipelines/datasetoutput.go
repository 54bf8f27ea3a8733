package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// datasetOutput is a dataset of parts. A part is encoded and prepared by the
// worker that read the last of its windows.
type datasetOutput struct {
	encoding
	place
	manifest   *load.Manifest // of the last run, nil if there was none
	base       string         // its version
	generation int

	// Written while no window is read.
	parts map[*windowRun]*datasetPart
	list  []*datasetPart // in order
}

func (f *formRun) openDataset(ctx context.Context, def Output, path string) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	o := &datasetOutput{encoding: e, generation: 1, parts: map[*windowRun]*datasetPart{}}
	if o.place, err = f.openPlace(ctx, def, path, path, ""); err != nil {
		return nil, err
	}
	if err := o.lookBack(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	return o, nil
}

// lookBack finishes what a dead run left, reads the manifest and checks that
// the definition still fits it.
func (o *datasetOutput) lookBack(ctx context.Context) error {
	if err := o.recover(ctx, o.f.log, ""); err != nil {
		return err
	}
	m, version, err := load.ReadManifest(ctx, o.dest, load.ManifestName)
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	o.manifest, o.base = m, version
	o.generation = load.NextGeneration(m.Parts)
	if o.f.o.Full {
		return nil
	}
	was, is := m.Source, o.f.source()
	if was == nil {
		was = is
	}
	for _, c := range []struct{ what, was, is string }{
		{"format", m.Format, o.format.Name},
		{"form", m.Form, o.f.form},
		{"account", was.Account, is.Account},
		{"timezone", was.Timezone, is.Timezone},
		{"view", cmp.Or(was.View, "none"), cmp.Or(is.View, "none")},
		{"search", cmp.Or(was.Search, "none"), cmp.Or(is.Search, "none")},
	} {
		if c.was != c.is {
			return &DatasetChangedError{Path: o.path, What: c.what, Was: c.was, Is: c.is}
		}
	}
	return o.checkPartition(m.Parts)
}

// checkPartition refuses to mix parts of two partitions in one dataset.
func (o *datasetOutput) checkPartition(parts []load.Part) error {
	partition := string(o.out.Partition)
	for _, p := range parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil {
			continue // not named by us
		}
		want := load.UndatedDT(partition)
		if !key.Undated {
			want = load.DTValue(partition, last(key.To), key.To)
		}
		if key.DT != want {
			return &DatasetChangedError{Path: o.path, What: "partition", Was: partitionOf(key), Is: cmp.Or(partition, string(PartitionNone))}
		}
	}
	return nil
}

// partitionOf is the partition that a part's name speaks of.
func partitionOf(key load.PartKey) string {
	if key.DT == "" {
		return string(PartitionNone)
	}
	for _, p := range []Partition{PartitionDay, PartitionMonth, PartitionYear} {
		if !key.Undated && load.DTValue(string(p), last(key.To), key.To) == key.DT {
			return string(p)
		}
	}
	return "dt=" + key.DT
}

// widen extends a range to the whole parts that it touches; where the dataset
// is replaced whole, to all of them.
func (o *datasetOutput) widen(w extract.Window) extract.Window {
	if o.manifest == nil {
		return w
	}
	_, rest, whole := load.Intersecting(o.manifest.Parts, wallRange(w))
	if o.f != nil && o.f.o.Full {
		for _, p := range rest {
			if p.Undated {
				continue
			}
			if p.From.IsZero() || !whole.From.IsZero() && p.From.Before(whole.From.Time) {
				whole.From = p.From
			}
			if whole.To.Before(p.To.Time) {
				whole.To = p.To
			}
		}
	}
	return extract.Window{From: whole.From.Time, To: whole.To.Time}
}

// hasUndated tells whether an earlier run left results without a date.
func (o *datasetOutput) hasUndated() bool {
	return o.manifest != nil && slices.ContainsFunc(o.manifest.Parts, func(p load.Part) bool { return p.Undated })
}

// windowRead prepares the window's part if all its windows are there.
func (o *datasetOutput) windowRead(ctx context.Context, w *windowRun) error {
	p := o.parts[w]
	p.mu.Lock()
	defer p.mu.Unlock()
	reading, complete := o.f.latest(p.windows)
	if !complete || reading == p.reading {
		return nil // another worker comes, or came
	}
	if err := o.prepare(ctx, p, o.f.columns(p.windows)); err != nil {
		return err
	}
	p.reading = reading
	return nil
}

// latest is the number of the last reading of the windows, and tells whether
// all of them are there.
func (f *formRun) latest(windows []*windowRun) (reading int, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range windows {
		if !w.done {
			return 0, false
		}
		reading = max(reading, w.readAt)
	}
	return reading, true
}

// prepare encodes a part and makes it durable, not yet visible. What an
// earlier reading had prepared is dropped.
func (o *datasetOutput) prepare(ctx context.Context, p *datasetPart, columns []schemas.Column) error {
	if p.prepared != nil {
		if err := o.drop(ctx, p.prepared.Prepared); err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
		p.prepared = nil
	}
	rows, lowest, highest := rowsOf(p.windows)
	if rows == 0 {
		return nil
	}
	name := o.nameOf(p)
	prepared, err := o.stage(ctx, o.dest, name, columns, p.windows, p)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	part := load.Part{
		Path: name, From: load.Wall(p.from), To: load.Wall(p.to), Undated: p.undated,
		Rows: rows, MinID: lowest, MaxID: highest, Bytes: prepared.Bytes, SHA256: prepared.SHA256,
	}
	p.prepared, p.columns = &load.PreparedPart{Part: part, Prepared: prepared}, manifestColumns(columns)
	return nil
}

// unify encodes the parts again that do not have all columns of the run: a
// late column turned up in another part. So all parts of a run have one
// schema, and a rerun, which knows the column from the beginning, gives the
// same bytes.
func (o *datasetOutput) unify(ctx context.Context, columns []schemas.Column) error {
	listed := manifestColumns(columns)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.f.def.Source.Requests.Concurrency)
	for _, p := range o.list {
		if p.prepared == nil || slices.Equal(p.columns, listed) {
			continue
		}
		group.Go(func() error { return o.prepare(ctx, p, columns) })
	}
	return group.Wait()
}

func (o *datasetOutput) nameOf(p *datasetPart) string {
	key := load.PartKey{Generation: o.generation, Extension: o.extension()}
	partition := string(o.out.Partition)
	if p.undated {
		key.Undated, key.DT = true, load.UndatedDT(partition)
		return load.PartName(key)
	}
	key.From, key.To = p.from, p.to
	key.DT = load.DTValue(partition, last(p.to), p.to)
	return load.PartName(key)
}

func (o *datasetOutput) commit(ctx context.Context) (OutputReport, error) {
	report, err := o.publish(ctx)
	if err == nil || mustStay(err) {
		o.list = nil // the next run finishes what is recorded, and needs what is staged
	}
	if err != nil {
		return report, fmt.Errorf("%s: %w", o.path, err)
	}
	return report, nil
}

func (o *datasetOutput) publish(ctx context.Context) (OutputReport, error) {
	f := o.f
	columns := f.columns(f.windows)
	if err := o.unify(ctx, columns); err != nil {
		return OutputReport{}, err
	}
	var fresh []load.PreparedPart
	for _, p := range o.list {
		if p.prepared != nil {
			fresh = append(fresh, *p.prepared)
		}
	}
	old, kept := o.replaced()
	reuse := load.ReuseParts(old, fresh)
	m := o.wholeManifest(columns, kept, reuse.Parts)
	commit := load.DatasetCommit{RunID: f.o.RunID, Manifest: m, Base: o.base, New: reuse.New, Superseded: reuse.Superseded}
	letters, err := deadLetters(f.windows)
	if err != nil {
		return OutputReport{}, err
	}
	if letters != nil {
		commit.Objects = []load.SmallObject{{Name: load.RejectsName(f.o.RunID), Data: letters}}
	}
	if err := errors.Join(o.drop(ctx, reuse.Duplicates...), o.held()); err != nil {
		return OutputReport{}, err
	}
	ctx, cancel := lingering(ctx, commitGrace)
	defer cancel()
	report := OutputReport{Rows: m.Rows, Parts: len(m.Parts)}
	for _, p := range m.Parts {
		report.Bytes += p.Bytes
	}
	return report, commit.Do(ctx, o.dest)
}

// wholeManifest is the whole dataset's: the columns of the parts that stay
// stay too.
func (o *datasetOutput) wholeManifest(columns []schemas.Column, kept, fresh []load.Part) load.Manifest {
	m := o.newManifest(columns, o.f.windows, false)
	m.Parts = slices.Concat(kept, fresh)
	m.Watermark = o.watermark()
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	if len(kept) == 0 {
		return m
	}
	for _, c := range o.manifest.Schema {
		if !slices.ContainsFunc(m.Schema, func(d load.Column) bool { return d.From == c.From }) {
			m.Schema = append(m.Schema, c)
		}
	}
	return m
}

// watermark is the time up to which the dataset holds results without a gap.
// It never falls, rises only if the run began at or before it, and does not
// run ahead of the clock: of a range that ends in the future the results are
// still to come.
func (o *datasetOutput) watermark() load.WallTime {
	to, from := load.Wall(earlier(o.f.rng.To, o.f.settled)), load.Wall(o.f.rng.From)
	if o.manifest == nil || o.manifest.Watermark.IsZero() || o.f.o.Full {
		return to
	}
	before := o.manifest.Watermark
	if !from.IsZero() && from.After(before.Time) || to.Before(before.Time) {
		return before
	}
	return to
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// replaced divides the old parts into those that this run's take the place of
// and those that stay.
func (o *datasetOutput) replaced() (old, kept []load.Part) {
	if o.manifest == nil {
		return nil, nil
	}
	if o.f.o.Full {
		return o.manifest.Parts, nil
	}
	hit, rest, _ := load.Intersecting(o.manifest.Parts, wallRange(o.f.rng))
	for _, p := range rest {
		if p.Undated && o.f.wantsUndated() {
			hit = append(hit, p)
		} else {
			kept = append(kept, p)
		}
	}
	return hit, kept
}

// close drops what is staged and not committed, and gives the lease back.
func (o *datasetOutput) close(ctx context.Context) error {
	var staged []load.Prepared
	for _, p := range o.list {
		if p.prepared != nil {
			staged = append(staged, p.prepared.Prepared)
		}
	}
	return errors.Join(o.drop(ctx, staged...), o.release(ctx))
}
