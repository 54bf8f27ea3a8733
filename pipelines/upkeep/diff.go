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

// FormDiff is how a live form differs from columns that were known.
type FormDiff struct {
	Sampled int // results that were looked at
	// Listed tells that the service's headings list items. Where they do not,
	// that a field is not in the sample is all that is known of its absence.
	Listed  bool
	Changes []schemas.Change
}

// DiffLive compares columns with the live form: its headings and a sample of
// its results, as InferColumns takes it.
//
// A field that only the form has is added; that breaks where the schema says
// unknown: fail. A column whose field the headings do not list is removed. A
// column without a label that results still have is not, since headings never
// listed it. Where headings list no such fields, only the sample tells that one is
// missing; that proves nothing and so does not break. Values of the sample that do
// not fit a column are counted by reason. They break where the column's rule is to
// reject them or to fail.
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
		err = l.fitting.Flush() // what rows hold is seen by then
	}
	if err != nil {
		return nil, err
	}
	live, guesses := learner.Schema(form, def.Labels)
	for i, g := range guesses {
		l.answered[live.Columns[i].From] = g.Answered
	}
	for _, h := range headings {
		l.heading(h)
	}
	l.results = sampled.Results
	is, unsure := l.now(live, def.Labels)
	changes := schemas.Diff(known, is)
	for i, x := range changes {
		if x.Kind == schemas.ColumnRemoved && unsure[x.From] {
			changes[i].Is, changes[i].Breaking = "not in the sample", false
		}
	}
	return &FormDiff{Sampled: sampled.Results, Listed: l.lists[schemas.FromItem], Changes: append(changes, l.misfits()...)}, nil
}

// liveForm is what headings and a sample tell of a form.
type liveForm struct {
	known   *schemas.Schema
	places  map[schemas.Source]int // of the known columns
	results int
	fitting *transform.Flattener // reads the sample by the known columns; nil where there are none

	answered map[schemas.Source]bool // fields that some sampled result has
	listed   map[schemas.Source]bool // fields that a heading is about, or may be about
	// lists tells of which kinds of fields headings list any.
	lists map[schemas.SourceKind]bool
}

// newFitting makes a flattener that counts every value that does not fit a
// schema's types and how it reads values. No other rule of the columns counts:
// nothing is hidden, because nothing is written.
func newFitting(s *schemas.Schema, zone *time.Location) (*transform.Flattener, error) {
	lenient := &schemas.Schema{Name: s.Name, Unknown: schemas.UnknownIgnore, Empty: s.Empty}
	for _, c := range s.Columns {
		lenient.Columns = append(lenient.Columns, schemas.Column{
			Name: c.Name, From: c.From, Type: c.Type, Reading: c.Reading, Inferred: c.Inferred, OnError: schemas.OnErrorSetNull,
		})
	}
	return transform.NewFlattener(lenient, transform.Options{Zone: zone, Emit: func(arrow.RecordBatch) error { return nil }})
}

// heading adds a heading. One that does not say whether it is about a meta or an
// item may be about either.
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

// now is the known schema as the live form would have it: without the columns that are gone, with
// the form's labels and its order of items, and with columns for new fields, named as a run
// would name them. unsure has the sources of columns of which it is not sure that they are gone.
func (l *liveForm) now(live *schemas.Schema, labels bool) (is *schemas.Schema, unsure map[string]bool) {
	now := *l.known
	now.Columns, unsure = nil, map[string]bool{}
	places := live.Places()
	var items []schemas.Column
	var slots []int // the places of items among the columns; metas have no order
	for _, c := range l.known.Columns {
		if gone, sure := l.gone(c); gone {
			unsure[c.From.String()] = !sure
			continue
		}
		if at, ok := places[c.From]; ok {
			c.Label = cmp.Or(live.Columns[at].Label, c.Label)
			if c.From.Kind == schemas.FromItem {
				items, slots = append(items, c), append(slots, len(now.Columns))
			}
		}
		now.Columns = append(now.Columns, c)
	}
	slices.SortFunc(items, func(a, b schemas.Column) int { return cmp.Compare(places[a.From], places[b.From]) })
	for i, slot := range slots {
		now.Columns[slot] = items[i]
	}
	var late []schemas.Column
	for _, c := range live.Columns {
		if _, has := l.places[c.From]; !has && c.From.Kind != schemas.FromResultID {
			x := schemas.Late(c.From, transform.DefaultType(c.From), c.Label, labels)
			x.Type = c.Type
			late = append(late, x)
		}
	}
	now.Columns = append(now.Columns, schemas.Merge(l.known.Columns, late)[len(l.known.Columns):]...)
	return &now, unsure
}

// gone tells whether the form lacks a column's field, and whether that is sure.
func (l *liveForm) gone(c schemas.Column) (gone, sure bool) {
	switch {
	case c.From.Kind == schemas.FromResultID || l.listed[c.From]:
		return false, false
	case !l.lists[c.From.Kind]:
		return l.results > 0 && !l.answered[c.From], false
	}
	// Headings never listed a column without a label; a result may still have it.
	return c.Label != "" || !l.answered[c.From], true
}

// misfits tells how many values of the sample do not fit each column, and why.
func (l *liveForm) misfits() (list []schemas.Change) {
	if l.fitting == nil {
		return nil
	}
	s := l.fitting.Stats()
	for _, c := range l.known.Columns {
		first, breaks := len(list), !c.Inferred && c.OnError != schemas.OnErrorSetNull // then values must fit
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
		add("type", "list<string>", s.Joined[c.Name], false) // of an inferred string column
		add("values", "no value", l.missing(c, s), breaks)
		slices.SortFunc(list[first:], func(a, b schemas.Change) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Is, b.Is))
		})
	}
	return list
}

// missing counts the results without a value in a column that allows no null. A
// value that does not fit is not missing.
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
