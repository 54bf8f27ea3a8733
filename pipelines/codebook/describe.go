package codebook

import (
	"cmp"

	"github.com/formetl/formetl/load"
)

// Describe fills in what a manifest says of its columns besides their names and
// types. That is labels, item types, places, and whether a column's item is gone. list are
// the form's columns as the manifest lists them, in their order.
// before is the manifest of the run before, nil where there was none. What it says
// of a column is kept where this run learned nothing.
func (f Form) Describe(list []load.Column, before *load.Manifest) {
	gone := f.gone()
	known := BySource(before)
	for i, c := range f.Columns {
		d, seen := &list[i], f.Stats.Seen[c.From]
		d.Explode = c.Explode
		if was := known[d.From]; was != nil {
			d.ItemType, d.Index, d.Gone, d.Label = was.ItemType, was.Index, was.Gone, cmp.Or(was.Label, d.Label)
		}
		d.ItemType, d.Index = cmp.Or(seen.ItemType, d.ItemType), cmp.Or(seen.Index, d.Index)
		label, listed := f.Labels[c.From.ID]
		d.Gone = !listed && (d.Gone || gone(c.From, d.Label))
		d.Label = cmp.Or(label, d.Label)
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
