package pipelines

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// drifting compares what a run saw of the form with what was known before: by
// the manifest of the run before, else by the labels of the schema.
//
// What a run reports its manifest remembers, so that the next one does not
// report it again; but what goes on, fields that are left out and values that
// are joined, is reported by every run. Nothing of it fails a run.
type drifting struct {
	f         *formRun
	columns   []schemas.Column        // of this run
	before    *load.Manifest          // nil where there was none
	known     map[string]*load.Column // its columns by source
	added     map[schemas.Source]bool // columns that this run has added
	columnsBy map[schemas.Source]bool // those of this run
	whole     bool                    // the manifest is replaced with all its columns
	seen      transform.Stats
	form      headingsNow
}

// headingsNow are the headings as the run got them.
type headingsNow struct {
	labels map[string]string // by id; nil where no headings came
	items  bool              // items are among them
}

// headingsNow tells what the service's headings say by now. That they list
// items is known where one is about an item of a column or a result: they do
// not say themselves what they are about.
func (f *formRun) headingsNow(columns []schemas.Column, s transform.Stats) headingsNow {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := headingsNow{labels: f.labels}
	note := func(from schemas.Source) {
		if _, listed := h.labels[from.ID]; listed && from.Kind == schemas.FromItem {
			h.items = true
		}
	}
	for _, c := range columns {
		note(c.From)
	}
	for from := range s.Seen {
		note(from)
	}
	for from := range s.Ignored {
		note(from)
	}
	return h
}

// lacks tells whether the headings list items, and not this one though they
// did: it had a label. What never had one says nothing.
func (h headingsNow) lacks(from schemas.Source, label string) bool {
	_, listed := h.labels[from.ID]
	return from.Kind == schemas.FromItem && h.items && label != "" && !listed
}

// changes are those of the form since the run before.
func (f *formRun) changes(s transform.Stats) []schemas.Change {
	d := drifting{f: f, columns: f.columns(f.windows), seen: s}
	d.before, d.whole = f.manifestBefore()
	d.known, d.added, d.columnsBy = bySource(d.before), sourcesOf(s.Added), sourcesOf(d.columns)
	d.form = f.headingsNow(d.columns, s)
	moved := d.moved()
	var changes []schemas.Change
	for _, c := range d.columns {
		changes = append(changes, d.column(c)...)
		if m, ok := moved[c.From]; ok {
			changes = append(changes, m)
		}
	}
	return slices.Concat(changes, d.dropped(), d.ignored())
}

// manifestBefore is the manifest that the run's view of the form is compared
// with: of the first output that has one, and is not the child of a list, which
// lacks the other columns. whole tells that it will not keep
// columns that this run does not have.
func (f *formRun) manifestBefore() (m *load.Manifest, whole bool) {
	for _, t := range f.live() {
		m, _ := manifestOf(t.out)
		if m == nil || t.def.Exploded() || m.Form != f.form || m.Source != nil && m.Source.Account != f.def.Source.Account {
			continue
		}
		_, file := t.out.(*fileOutput)
		return m, file || f.full
	}
	return nil, false
}

// was is what the manifest remembers of a column, nil where it does not.
func (d *drifting) was(from schemas.Source) *load.Column {
	return d.known[from.String()]
}

// sourcesOf are the sources of columns.
func sourcesOf(columns []schemas.Column) map[schemas.Source]bool {
	set := make(map[schemas.Source]bool, len(columns))
	for _, c := range columns {
		set[c.From] = true
	}
	return set
}

// column lists what changed of a field that has a column.
func (d *drifting) column(c schemas.Column) []schemas.Change {
	var changes []schemas.Change
	note := func(x schemas.Change) {
		x.From, x.Column = c.From.String(), c.Name
		changes = append(changes, x)
	}
	was := d.was(c.From)
	label := c.Label
	if was != nil {
		label = was.Label
	}
	now, listed := d.form.labels[c.From.ID]
	added, joined := d.isNew(c, was), d.seen.Joined[c.Name]
	switch {
	case added, was != nil && was.Gone && listed:
		x := schemas.Change{Kind: schemas.ColumnAdded, Is: c.Type.String(), Label: cmp.Or(now, c.Label)}
		if added && joined > 0 { // it never had another type
			x.Key, x.Count = schemas.KeyJoined, joined
		}
		note(x)
	case was != nil && was.Gone:
	case d.form.lacks(c.From, label):
		note(schemas.Change{Kind: schemas.ColumnRemoved, Was: c.Type.String(), Label: label, Breaking: true})
	}
	if now != "" && label != "" && now != label {
		note(schemas.Change{Kind: schemas.ColumnRelabelled, Was: label, Is: now})
	}
	is := d.seen.Seen[c.From].ItemType
	if was != nil && was.ItemType != "" && is != "" && is != was.ItemType {
		note(schemas.Change{Kind: schemas.ColumnRetyped, Key: "item_type", Was: was.ItemType, Is: is})
	}
	if joined > 0 && !added {
		note(schemas.Change{Kind: schemas.ColumnRetyped, Key: "type", Was: c.Type.String(), Is: schemas.ListOf(c.Type).String(), Count: joined})
	}
	return changes
}

// isNew tells whether a column was added by this run. Where no run was before,
// what the sample showed is nothing new.
func (d *drifting) isNew(c schemas.Column, was *load.Column) bool {
	if d.before != nil {
		return was == nil && c.Inferred
	}
	return d.added[c.From]
}

// dropped are the columns of items that the form has no more and that are not
// even among the run's columns, which were inferred anew.
func (d *drifting) dropped() []schemas.Change {
	if d.before == nil || !d.whole {
		return nil
	}
	var changes []schemas.Change
	for _, was := range d.before.Schema {
		from, err := schemas.ParseSource(was.From)
		if err != nil || was.Gone || !d.form.lacks(from, was.Label) || d.columnsBy[from] {
			continue
		}
		changes = append(changes, schemas.Change{
			Kind: schemas.ColumnRemoved, From: was.From, Column: was.Name, Was: was.Type, Label: was.Label, Breaking: true,
		})
	}
	return changes
}

// ignored are the fields that the schema leaves out: added on the form, and
// without a column.
func (d *drifting) ignored() []schemas.Change {
	changes := make([]schemas.Change, 0, len(d.seen.Ignored))
	for from, n := range d.seen.Ignored {
		changes = append(changes, schemas.Change{
			Kind: schemas.ColumnAdded, From: from.String(), Label: d.form.labels[from.ID], Count: n,
		})
	}
	slices.SortFunc(changes, func(a, b schemas.Change) int { return cmp.Compare(a.From, b.From) })
	return changes
}

// moved are the items that stand in another order on the form, of those whose
// place was known before and is known now. Items that share a place have no
// order among them.
func (d *drifting) moved() map[schemas.Source]schemas.Change {
	before, now := map[schemas.Source]int{}, map[schemas.Source]int{}
	var both []schemas.Column
	for _, c := range d.columns {
		was, is := d.was(c.From), d.seen.Seen[c.From].Index
		if was == nil || was.Index == 0 || is == 0 {
			continue
		}
		before[c.From], now[c.From] = was.Index, is
		both = append(both, c)
	}
	order := func(by, ties map[schemas.Source]int) []schemas.Column {
		return slices.SortedStableFunc(slices.Values(both), func(a, b schemas.Column) int {
			return cmp.Or(cmp.Compare(by[a.From], by[b.From]), cmp.Compare(ties[a.From], ties[b.From]))
		})
	}
	return schemas.Moved(order(before, now), order(now, before))
}

// placeAnew forgets the places of items that no result showed, where others
// have moved: places of two times together are no order.
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
