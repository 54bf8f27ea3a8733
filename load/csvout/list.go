package csvout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
	"github.com/formetl/formetl/load/internal/lists"
)

// shape is how a field of the schema is written: as one column, or as one
// column for each choice of a list.
type shape struct {
	field    string
	listAs   string           // "" where the field is no list
	headings []string         // the field's name, or those of the choices
	choices  map[string]int32 // of lists.Columns: value to number
	on       []bool           // scratch: which choices a row holds
}

// shapesOf reads from the schema how the fields are written, and gives all
// headings.
func shapesOf(schema *arrow.Schema) (shapes []shape, headings []string, err error) {
	fields, err := lists.Of(schema)
	if err != nil {
		return nil, nil, fmt.Errorf("csv: %w", err)
	}
	for i, f := range fields {
		s := shape{field: schema.Field(i).Name, listAs: f.As, headings: f.Headings}
		if f.As == lists.Columns {
			s.choices, s.on = make(map[string]int32, len(f.Choices)), make([]bool, len(f.Choices))
		}
		for n, c := range f.Choices {
			s.choices[c.Value] = int32(n) //nolint:gosec // the number of columns fits
		}
		shapes, headings = append(shapes, s), append(headings, f.Headings...)
	}
	return shapes, headings, nil
}

// columns gives the columns to write of a batch. A list with a column for each
// choice is one entry, whose appender writes all its fields. It is left out if
// it has no choices.
func (e *encoder) columns(batch arrow.RecordBatch) ([]column, error) {
	columns := make([]column, 0, batch.NumCols())
	for i, arr := range batch.Columns() {
		s := &e.shapes[i]
		c := column{field: i, arr: arr, nulls: arr.NullN() > 0}
		if e.single {
			c.null = `""`
		}
		var err error
		list, _ := arr.(*array.List)
		switch s.listAs {
		case "":
			c.append = e.field(arr)
		case lists.JSON:
			c.append = e.listJSON(list)
		case lists.Columns:
			c.null += strings.Repeat(",", max(0, len(s.headings)-1))
			c.append, err = s.ticks(list)
		default:
			c.append = e.list(list)
		}
		if err != nil {
			return nil, fmt.Errorf("csv: column %q: %w", s.field, err)
		}
		if len(s.headings) > 0 {
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// listJSON returns the appender of a list that is written as a JSON array, with
// values as in NDJSON.
func (e *encoder) listJSON(a *array.List) cells.Appender {
	json := cells.JSON(a, e.zone)
	return func(dst []byte, row int) []byte {
		e.scratch = json(e.scratch[:0], row)
		// a text that begins with a bracket is never a formula
		return appendField(dst, e.scratch, "", e.excel && cells.HasDivider(e.scratch))
	}
}

// none stands for an element that is no choice because it is null or empty.
const none = -1

// numbers gives the number of the choice for each element of a batch's lists,
// beginning with the first element of the first list. A null or an empty text
// is no choice, unless it is listed as one. A value without a column is an
// error, because the file would lose it.
func (s *shape) numbers(a *array.List) ([]int32, error) {
	if a.Len() == 0 {
		return nil, nil
	}
	first, _ := a.ValueOffsets(0)
	_, last := a.ValueOffsets(a.Len() - 1)
	numbers := make([]int32, last-first)
	texts, ok := a.ListValues().(*array.String)
	if !ok {
		return nil, fmt.Errorf("a list of %s has no choices", a.ListValues().DataType())
	}
	for row := range a.Len() {
		if a.IsNull(row) {
			continue
		}
		start, end := a.ValueOffsets(row)
		for i := start; i < end; i++ {
			numbers[i-first] = none
			if texts.IsNull(int(i)) {
				continue
			}
			value := texts.Value(int(i))
			n, known := s.choices[value]
			switch {
			case known:
				numbers[i-first] = n
			case value != "":
				return nil, fmt.Errorf("no choice covers the value %s: this is a bug in formetl", strconv.QuoteToASCII(value))
			}
		}
	}
	return numbers, nil
}

// ticks returns the appender of the fields of all choices: true or false for
// each.
func (s *shape) ticks(a *array.List) (cells.Appender, error) {
	numbers, err := s.numbers(a)
	if err != nil || a.Len() == 0 {
		return func(dst []byte, _ int) []byte { return dst }, err
	}
	first, _ := a.ValueOffsets(0)
	return func(dst []byte, row int) []byte {
		clear(s.on)
		start, end := a.ValueOffsets(row)
		for _, n := range numbers[start-first : end-first] {
			if n != none {
				s.on[n] = true
			}
		}
		for i, on := range s.on {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendBool(dst, on)
		}
		return dst
	}, nil
}
