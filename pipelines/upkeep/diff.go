package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// FormDiff is how a form, as the service has it now, differs from columns that were known before.
type FormDiff struct {
	Sampled int // how many results of the form were looked at
	// Listed tells that the service's headings list the form's items. If they do not, a field
	// counts as absent because it is not in the sample, which proves little.
	Listed  bool
	Changes []schemas.Change
}

// DiffLive compares the columns of known with the form as the service has it now: with its headings
// and a sample of its results that is spread over the definition's range.
//
// A field that only the form has is a column added; that is breaking if the schema says unknown:
// fail. A column whose field the headings do not list is a column removed, except a column without
// a label that results still have, since headings never listed its field. If headings list no
// fields of the column's kind (metas or items), only the sample tells that the field is missing;
// that proves nothing and so is not breaking. Values of the sample that do not fit a column are
// counted by reason. They are breaking if the column's rule is to reject such results or to fail.
func DiffLive(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, known *schemas.Schema) (*FormDiff, error) {
	l := &liveForm{
		known: known, places: known.Places(),
		answered: map[schemas.Source]bool{}, listed: map[schemas.Source]bool{}, lists: map[schemas.SourceKind]bool{},
	}
	learner := transform.NewLearner(def.Source.Zone)
	var headings []page.Heading
	if len(known.Columns) > 0 {
		var err error
		if l.fitting, err = newFitting(known, def.Source.Zone); err != nil {
			return nil, err
		}
		defer l.fitting.Release()
	}
	var unfit error
	sampled, err := readSample(ctx, def, o, form, DefaultSample, func(p *page.Page) {
		defer p.Release()
		learner.Add(p)
		for _, h := range p.Headings {
			headings = append(headings, page.Heading{ID: strings.Clone(h.ID), Kind: h.Kind})
		}
		if l.fitting != nil && unfit == nil {
			unfit = l.fitting.Append(p)
		}
	})
	if err = cmp.Or(err, unfit); err == nil && l.fitting != nil {
		err = l.fitting.Flush() // Flush completes the statistics, Stats.Seen
	}
	if err != nil {
		return nil, err
	}
	live, guesses := learner.Schema(form, def.Names)
	for i, g := range guesses {
		l.answered[live.Columns[i].From] = g.Answered
	}
	for _, h := range headings {
		l.heading(h)
	}
	l.results = sampled.Results
	is, unsure := l.now(live, def.Names)
	changes := schemas.Diff(known, is)
	for i, x := range changes {
		if x.Kind == schemas.ColumnRemoved && unsure[x.From] {
			changes[i].Is, changes[i].Breaking = "not in the sample", false
		}
	}
	return &FormDiff{Sampled: sampled.Results, Listed: l.lists[schemas.FromItem], Changes: append(changes, l.misfits()...)}, nil
}

// liveForm is what headings and a sample of results tell of a form, beside the columns known
// before.
type liveForm struct {
	known   *schemas.Schema
	places  map[schemas.Source]int // index of each field's column among the known columns
	results int
	fitting *transform.Flattener // reads the sample by the known columns; nil if no columns are known

	answered map[schemas.Source]bool // fields that some sampled result has
	listed   map[schemas.Source]bool // fields that a heading is about, or may be about
	// lists tells, by kind of field (meta or item), whether headings list any of that kind.
	lists map[schemas.SourceKind]bool
}

// newFitting makes a flattener that counts every value that does not fit the types of a schema's
// columns, read as the columns say (format, true_values and so on). Their other rules do not
// apply: pii hides no value, because nothing is written.
func newFitting(s *schemas.Schema, zone *time.Location) (*transform.Flattener, error) {
	lenient := &schemas.Schema{Name: s.Name, Unknown: schemas.UnknownIgnore, Empty: s.Empty}
	for _, c := range s.Columns {
		lenient.Columns = append(lenient.Columns, schemas.Column{
			Name: c.Name, From: c.From, Type: c.Type, Reading: c.Reading, Inferred: c.Inferred, OnError: schemas.OnErrorSetNull,
			ListAs: c.ListAs, Choices: c.Choices, Other: c.Other,
		})
	}
	return transform.NewFlattener(lenient, transform.Options{Zone: zone, Emit: func(arrow.RecordBatch) error { return nil }})
}

// heading notes which fields a heading of the service lists. A heading that does not say whether it
// is about a meta or an item may be about either.
func (l *liveForm) heading(h page.Heading) {
	for kind, source := range map[page.Kind]schemas.SourceKind{page.KindMeta: schemas.FromMeta, page.KindItem: schemas.FromItem} {
		from := schemas.Source{Kind: source, ID: h.ID}
		if h.Kind != 0 && h.Kind != kind {
			continue
		}
		l.listed[from] = true
		if _, has := l.places[from]; has || h.Kind == kind || l.answered[from] {
			l.lists[source] = true
		}
	}
}

// now returns the known schema changed to fit the form as it is now (live): without columns whose
// fields are gone, with the form's labels and its order of items, and with columns for new fields,
// named as a run would name them. unsure holds the sources of the removed columns, with true if it
// is not sure that the field is gone.
func (l *liveForm) now(live *schemas.Schema, naming schemas.Naming) (is *schemas.Schema, unsure map[string]bool) {
	now := *l.known
	now.Columns, unsure = nil, map[string]bool{}
	places := live.Places()
	var groups [][]schemas.Column // each column with that of the typed texts that follows it
	var slots []int               // indexes of the items in groups; metas have no order
	for _, c := range l.known.Columns {
		if gone, sure := l.gone(c); gone {
			unsure[c.From.String()] = !sure
			continue
		}
		at, ok := places[c.From]
		if ok {
			c.Label = cmp.Or(live.Columns[at].Label, c.Label)
		}
		if last := len(groups) - 1; last >= 0 && c.From.Kind == schemas.FromOther && groups[last][0].From == c.From.Item() {
			groups[last] = append(groups[last], c)
			continue
		}
		if ok && c.From.Kind == schemas.FromItem {
			slots = append(slots, len(groups))
		}
		groups = append(groups, []schemas.Column{c})
	}
	items := make([][]schemas.Column, len(slots))
	for i, slot := range slots {
		items[i] = groups[slot]
	}
	slices.SortFunc(items, func(a, b []schemas.Column) int { return cmp.Compare(places[a[0].From], places[b[0].From]) })
	for i, slot := range slots {
		groups[slot] = items[i]
	}
	now.Columns = slices.Concat(groups...)
	var late []schemas.Column
	for _, c := range live.Columns {
		if _, has := l.places[c.From]; has || c.From.Kind == schemas.FromResultID {
			continue
		}
		if at, has := l.places[c.From.Item()]; has && (l.known.Columns[at].Other == schemas.OtherInline || !l.known.Columns[at].Written()) {
			continue // typed texts that have no column
		}
		x := l.known.Late(c.From, transform.DefaultType(c.From), live.Columns[places[c.From.Item()]].Label, naming)
		x.Type, x.Label = c.Type, c.Label
		late = append(late, x)
	}
	now.Columns = append(now.Columns, schemas.Merge(l.known.Columns, late)[len(l.known.Columns):]...)
	return &now, unsure
}

// gone tells whether the form lacks the field of a column, and whether that is sure: headings list
// other fields of its kind (meta or item).
func (l *liveForm) gone(c schemas.Column) (gone, sure bool) {
	from := c.From.Item() // typed texts may be rare; they are gone with their item
	switch {
	case from.Kind == schemas.FromResultID || l.listed[from]:
		return false, false
	case !l.lists[from.Kind]:
		return l.results > 0 && !l.answered[from], false
	}
	// Headings never listed the field of a column without a label; a result may still have it.
	return c.Label != "" || !l.answered[from], true
}

// misfits returns, as changes of columns, how many values of the sample do not fit each known
// column, and why.
func (l *liveForm) misfits() (list []schemas.Change) {
	if l.fitting == nil {
		return nil
	}
	s := l.fitting.Stats()
	for _, c := range l.known.Columns {
		// In a declared column, a value that does not fit is breaking unless it becomes null.
		first, breaks := len(list), !c.Inferred && c.OnError != schemas.OnErrorSetNull
		add := func(key, is string, n int64, breaking bool) {
			if n > 0 {
				list = append(list, schemas.Change{Kind: schemas.ColumnRetyped, From: c.From.String(), Column: c.Name, Key: key, Was: c.Type.String(), Is: is, Count: n, Breaking: breaking})
			}
		}
		for at, n := range s.Nulled {
			if at.Column == c.Name {
				add("values", at.Reason, n, breaks)
			}
		}
		add("type", "list<string>", s.Joined[c.Name], false) // lists in an inferred string column
		add("values", "missing", l.missing(c, s), breaks)
		slices.SortFunc(list[first:], func(a, b schemas.Change) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Is, b.Is))
		})
	}
	return list
}

// missing counts the results of the sample without a value for a column that allows no null. A
// value that does not fit the column is counted by misfits, not here.
func (l *liveForm) missing(c schemas.Column, s transform.Stats) int64 {
	if !c.Required || c.Inferred || c.From.Kind == schemas.FromResultID {
		return 0
	}
	n := s.Rows - s.Seen[c.From].Filled
	for at, nulled := range s.Nulled {
		if at.Column == c.Name && c.Type.Kind != schemas.List {
			n -= nulled
		}
	}
	return n
}
