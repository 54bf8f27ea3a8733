package detail

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// MostChoices bounds the values of a column that are listed: the most frequent ones.
const MostChoices = 5

// Column is what the rows of a run hold in a column. A column with a PII rule has neither
// choices nor a measure.
type Column struct {
	Name, Label, From, Type, PII string
	Rows, Nulls                  int64
	Distinct                     int // different choices, 0 if the column has none or too many
	Choices                      []Choice
	Many                         bool // there are more choices than are counted
	Measure                      Measure
}

// Choice is a value of an item that offers choices, and how often it was chosen.
type Choice struct {
	Value string
	Count int64
}

// profile is what the rows of a form hold.
type profile struct {
	zone     *time.Location
	days     days
	measures map[schemas.Source]*measure // of the columns without a PII rule
	columns  []Column
}

// Snapshot looks at everything that a run read: it reads all rows once more.
func (o *Observer) Snapshot(ctx context.Context, s *reconcile.Snapshot) error {
	if o == nil {
		return nil
	}
	columns := reconcile.Columns(s.Schema, s.Labels, s.Windows)
	o.Begin(columns)
	for _, w := range s.Windows {
		err := s.Rows(ctx, w, func(b arrow.RecordBatch) error {
			o.Rows(w, b)
			return nil
		})
		if err != nil {
			return err
		}
	}
	o.Finish(columns, s.Windows, s.Stats)
	return nil
}

// Begin begins to look at rows with these columns. It forgets what was seen before.
func (o *Observer) Begin(columns []schemas.Column) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.profile = profile{zone: o.profile.zone, measures: map[schemas.Source]*measure{}}
	for _, c := range columns {
		if c.PII.Kind == schemas.PIINone {
			o.profile.measures[c.From] = &measure{}
		}
	}
}

// Rows looks at rows of a window.
func (o *Observer) Rows(w *reading.Window, b arrow.RecordBatch) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.profile.batch(w, b)
}

// Finish ends what Begin began. stats are those of all rows of the windows.
func (o *Observer) Finish(columns []schemas.Column, windows []*reading.Window, stats transform.Stats) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range windows {
		if day, ok := dayOf(w); ok && w.Results() > 0 {
			o.profile.days.add(day, w.Stats.Rows, w.Stats.Rejected)
		}
	}
	o.profile.finish(columns, stats)
}

// batch looks at rows of a window. It leaves out columns that nobody knew at the beginning,
// because nobody knows whether they have a PII rule.
func (p *profile) batch(w *reading.Window, b arrow.RecordBatch) {
	var dates []date
	for i, field := range b.Schema().Fields() {
		text, _ := field.Metadata.GetValue(schemas.MetaFrom)
		from, err := schemas.ParseSource(text)
		m := p.measures[from]
		if err != nil || m == nil {
			continue
		}
		m.take(b.Column(i))
		dates = appendDate(dates, from, b.Column(i))
	}
	if _, ok := dayOf(w); !ok && w.Undated == nil {
		p.days.rows(w.Planned.Window, int(b.NumRows()), dates, p.zone)
	}
}

// finish makes the columns. stats are those of all rows.
func (p *profile) finish(columns []schemas.Column, stats transform.Stats) {
	p.columns = make([]Column, 0, len(columns))
	for _, c := range columns {
		seen := stats.Seen[c.From]
		column := Column{
			Name: c.Name, Label: c.Label, From: c.From.String(), Type: c.Type.String(), PII: c.PII.String(),
			Rows: stats.Rows, Nulls: stats.Rows - seen.Filled,
		}
		if c.PII.Kind == schemas.PIINone {
			column.Many = seen.Many
			column.choose(seen.Choices)
			if m := p.measures[c.From]; m != nil {
				column.choose(m.choices())
				column.Measure = m.result(p.zone)
			}
		}
		p.columns = append(p.columns, column)
	}
}

// choose lists the most frequent choices, the most frequent first.
func (c *Column) choose(choices map[string]int64) {
	if len(choices) == 0 {
		return
	}
	list := make([]Choice, 0, len(choices))
	for _, value := range slices.Sorted(maps.Keys(choices)) {
		list = append(list, Choice{value, choices[value]})
	}
	slices.SortStableFunc(list, func(a, b Choice) int { return cmp.Compare(b.Count, a.Count) })
	c.Distinct, c.Choices = len(list), list[:min(len(list), MostChoices)]
}

func (p *profile) end() ([]Day, int64, []Column) { return p.days.list(), p.days.dayless, p.columns }
