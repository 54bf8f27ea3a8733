package pipelines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// partTarget is how many results a part takes in, where counts tell: windows
// that follow each other share a part up to here.
const partTarget = 1_000_000

// datasetOutput is a dataset of parts. A part is encoded and prepared by the
// worker that read the last of its windows.
type datasetOutput struct {
	encoding
	path       string
	dest       load.Destination
	lease      load.Lease
	manifest   *load.Manifest // of the last run, nil if there was none
	base       string         // its version
	generation int

	parts map[*windowRun]*datasetPart
	list  []*datasetPart // in order
}

// datasetPart is one part of the run: the windows that share an object.
type datasetPart struct {
	windows  []*windowRun
	from, to time.Time
	undated  bool
	n        int

	mu       sync.Mutex
	prepared *load.PreparedPart // nil before, and where there are no rows
}

func (f *formRun) openDataset(ctx context.Context, def Output) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	expanded, err := ExpandPath(def.Path, pathValues(f.def, f.form, f.o.RunID))
	if err != nil {
		return nil, err
	}
	o := &datasetOutput{encoding: e, path: expanded, generation: 1, parts: map[*windowRun]*datasetPart{}}
	if o.dest, err = f.o.Tables.Open(ctx, expanded, def); err != nil {
		return nil, err
	}
	if o.lease, err = f.acquire(ctx, o.dest, ""); err != nil {
		return nil, err
	}
	if err := o.recover(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	return o, nil
}

// recover finishes what a dead run left and reads the manifest.
func (o *datasetOutput) recover(ctx context.Context) error {
	if _, err := load.Recover(ctx, o.dest, ""); err != nil {
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
	if m.Format != o.format.Name && !o.f.o.Full {
		return &DatasetChangedError{Path: o.path, What: "format", Was: m.Format, Is: o.format.Name}
	}
	return o.checkPartition(m.Parts)
}

// checkPartition refuses to mix parts of two partitions in one dataset.
func (o *datasetOutput) checkPartition(parts []load.Part) error {
	if o.f.o.Full {
		return nil
	}
	for _, p := range parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil || p.Undated {
			continue
		}
		if want := load.DTValue(string(o.out.Partition), key.To.Add(-time.Second), key.To); key.DT != want {
			return &DatasetChangedError{Path: o.path, What: "partition", Was: "dt=" + key.DT, Is: "dt=" + want}
		}
	}
	return nil
}

func wallRange(w extract.Window) load.Range {
	return load.Range{From: load.Wall(w.From), To: load.Wall(w.To)}
}

// widen extends a range to the whole parts that it touches.
func (o *datasetOutput) widen(w extract.Window) extract.Window {
	if o.manifest == nil {
		return w
	}
	_, _, whole := load.Intersecting(o.manifest.Parts, wallRange(w))
	return extract.Window{From: whole.From.Time, To: whole.To.Time}
}

// divide assigns windows to parts: within a partition, windows that follow
// each other share one until it is large. A window that counts show empty is
// in no part; if it must be read after all it is planned anew.
func (o *datasetOutput) divide(windows []*windowRun) {
	unit := o.out.Partition.unit()
	var at *datasetPart
	var rows int64
	for _, w := range windows {
		p := w.planned
		if p.Count == 0 {
			at = nil
			continue
		}
		same := at != nil && (unit == extract.UnitNone || unit.Start(last(at.to)).Equal(unit.Start(last(p.Window.To))))
		if !same || rows+max(0, p.Count) > partTarget && rows > 0 {
			at, rows = &datasetPart{from: p.Window.From}, 0
			o.list = append(o.list, at)
		}
		at.windows = append(at.windows, w)
		at.to = p.Window.To
		rows += max(0, p.Count)
		o.parts[w] = at
	}
}

// last is the last second of a window that ends at to.
func last(to time.Time) time.Time { return to.Add(-time.Second) }

// addUndated adds the part of the results without a date.
func (o *datasetOutput) addUndated(w *windowRun) {
	p := &datasetPart{windows: []*windowRun{w}, undated: true}
	o.list = append(o.list, p)
	o.parts[w] = p
}

// windowRead prepares the window's part if all its windows are there.
func (o *datasetOutput) windowRead(ctx context.Context, w *windowRun) error {
	p := o.parts[w]
	p.mu.Lock()
	defer p.mu.Unlock()
	if !o.f.complete(p.windows) {
		return nil
	}
	if p.prepared != nil { // a window was read again
		if err := o.dest.Abort(ctx, p.prepared.Prepared); err != nil {
			return err
		}
		p.prepared = nil
	}
	return o.prepare(ctx, p)
}

// complete tells whether all windows were read, or need not be.
func (f *formRun) complete(windows []*windowRun) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range windows {
		if !w.done && w.planned.Count != 0 {
			return false
		}
	}
	return true
}

// prepare encodes a part and makes it durable, not yet visible.
func (o *datasetOutput) prepare(ctx context.Context, p *datasetPart) error {
	rows, lowest, highest := rowsOf(p.windows)
	if rows == 0 {
		return nil
	}
	name, window := o.name(p)
	columns := o.f.columns(p.windows)
	prepared, err := o.stage(ctx, o.dest, name, columns, p.windows, window)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	part := load.Part{
		Path: name, From: load.Wall(p.from), To: load.Wall(p.to), Undated: p.undated,
		Rows: rows, MinID: lowest, MaxID: highest, Bytes: prepared.Bytes, SHA256: prepared.SHA256,
	}
	p.prepared = &load.PreparedPart{Part: part, Prepared: prepared}
	return nil
}

func (o *datasetOutput) name(p *datasetPart) (name, window string) {
	key := load.PartKey{Generation: o.generation, Extension: o.extension(), N: p.n}
	partition := string(o.out.Partition)
	if p.undated {
		key.Undated, key.DT = true, load.UndatedDT(partition)
		return load.PartName(key), "undated"
	}
	key.From, key.To = p.from, p.to
	key.DT = load.DTValue(partition, p.to.Add(-time.Second), p.to)
	return load.PartName(key), footerWindow(p.from, p.to)
}

func (o *datasetOutput) commit(ctx context.Context) (OutputReport, error) {
	f := o.f
	report := OutputReport{Path: o.path}
	var fresh []load.PreparedPart
	for _, p := range o.list {
		if p.prepared != nil {
			fresh = append(fresh, *p.prepared)
		}
	}
	old, kept := o.replaced()
	reuse := load.ReuseParts(old, fresh)
	columns := f.columns(f.windows)
	m := o.wholeManifest(columns, append(kept, reuse.Parts...))
	commit := load.DatasetCommit{RunID: f.o.RunID, Manifest: m, Base: o.base, New: reuse.New, Superseded: reuse.Superseded}
	letters, err := deadLetters(f.windows)
	if err != nil {
		return report, err
	}
	if letters != nil {
		commit.Objects = []load.SmallObject{{Name: load.RejectsName(f.o.RunID), Data: letters}}
	}
	err = abortUnlessRecorded(ctx, o.dest, nil, reuse.Duplicates...)
	if err == nil {
		err = commit.Do(ctx, o.dest)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", o.path, err)
		var c *load.CommitError
		if errors.As(err, &c) && c.Recorded {
			o.list = nil // the next run finishes it and needs what is staged
		}
		return report, err
	}
	o.list = nil
	report.Rows, report.Parts = m.Rows, len(m.Parts)
	for _, p := range m.Parts {
		report.Bytes += p.Bytes
	}
	return report, nil
}

// wholeManifest is the whole dataset's: the columns of earlier runs stay, since
// their parts do.
func (o *datasetOutput) wholeManifest(columns []schemas.Column, parts []load.Part) load.Manifest {
	m := o.newManifest(columns)
	m.Parts = parts
	m.Watermark = o.watermark()
	for _, p := range parts {
		m.Rows += p.Rows
	}
	return m
}

// watermark is the time up to which the dataset holds results without a gap.
// It never falls, and rises only if the run began at or before it.
func (o *datasetOutput) watermark() load.WallTime {
	to, from := load.Wall(o.f.rng.To), load.Wall(o.f.rng.From)
	if o.manifest == nil || o.manifest.Watermark.IsZero() {
		return to
	}
	before := o.manifest.Watermark
	if !from.IsZero() && from.After(before.Time) || to.Before(before.Time) {
		return before
	}
	return to
}

// replaced divides the old parts into those that this run's take the place of
// and those that stay.
func (o *datasetOutput) replaced() (old, kept []load.Part) {
	if o.manifest == nil {
		return nil, nil
	}
	hit, rest, _ := load.Intersecting(o.manifest.Parts, wallRange(o.f.rng))
	for _, p := range rest {
		if p.Undated && o.f.everything() {
			hit = append(hit, p)
		} else {
			kept = append(kept, p)
		}
	}
	return hit, kept
}

// close drops what is staged and not committed, and gives the lease back.
func (o *datasetOutput) close(ctx context.Context) error {
	var failures []error
	for _, p := range o.list {
		if p.prepared != nil {
			failures = append(failures, o.dest.Abort(ctx, p.prepared.Prepared))
		}
	}
	if o.lease != nil {
		failures = append(failures, o.lease.Release(ctx))
	}
	return errors.Join(failures...)
}
