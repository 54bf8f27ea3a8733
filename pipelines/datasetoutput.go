package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// datasetOutput is a dataset of parts. A part is encoded and prepared by the
// worker that read the last of its windows.
type datasetOutput struct {
	encoding
	place
	codebookFacts
	manifest   *load.Manifest // of the last run, nil if there was none
	base       string         // its version
	inventory  load.Inventory // what lay there when the run began
	generation int

	left    *load.Journal        // of a run that ended early, nil if there is none
	records []load.JournalRecord // of it
	// finished tells that this run finished that one's commit: nothing of it is
	// left to do here.
	finished bool

	journaling sync.Mutex
	journal    *load.Journal // of this run, nil before its first part is prepared

	// Written while no window is read.
	lacks bool // the set of ids of a part is damaged or missing
	parts map[*windowRun]*datasetPart
	list  []*datasetPart // in order
}

func (f *formRun) openDataset(ctx context.Context, def definition.Output, path string) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	o := &datasetOutput{encoding: e, generation: 1, parts: map[*windowRun]*datasetPart{}}
	if o.place, err = f.openPlace(ctx, def, path, path, ""); err != nil {
		return nil, err
	}
	if err := o.lookBack(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx), true))
	}
	f.tellOrphans(ctx, def, path, o.manifest)
	return o, nil
}

// lookBack reads the journal of a run that ended early, finishes its commit if
// that had begun, and reads the manifest.
func (o *datasetOutput) lookBack(ctx context.Context) error {
	if err := o.readJournal(ctx); err != nil {
		return err
	}
	recovered, err := o.recover(ctx, o.f, "")
	if err != nil {
		return err
	}
	if o.left != nil && recovered.RunID == o.left.RunID {
		// Its end was the journal's too; what stands in it is still of use.
		if o.finished = recovered.Finished; !o.finished {
			o.left, o.records = nil, nil
		}
	}
	m, version, err := manifestAt(ctx, o.dest, load.ManifestName, o.out)
	switch {
	case err == nil:
		o.manifest, o.base = m, version
	case !errors.Is(err, load.ErrNotExist):
		return fmt.Errorf("%s: %w", o.path, err)
	}
	if err := o.lookAround(ctx); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	if o.finished {
		o.book = o.finishedFacts()
		o.records = nil
	}
	return nil
}

// lookAround compares what lies there with the manifest, and finds a generation
// that no part there has.
func (o *datasetOutput) lookAround(ctx context.Context) (err error) {
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

// fits tells whether the definition is still that of the dataset, and nothing
// lies there that its manifest does not know, or replaces it.
func (o *datasetOutput) fits() error {
	if o.f.full {
		return nil
	}
	if err := o.changed(); err != nil {
		return err
	}
	return o.inventory.Err(o.path)
}

// changed tells whether the dataset holds what the definition no longer says.
func (o *datasetOutput) changed() error {
	m := o.manifest
	if m == nil {
		return nil
	}
	was, is := m.Source, o.f.source()
	if was == nil {
		was = is
	}
	for _, c := range []struct{ what, was, is string }{
		{"format", m.Format, o.format.Name},
		{"csv profile", cmp.Or(m.Profile, strictProfile), cmp.Or(o.out.Profile, strictProfile)},
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
			return &DatasetChangedError{Path: o.path, What: "partition", Was: partitionOf(key), Is: cmp.Or(partition, string(definition.PartitionNone))}
		}
	}
	return nil
}

// partitionOf is the partition that a part's name speaks of.
func partitionOf(key load.PartKey) string {
	if key.DT == "" {
		return string(definition.PartitionNone)
	}
	for _, p := range []definition.Partition{definition.PartitionDay, definition.PartitionMonth, definition.PartitionYear} {
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
	if o.f != nil && o.f.full {
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
	if err := o.held(); err != nil {
		return err
	}
	p := o.parts[w]
	p.mu.Lock()
	defer p.mu.Unlock()
	reading, complete := o.f.latest(p.windows)
	if !complete || reading == p.reading {
		return nil // another worker comes, or came
	}
	columns, err := o.shownSoFar(p.windows, o.manifest)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	if err := o.prepare(ctx, p, columns); err != nil {
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
