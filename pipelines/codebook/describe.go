package codebook

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/load"
)

// mostLabels is how many earlier labels of a column are remembered.
const mostLabels = 20

// Describe fills in what a manifest says of its columns besides their names and
// types. That is labels now and before, item types, places, and whether a column's
// item is gone. list are the form's columns as the manifest lists them, in their order.
// before is the manifest of the run before, nil where there was none. What it says
// of a column is kept where this run learned nothing.
func (f Form) Describe(list []load.Column, before *load.Manifest) {
	gone := f.gone()
	known := BySource(before)
	moved := false
	for i, c := range f.Columns {
		d, seen := &list[i], f.Stats.Seen[c.From]
		d.Explode = c.Explode
		if was := known[d.From]; was != nil {
			remember(d, *was)
			moved = moved || was.Index > 0 && seen.Index > 0 && was.Index != seen.Index
		}
		d.ItemType, d.Index = cmp.Or(seen.ItemType, d.ItemType), cmp.Or(seen.Index, d.Index)
		label, listed := f.Labels[c.From.ID]
		d.Gone = !listed && (d.Gone || gone(c.From, d.Label))
		if label != "" && label != d.Label {
			relabel(d, label)
		}
	}
	if !moved {
		return
	}
	// Items have moved. The places of items that no result of this run showed are
	// forgotten, because places of two different times together are no order.
	for i, c := range f.Columns {
		if f.Stats.Seen[c.From].Index == 0 {
			list[i].Index = 0
		}
	}
}

// BySource gives a manifest's columns by their sources. Of several columns with one
// source it gives the first; of a nil manifest it gives none.
func BySource(m *load.Manifest) map[string]*load.Column {
	if m == nil {
		return nil
	}
	known := make(map[string]*load.Column, len(m.Schema))
	for i := range m.Schema {
		if c := &m.Schema[i]; known[c.From] == nil {
			known[c.From] = c
		}
	}
	return known
}

// remember takes over what an earlier manifest says of a column.
func remember(d *load.Column, was load.Column) {
	d.ItemType, d.Index, d.LabelsBefore = was.ItemType, was.Index, slices.Clone(was.LabelsBefore)
	d.Gone, d.Label = was.Gone, cmp.Or(was.Label, d.Label)
}

// relabel gives a column a new label and remembers the old one.
func relabel(d *load.Column, label string) {
	if d.Label != "" {
		d.LabelsBefore = slices.Insert(d.LabelsBefore, 0, d.Label)
		d.LabelsBefore = d.LabelsBefore[:min(len(d.LabelsBefore), mostLabels)]
	}
	d.Label = label
}
