package transform

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Bounds of a batch if Options sets none.
const (
	DefaultBatchRows  = 8192
	DefaultBatchBytes = 2 << 20

	// Offsets inside an array are int32, and the last row of a batch may add as much
	// as a whole answer. So a batch is bounded far below 2 GiB.
	mostBatchBytes = 512 << 20
)

// Options is what a Flattener needs besides the schema.
type Options struct {
	// Zone is the account's zone, in which wall-clock times are read. Required.
	Zone *time.Location
	// Naming says what added columns are named after.
	Naming schemas.Naming
	// Headings are labels that are known beforehand. Give all flatteners of a
	// run the same ones. Then a column that several of them add has one name.
	Headings []page.Heading
	// Mem allocates the batches; nil is Arrow's default.
	Mem memory.Allocator
	// BatchRows and BatchBytes bound a batch: it ends with the row that reaches either
	// bound. BatchBytes bounds the bytes of the values, roughly. 0 means the defaults.
	BatchRows, BatchBytes int
	// Emit receives each full batch. The batch is valid during the call; retain
	// it to keep it longer. Required.
	Emit func(arrow.RecordBatch) error
	// Reject receives each result that is not written because of a column's
	// rule on_error: reject. It is called once per result, with the first fault
	// in the order of columns. nil drops the result.
	Reject func(Reject) error
}

// Reject is a rejected result for the dead letters, and the reason.
type Reject struct {
	ResultID int64
	Column   string // name of the column that the result's value does not fit
	Raw      string // the value as the service gave it; several values joined by "|" as in CSV
	Reason   string
}

// Flattener turns pages into record batches of one schema. Batches come in the
// order of the results. Only the values decide where a batch ends.
//
// After an error every further call returns the same error. A Flattener is not
// safe for concurrent use.
type Flattener struct {
	o       Options
	given   schemas.Schema
	columns []*column        // the columns that are written to batches
	listed  []schemas.Column // all columns, also those that a pii rule drops
	schema  *arrow.Schema
	idAt    int   // index of the result id's column, -1 for none
	all     []int // indices of all written columns
	parsed  []int // indices of columns whose type a value may not fit, even a single one

	others     page.Others // where the texts stand that people typed beside choices
	fields     fieldMap
	row        row
	batch      batchSize
	stats      Stats
	choiceRoom int64 // bytes of texts that remembered choices may still take
	err        error
}

// batchSize is how much the current batch holds.
type batchSize struct{ rows, bytes int }

// NewFlattener checks the schema and the options. Release frees what the
// Flattener holds.
func NewFlattener(s *schemas.Schema, o Options) (*Flattener, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("schema %q: %w", s.Name, err)
	}
	if o.Zone == nil || o.Emit == nil {
		return nil, errors.New("transform: Options needs Zone and Emit")
	}
	o.Mem = cmp.Or(o.Mem, memory.DefaultAllocator)
	o.BatchRows = cmp.Or(max(0, o.BatchRows), DefaultBatchRows)
	o.BatchBytes = min(cmp.Or(max(0, o.BatchBytes), DefaultBatchBytes), mostBatchBytes)
	cloak, err := newCloak(s)
	if err != nil {
		return nil, err
	}
	f := &Flattener{
		o: o, given: *s, idAt: -1, choiceRoom: mostChoiceTexts,
		fields: fieldMap{columns: map[schemas.Source]int32{}, labels: map[schemas.Source]heading{}},
		row:    row{clock: clock{zone: o.Zone}, cloak: cloak, emptyAsNull: s.Empty == schemas.EmptyAsNull},
	}
	f.fields.learn(o.Headings)
	f.extend(s.Columns)
	f.others = othersOf(s)
	for _, c := range s.Columns {
		texts := schemas.Source{Kind: schemas.FromOther, ID: c.From.ID}
		if c.From.Kind == schemas.FromItem && !c.Written() && s.Find(texts) < 0 {
			f.fields.ignore(texts, true) // they are as personal as the choices
		}
	}
	return f, nil
}

// othersOf returns what the schema says of the texts that people typed beside choices.
func othersOf(s *schemas.Schema) page.Others {
	o := page.Others{Inline: map[string]bool{}, Choices: map[string]map[string]bool{}}
	for _, c := range s.Columns {
		switch {
		case c.Other == schemas.OtherInline:
			o.Inline[c.From.ID] = true
		case len(c.Choices) > 0 && s.Apart(c):
			o.Choices[c.From.ID] = map[string]bool{}
			for _, choice := range c.Choices {
				o.Choices[c.From.ID][choice] = true
			}
		}
	}
	return o
}

// extend appends columns to those that the Flattener writes. The current batch must be empty.
func (f *Flattener) extend(columns []schemas.Column) {
	f.listed = append(f.listed, columns...)
	for _, c := range columns {
		i := len(f.columns)
		if !c.Written() {
			f.fields.ignore(c.From, true)
			continue
		}
		f.fields.columns[c.From] = int32(i)
		if c.From.Kind == schemas.FromResultID {
			f.idAt = i
		}
		f.columns = append(f.columns, newColumn(c, f.o.Mem))
	}
	f.row.gathered, f.all, f.parsed = make([]gathered, len(f.columns)), nil, nil
	for k, c := range f.columns {
		f.all = append(f.all, k)
		f.row.gathered[k].list = c.list
		if c.straight = k != f.idAt && !c.Required && c.Type.Kind == schemas.String; !c.straight {
			f.parsed = append(f.parsed, k)
		}
	}
	f.schema = schemas.ArrowSchema(f.Columns())
}

// Append adds the page's results in their order. The Flattener keeps nothing of
// the page.
func (f *Flattener) Append(p *page.Page) error {
	if f.err != nil {
		return f.err
	}
	f.row.page = p
	f.err = f.appendPage()
	f.row.page = nil
	return f.err
}

func (f *Flattener) appendPage() error {
	f.row.page.Part(f.others)
	if err := f.match(); err != nil {
		return err
	}
	f.attributes()
	for i := range f.row.page.Len() {
		written, err := f.appendResult(i)
		if err != nil {
			return err
		}
		if written && (f.batch.rows >= f.o.BatchRows || f.batch.bytes >= f.o.BatchBytes) {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendResult settles all columns of result i of the page, and then writes or rejects the
// result.
func (f *Flattener) appendResult(i int) (written bool, err error) {
	cells := f.row.page.Cells(i)
	f.row.gather(cells, &f.fields)
	f.row.pending = f.row.pending[:0]
	var reject *Reject
	settled := f.parsed
	if f.row.crowded {
		settled = f.all
	}
	for _, k := range settled {
		c := f.columns[k]
		if k == f.idAt {
			settleID(c, f.row.page.ID(i))
			continue
		}
		if f.direct(k) {
			continue
		}
		raw, reason := f.row.settle(c, &f.row.gathered[k], cells)
		if reason == "" {
			continue
		}
		fault := Reject{f.row.page.ID(i), c.Name, raw, reason}
		if c.OnError == schemas.OnErrorFail {
			return false, &ValueError{fault, c.From, c.Type}
		}
		if reject == nil {
			reject = &fault
		}
	}
	if reject != nil {
		return false, f.reject(*reject)
	}
	for k, c := range f.columns {
		if f.direct(k) {
			f.batch.bytes += f.row.appendPlain(c, &f.row.gathered[k], cells)
		} else {
			f.batch.bytes += c.append()
		}
	}
	f.batch.rows++
	f.stats.Rows++
	f.count()
	return true, nil
}

// direct tells whether column k takes the row's values straight from the page, without being
// settled. A single string always fits. Where the row has no value, the column must allow null.
func (f *Flattener) direct(k int) bool {
	if !f.columns[k].straight {
		return false
	}
	g := &f.row.gathered[k]
	return !f.row.crowded || g.values <= 1 || g.row != f.row.number
}

func (f *Flattener) reject(r Reject) error {
	f.stats.Rejected++
	f.stats.Rejects = count(f.stats.Rejects, Fault{r.Column, r.Reason})
	if f.o.Reject == nil {
		return nil
	}
	if err := f.o.Reject(r); err != nil {
		return fmt.Errorf("result %d: dead letter: %w", r.ResultID, err)
	}
	return nil
}

// count adds the outcomes of a written row to the stats.
func (f *Flattener) count() {
	for _, p := range f.row.pending {
		switch p.what {
		case joined:
			f.stats.Joined = count(f.stats.Joined, p.column.Name)
		case shifted:
			f.stats.Shifted = count(f.stats.Shifted, p.column.Name)
		default:
			f.stats.Nulled = count(f.stats.Nulled, Fault{p.column.Name, p.what})
		}
	}
}

// Flush gives Emit the rows that are not yet in a batch. If there are no such rows, it does
// nothing. Call Flush after the last page.
func (f *Flattener) Flush() error {
	if f.err == nil {
		f.err = f.flush()
	}
	return f.err
}

func (f *Flattener) flush() error {
	if f.batch.rows == 0 {
		return nil
	}
	arrays := make([]arrow.Array, len(f.columns))
	for i, c := range f.columns {
		arrays[i] = c.builder.NewArray()
	}
	f.see(arrays)
	batch := array.NewRecordBatch(f.schema, arrays, int64(f.batch.rows))
	for _, a := range arrays {
		a.Release() // the batch holds the arrays now
	}
	f.batch = batchSize{}
	defer batch.Release()
	return f.o.Emit(batch)
}

// Columns returns the columns of the next batch: the written columns of the
// schema, and the columns that were added since.
func (f *Flattener) Columns() []schemas.Column {
	return (&schemas.Schema{Columns: f.listed}).Written()
}

// Stats returns the counts so far; the caller may change them.
func (f *Flattener) Stats() Stats {
	var s Stats
	s.Add(f.stats)
	for _, c := range f.columns {
		if c.seen != nil {
			s.Add(Stats{Seen: map[schemas.Source]Seen{c.From: *c.seen}})
		}
		if c.unread != "" {
			s.Add(Stats{FirstNulled: map[string]string{c.Name: c.unread}})
		}
	}
	for _, g := range f.fields.ignored {
		if g.n > 0 && !g.dropped {
			s.Ignored = sum(s.Ignored, map[schemas.Source]int64{g.from: g.n})
		}
	}
	s.Added = append([]schemas.Column(nil), f.listed[len(f.given.Columns):]...)
	return s
}

// Release frees the memory of rows that were not flushed. Append and Flush fail
// afterwards. A second Release does nothing.
func (f *Flattener) Release() {
	for _, c := range f.columns {
		c.builder.Release()
	}
	f.columns = nil
	if f.err == nil {
		f.err = errors.New("transform: the Flattener was released")
	}
}
