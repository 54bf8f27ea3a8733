package output

import (
	"cmp"
	"context"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
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
