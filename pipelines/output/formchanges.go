package output

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// FormSeen is what a run saw of a form.
type FormSeen struct {
	Columns []schemas.Column  // columns that the run gives its rows
	Labels  map[string]string // labels in the service's headings by id; nil where none came
	Stats   transform.Stats   // statistics of all results that the run read
}

// gone returns a function that tells whether the form lacks an item. It does if the service's
// headings list items but not this one, and either it had a label or its column is new and no
// result has the item. Another item that never had a label may still be on the form.
//
// A heading does not say whether it is about an item. It is about one if a column or a
// result has an item with the heading's id.
func (f FormSeen) gone() func(from schemas.Source, label string, isNew bool) bool {
	listed := func(from schemas.Source) bool {
		_, listed := f.Labels[from.ID]
		return listed && from.Item().Kind == schemas.FromItem
	}
	items := slices.ContainsFunc(f.Columns, func(c schemas.Column) bool { return listed(c.From) })
	for from := range f.Stats.Seen {
		items = items || listed(from)
	}
	for from := range f.Stats.Ignored {
		items = items || listed(from)
	}
	return func(from schemas.Source, label string, isNew bool) bool {
		_, seen := f.Stats.Seen[from]
		return from.Item().Kind == schemas.FromItem && items && !listed(from) && (label != "" || isNew && !seen && f.Stats.Rows > 0)
	}
}

// Changes lists what changed on the form since the run that wrote the manifest before, which is
// nil where there was no such run: in a first run no field is new. whole tells that the new
// manifest will not keep columns that this run does not have.
//
// newManifest puts the changes that are reported here into the next manifest, so that the next
// run does not report them again.
func (f FormSeen) Changes(before *load.Manifest, whole bool) []schemas.Change {
	gone, known, changes := f.gone(), bySource(before), make([]schemas.Change, 0, len(f.Columns))
	for _, c := range f.Columns {
		was := known[c.From.String()]
		changes = append(changes, f.column(c, was, before != nil && was == nil && c.Inferred, gone)...)
	}
	if before != nil && whole {
		changes = append(changes, f.dropped(before)...)
	}
	return append(changes, f.ignored(before)...)
}

// column lists what changed on the form of a field that has the column c. was is the column in
// the manifest before, nil where that had none. added tells that this run added the column.
func (f FormSeen) column(c schemas.Column, was *load.Column, added bool, gone func(schemas.Source, string, bool) bool) []schemas.Change {
	var changes []schemas.Change
	note := func(x schemas.Change) {
		x.From, x.Column = c.From.String(), c.Name
		changes = append(changes, x)
	}
	label := c.Label
	if was != nil {
		label = was.Label
	}
	now, listed := c.From.Label(f.Labels)
	joined := f.Stats.Joined[c.Name]
	switch {
	case added, was != nil && was.Gone && listed:
		x := schemas.Change{Kind: schemas.ColumnAdded, Is: c.Type.String(), Label: cmp.Or(now, c.Label)}
		if added && joined > 0 { // a new column never had another type
			x.Key, x.Count = schemas.KeyJoined, joined
		}
		note(x)
	case was != nil && was.Gone:
	case gone(c.From, label, was == nil):
		note(schemas.Change{Kind: schemas.ColumnRemoved, Was: c.Type.String(), Label: label, Breaking: true})
	}
	if was != nil && now != "" && label != "" && now != label {
		note(schemas.Change{Kind: schemas.ColumnRelabelled, Was: label, Is: now})
	}
	if was != nil && was.Name != c.Name {
		note(schemas.Change{Kind: schemas.ColumnRenamed, Was: was.Name, Is: c.Name, Breaking: true})
	}
	is := f.Stats.Seen[c.From].ItemType
	if was != nil && was.ItemType != "" && is != "" && is != was.ItemType {
		note(schemas.Change{Kind: schemas.ColumnRetyped, Key: "item_type", Was: was.ItemType, Is: is})
	}
	if joined > 0 && was != nil && !was.Joined {
		note(schemas.Change{Kind: schemas.ColumnRetyped, Key: "type", Was: c.Type.String(), Is: schemas.ListOf(c.Type).String(), Count: joined})
	}
	return changes
}

// dropped lists the columns of the manifest before that this run does not have.
func (f FormSeen) dropped(before *load.Manifest) []schemas.Change {
	var changes []schemas.Change
	for _, was := range before.Schema {
		from, err := schemas.ParseSource(was.From)
		if err != nil || slices.ContainsFunc(f.Columns, func(c schemas.Column) bool { return c.From == from }) {
			continue
		}
		changes = append(changes, schemas.Change{
			Kind: schemas.ColumnRemoved, From: was.From, Column: was.Name, Was: was.Type, Label: was.Label, Breaking: true,
		})
	}
	return changes
}

// ignored lists the fields that the schema leaves out and that no run saw before. In a first run
// no field is new.
func (f FormSeen) ignored(before *load.Manifest) (changes []schemas.Change) {
	if before == nil {
		return nil
	}
	known := bySource(before)
	for from, n := range f.Stats.Ignored {
		if !slices.Contains(before.Ignored, from.String()) && known[from.String()] == nil { // it had no column before
			label, _ := from.Label(f.Labels)
			changes = append(changes, schemas.Change{Kind: schemas.ColumnAdded, From: from.String(), Label: label, Count: n})
		}
	}
	slices.SortFunc(changes, func(a, b schemas.Change) int { return cmp.Compare(a.From, b.From) })
	return changes
}

// leftOut returns the fields that the schema leaves out, as this run and those before saw them.
func (f FormSeen) leftOut(before *load.Manifest) (fields []string) {
	if before != nil {
		fields = slices.Clone(before.Ignored)
	}
	for from := range f.Stats.Ignored {
		fields = append(fields, from.String())
	}
	slices.Sort(fields)
	return slices.DeleteFunc(slices.Compact(fields), func(field string) bool { // it has a column by now
		return slices.ContainsFunc(f.Columns, func(c schemas.Column) bool { return c.From.String() == field })
	})
}

// describe fills in what a manifest says of its columns besides their names and
// types: labels, item types, places, and whether a column's item is gone from the form. list
// are the manifest's entries for f.Columns, in the same order. before is the manifest of the
// run before, nil where there was none. What before says of a column is kept where this run
// learned nothing.
func (f FormSeen) describe(list []load.Column, before *load.Manifest) {
	gone := f.gone()
	known := bySource(before)
	for i, c := range f.Columns {
		d, seen := &list[i], f.Stats.Seen[c.From]
		d.Explode, d.Joined = c.Explode, f.Stats.Joined[c.Name] > 0
		if was := known[d.From]; was != nil {
			d.ItemType, d.Index, d.Gone, d.Label = was.ItemType, was.Index, was.Gone, cmp.Or(was.Label, d.Label)
			d.Joined = d.Joined || was.Joined
		}
		d.ItemType, d.Index = cmp.Or(seen.ItemType, d.ItemType), cmp.Or(seen.Index, d.Index)
		label, listed := c.From.Label(f.Labels)
		d.Gone = !listed && (d.Gone || gone(c.From, d.Label, known[d.From] == nil))
		d.Label = cmp.Or(label, d.Label)
	}
}

// bySource returns a manifest's columns by their sources. Of several columns with one
// source it returns the first; of a nil manifest it returns none.
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
