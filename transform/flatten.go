package transform

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Bounds of a batch where Options leaves them out.
const (
	DefaultBatchRows  = 8192
	DefaultBatchBytes = 2 << 20

	// Offsets inside an array are int32; the last row of a batch may add as
	// much as a whole answer.
	mostBatchBytes = 512 << 20
)

// Options is what a Flattener needs besides the schema.
type Options struct {
	// Zone is the account's zone, which wall-clock times are read in. Required.
	Zone *time.Location
	// Labels names added columns by their headings (names: label).
	Labels bool
	// Headings are labels known beforehand. Give all flatteners of a run the
	// same, so that a column that several of them add has one name.
	Headings []page.Heading
	// Mem allocates the batches; nil is Arrow's default.
	Mem memory.Allocator
	// BatchRows and BatchBytes bound a batch: it ends with the row that
	// reaches either. Bytes are those of the values, roughly. 0: the defaults.
	BatchRows, BatchBytes int
	// Emit takes a full batch. It is valid during the call: retain it to keep
	// it. Required.
	Emit func(arrow.RecordBatch) error
	// Reject takes a result that is not written because of the column's rule
	// on_error: reject; nil drops it. It is called once a result, with the
	// first fault in the order of columns.
	Reject func(Reject) error
}

// Reject is a result for the dead letters.
type Reject struct {
	ResultID int64
	Column   string // the column that its value does not fit
	Raw      string // the value as the service gave it; several joined by "|" as in CSV
	Reason   string
}

// Flattener turns pages into record batches of one schema. Batches come in
// the order of the results; their boundaries depend on the values alone.
//
// After an error every further call returns the same error. A Flattener is
// not safe for concurrent use.
type Flattener struct {
	o           Options
	unknown     schemas.Unknown
	most        int // columns
	emptyAsNull bool
	clock       clock
	cloak       cloak

	columns []*column        // those that are written
	listed  []schemas.Column // columns as a schema, and those that are dropped
	base    int              // how many columns the schema has
	schema  *arrow.Schema
	idAt    int // index of the result id's column, -1 for none
	// fields maps every source met so far to its column, or to ^i for the
	// ignored field i.
	fields  map[schemas.Source]int32
	ignored []ignoredField
	labels  map[schemas.Source]string

	page       *page.Page // the page at hand
	at         []int32    // by index into page.Fields: as in fields
	row        int64      // number of the row at hand, from 1
	gathered   []gathered // by column
	next       []int32    // by cell of the result: the column's next cell, or -1
	pending    []outcome
	rows       int // in the batch
	bytes      int
	batchRows  int // of the last batch
	stats      Stats
	choiceRoom int64 // bytes of texts that choices may still take, see room
	err        error
}

type ignoredField struct {
	from    schemas.Source
	n       int64
	dropped bool // the schema has it, and its pii rule is drop: nobody counts it
}

// NewFlattener checks the schema and the options. Release frees what the
// Flattener holds.
func NewFlattener(s *schemas.Schema, o Options) (*Flattener, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("schema %q: %w", s.Name, err)
	}
	if o.Zone == nil || o.Emit == nil {
		return nil, errors.New("transform: Options needs Zone and Emit")
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if o.BatchRows <= 0 {
		o.BatchRows = DefaultBatchRows
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = DefaultBatchBytes
	}
	o.BatchBytes = min(o.BatchBytes, mostBatchBytes)
	f := &Flattener{
		o: o, unknown: s.Unknown, most: s.MostColumns(), emptyAsNull: s.Empty == schemas.EmptyAsNull,
		clock: clock{zone: o.Zone}, base: len(s.Columns), idAt: -1,
		fields: map[schemas.Source]int32{}, labels: map[schemas.Source]string{}, choiceRoom: mostChoiceTexts,
	}
	var err error
	if f.cloak, err = newCloak(s); err != nil {
		return nil, err
	}
	f.learn(o.Headings)
	f.extend(s.Columns)
	return f, nil
}

// extend appends columns. No row may be waiting for a batch.
func (f *Flattener) extend(columns []schemas.Column) {
	f.listed = append(f.listed, columns...)
	for _, c := range columns {
		i := len(f.columns)
		if !c.Written() {
			f.fields[c.From] = ^int32(len(f.ignored))
			f.ignored = append(f.ignored, ignoredField{from: c.From, dropped: true})
			continue
		}
		f.fields[c.From] = int32(i)
		if c.From.Kind == schemas.FromResultID {
			f.idAt = i
		}
		f.columns = append(f.columns, newColumn(c, f.o.Mem))
	}
	f.gathered = make([]gathered, len(f.columns))
	f.schema = schemas.ArrowSchema(f.Columns())
}

// Append adds the page's results, in their order. The page stays the
// caller's and is not needed after the call.
func (f *Flattener) Append(p *page.Page) error {
	if f.err != nil {
		return f.err
	}
	f.page = p
	f.err = f.appendPage()
	f.page = nil
	return f.err
}

func (f *Flattener) appendPage() error {
	if err := f.match(); err != nil {
		return err
	}
	f.attributes()
	for i := range f.page.Len() {
		written, err := f.appendResult(i)
		if err != nil {
			return err
		}
		if written && (f.rows >= f.o.BatchRows || f.bytes >= f.o.BatchBytes) {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendResult settles all columns of result i and then writes them, or
// rejects the result.
func (f *Flattener) appendResult(i int) (written bool, err error) {
	cells := f.page.Cells(i)
	f.gather(cells)
	f.pending = f.pending[:0]
	var reject *Reject
	for k, c := range f.columns {
		if k == f.idAt {
			settleID(c, f.page.ID(i))
			continue
		}
		if f.direct(k) {
			continue
		}
		raw, reason := f.settle(c, &f.gathered[k], cells)
		switch {
		case reason == "":
		case c.OnError == schemas.OnErrorFail:
			return false, &ValueError{f.page.ID(i), c.Name, c.From, c.Type, raw, reason}
		case reject == nil:
			reject = &Reject{f.page.ID(i), c.Name, raw, reason}
		}
	}
	if reject != nil {
		return false, f.reject(*reject)
	}
	if f.rows == 0 {
		f.reserve()
	}
	for k, c := range f.columns {
		if f.direct(k) {
			f.bytes += f.appendPlain(c, &f.gathered[k], cells)
		} else {
			f.bytes += c.append()
		}
	}
	f.rows++
	f.stats.Rows++
	if len(f.pending) > 0 {
		f.count()
	}
	return true, nil
}

// direct tells whether column k takes the row's value straight from the page,
// without being settled: a single string always fits, and so does none where
// the column may be null.
func (f *Flattener) direct(k int) bool {
	c, g := f.columns[k], &f.gathered[k]
	return c.plain != nil && k != f.idAt && (g.values <= 1 || g.row != f.row) && !c.Required
}

// appendPlain writes the row's only string, or null, straight from the page.
func (f *Flattener) appendPlain(c *column, g *gathered, cells []page.Cell) (size int) {
	if g.row == f.row && g.values == 1 {
		k := g.head
		for cells[k].Values == 0 { // elements without a value before the one that has it
			k = f.next[k]
		}
		if v := f.page.Value(cells[k], 0); len(v) > 0 || !f.emptyAsNull {
			v = f.valueOf(c, v)
			c.plain.append(v)
			return 4 + len(v)
		}
	}
	c.plain.appendNull()
	return 4
}

// gather chains the result's cells by their columns.
func (f *Flattener) gather(cells []page.Cell) {
	f.row++
	if len(cells) > len(f.next) {
		f.next = make([]int32, 2*len(cells))
	}
	for k, c := range cells {
		at := f.at[c.Field]
		if at < 0 {
			f.ignored[^at].n++
			continue
		}
		g := &f.gathered[at]
		f.next[k] = -1
		if g.row != f.row {
			*g = gathered{row: f.row, head: int32(k), tail: int32(k), values: c.Values}
			continue
		}
		f.next[g.tail] = int32(k)
		g.tail = int32(k)
		g.values += c.Values
	}
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
	for _, p := range f.pending {
		switch p.kind {
		case nulled:
			f.stats.Nulled = count(f.stats.Nulled, Fault{p.column.Name, p.reason})
		case joined:
			f.stats.Joined = count(f.stats.Joined, p.column.Name)
		case shifted:
			f.stats.Shifted = count(f.stats.Shifted, p.column.Name)
		}
	}
}

// reserve prepares the builders for a batch like the last one.
func (f *Flattener) reserve() {
	for _, c := range f.columns {
		c.reserve(f.batchRows)
	}
}

// Flush gives the rows that wait to Emit, also if they are few; without any it
// does nothing. Call it after the last page.
func (f *Flattener) Flush() error {
	if f.err == nil {
		f.err = f.flush()
	}
	return f.err
}

func (f *Flattener) flush() error {
	if f.rows == 0 {
		return nil
	}
	arrays := make([]arrow.Array, len(f.columns))
	for i, c := range f.columns {
		arrays[i] = c.finish()
	}
	f.see(arrays)
	batch := array.NewRecordBatch(f.schema, arrays, int64(f.rows))
	for _, a := range arrays {
		a.Release() // the batch holds them
	}
	f.batchRows, f.rows, f.bytes = f.rows, 0, 0
	defer batch.Release()
	return f.o.Emit(batch)
}

// Columns returns the columns of the next batch: the schema's that are written
// and those added since.
func (f *Flattener) Columns() []schemas.Column {
	return (&schemas.Schema{Columns: f.listed}).Written()
}

// Schema returns the Arrow schema of the next batch, by Columns.
func (f *Flattener) Schema() *arrow.Schema { return f.schema }

// Stats returns the counts so far; the caller may change them.
func (f *Flattener) Stats() Stats {
	s := f.stats.clone()
	for _, c := range f.columns {
		if c.seen != nil {
			s.Add(Stats{Seen: map[schemas.Source]Seen{c.From: *c.seen}})
		}
	}
	for _, g := range f.ignored {
		if g.n > 0 && !g.dropped {
			s.Ignored = sum(s.Ignored, map[schemas.Source]int64{g.from: g.n})
		}
	}
	s.Added = append([]schemas.Column(nil), f.listed[f.base:]...)
	return s
}

// Release frees the memory of rows that were not flushed. The Flattener is of
// no use afterwards; calling it twice is harmless.
func (f *Flattener) Release() {
	for _, c := range f.columns {
		c.release()
	}
	f.columns = nil
	if f.err == nil {
		f.err = errors.New("transform: the Flattener was released")
	}
}
