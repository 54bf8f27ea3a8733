package codebook

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// mostLabels is how many earlier labels of a column are remembered.
const mostLabels = 20

// Describe fills in what a manifest says of its columns besides their names and
// types: labels now and before, item types, places, whether a column's item is
// gone. list are the form's columns as the manifest lists them, in their order.
// before is the manifest of the run before, nil where there was none; what it says
// is kept where the form tells nothing.
func (f Form) Describe(list []load.Column, before *load.Manifest) {
	headings := f.headings()
	known := BySource(before)
	for i, c := range f.Columns {
		d := &list[i]
		d.Explode = c.Explode
		if was := known[d.From]; was != nil {
			remember(d, *was)
		}
		if s, ok := f.Stats.Seen[c.From]; ok {
			d.ItemType, d.Index = cmp.Or(s.ItemType, d.ItemType), cmp.Or(s.Index, d.Index)
		}
		if _, listed := f.Labels[c.From.ID]; listed {
			d.Gone = false
		} else if headings.lacks(c.From, d.Label) {
			d.Gone = true
		}
		if label := f.Labels[c.From.ID]; label != "" && label != d.Label {
			relabel(d, label)
		}
	}
	if before != nil {
		placeAnew(list, before.Schema, f.Stats.Seen)
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
	d.Gone = was.Gone
	if was.Label != "" {
		d.Label = was.Label
	}
}

// relabel gives a column a new label and remembers the old one.
func relabel(d *load.Column, label string) {
	if d.Label != "" {
		d.LabelsBefore = slices.Insert(d.LabelsBefore, 0, d.Label)
		d.LabelsBefore = d.LabelsBefore[:min(len(d.LabelsBefore), mostLabels)]
	}
	d.Label = label
}

// placeAnew forgets the places of items that no result of this run showed, if other
// items have moved: places of two different times together are no order.
func placeAnew(list, before []load.Column, seen map[schemas.Source]transform.Seen) {
	was := make(map[string]int, len(before))
	for _, c := range before {
		was[c.From] = c.Index
	}
	now := make(map[string]int, len(seen))
	for from, s := range seen {
		now[from.String()] = s.Index
	}
	if !slices.ContainsFunc(list, func(c load.Column) bool { return was[c.From] > 0 && now[c.From] > 0 && was[c.From] != now[c.From] }) {
		return
	}
	for i, c := range list {
		if now[c.From] == 0 {
			list[i].Index = 0
		}
	}
}
