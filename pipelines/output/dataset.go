package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// dataset is a dataset of parts.
type dataset struct {
	encoding
	place
	codebookFacts
	manifest   *load.Manifest // of the last run, nil if there was none
	base       string         // its version
	inventory  load.Inventory // what lay there when the run began
	generation int
	lacks      bool // the set of ids of a part is damaged or missing

	parts []*datasetPart // in order, once they are staged
}

func (j *Job) openDataset(ctx context.Context, def definition.Output, path string) (output, error) {
	e, err := j.encodingOf(def)
	if err != nil {
		return nil, err
	}
	o := &dataset{encoding: e, generation: 1}
	if o.place, err = j.openPlace(ctx, def, path, path, ""); err != nil {
		return nil, err
	}
	if err := o.lookBack(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	j.tellOrphans(ctx, def, path, o.manifest)
	return o, nil
}

// lookBack finishes the commit of a run that ended early, removes what an older
// version of the program left, and reads the manifest.
func (o *dataset) lookBack(ctx context.Context) error {
	if err := o.recover(ctx, o.job, ""); err != nil {
		return err
	}
	if err := o.discardJournal(ctx); err != nil {
		return err
	}
	m, version, err := ManifestAt(ctx, o.dest, load.ManifestName, o.out)
	switch {
	case err == nil:
		o.manifest, o.base = m, version
	case !errors.Is(err, load.ErrNotExist):
		return fmt.Errorf("%s: %w", o.path, err)
	}
	if err := o.lookAround(ctx); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return nil
}

// discardJournal removes the parts that an older version of the program had
// prepared and listed in a journal. They are read again.
func (o *dataset) discardJournal(ctx context.Context) error {
	run, err := load.DiscardJournal(ctx, o.dest)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	if run != "" {
		o.job.Log.LogAttrs(ctx, slog.LevelWarn, "what a run of an older version had prepared is discarded, and read again",
			slog.String("path", o.path), slog.String("earlier_run", run))
	}
	return nil
}

// lookAround compares what lies there with the manifest, and finds a generation
// that no part there has.
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

// fits tells whether the definition is still that of the dataset, and nothing
// lies there that its manifest does not know, or replaces it.
func (o *dataset) fits() error {
	if o.job.Full {
		return nil
	}
	if err := o.changed(); err != nil {
		return err
	}
	return o.inventory.Err(o.path)
}

// changed tells whether the dataset holds what the definition no longer says.
func (o *dataset) changed() error {
	m := o.manifest
	if m == nil {
		return nil
	}
	was, is := m.Source, o.job.source()
	if was == nil {
		was = is
	}
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
			return &DatasetChangedError{Path: o.path, What: c.what, Was: c.was, Is: c.is}
		}
	}
	return o.checkPartition(m.Parts)
}

// checkPartition refuses to mix parts of two partitions in one dataset.
func (o *dataset) checkPartition(parts []load.Part) error {
	partition := string(o.out.Partition)
	for _, p := range parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil {
			continue // not named by us
		}
		if key.DT != load.DTValue(partition, key.To) {
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
		if !key.Undated && load.DTValue(string(p), key.To) == key.DT {
			return string(p)
		}
	}
	return "dt=" + key.DT
}
