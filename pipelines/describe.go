package pipelines

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// mostLabels is how many earlier labels of a column are remembered.
const mostLabels = 20

// describe tells of the columns what is known of them on the form by now, and
// what the manifest of the run before, nil where there was none, remembers.
func (f *formRun) describe(columns []schemas.Column, before *load.Manifest) []load.Column {
	list := manifestColumns(columns, f.schema.HMACKey)
	seen, form := f.final.Seen, f.headingsNow(columns, f.final)
	f.mu.Lock()
	defer f.mu.Unlock()
	known := bySource(before)
	for i, c := range columns {
		d := &list[i]
		d.Explode = c.Explode
		if was := known[d.From]; was != nil {
			remember(d, *was)
		}
		if s, ok := seen[c.From]; ok {
			d.ItemType, d.Index = cmp.Or(s.ItemType, d.ItemType), cmp.Or(s.Index, d.Index)
		}
		if _, listed := form.labels[c.From.ID]; listed {
			d.Gone = false
		} else if form.lacks(c.From, d.Label) {
			d.Gone = true
		}
		if label := f.labels[c.From.ID]; label != "" && label != d.Label {
			relabel(d, label)
		}
	}
	if before != nil {
		placeAnew(list, before.Schema, seen)
	}
	return list
}

// bySource are a manifest's columns by their sources, of several the first;
// none without a manifest.
func bySource(m *load.Manifest) map[string]*load.Column {
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

// remember takes over what was known of a column.
func remember(d *load.Column, was load.Column) {
	d.ItemType, d.Index, d.LabelsBefore = was.ItemType, was.Index, slices.Clone(was.LabelsBefore)
	d.Gone = was.Gone
	if was.Label != "" {
		d.Label = was.Label
	}
}

// relabel gives a column its label of now.
func relabel(d *load.Column, label string) {
	if d.Label != "" {
		d.LabelsBefore = slices.Insert(d.LabelsBefore, 0, d.Label)
		d.LabelsBefore = d.LabelsBefore[:min(len(d.LabelsBefore), mostLabels)]
	}
	d.Label = label
}
