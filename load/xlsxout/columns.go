package xlsxout

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The keys of a field's metadata that say how its lists are shown, and what
// they may say, as in csvout.
const (
	metaListAs  = "formetl.list_as"
	metaChoices = "formetl.choices"
	asJoined    = "joined"
	asJSON      = "json"
	asColumns   = "columns"
)

// The metadata of the field that has the results' ids, as schemas has them.
const (
	metaFrom     = "formetl.from"
	fromResultID = "result_id"
)

// column is a column of the sheet: a field, or a choice of a list.
type column struct {
	field   int // of the schema
	heading string
	kind    arrow.DataType
	width   int // in characters

	listAs string // "" where the field is no list
	choice string // of asColumns
}

// columnsOf are the sheet's columns, and the choices of the fields that have a
// column for each.
func columnsOf(schema *arrow.Schema) (columns []column, choices []map[string]bool, err error) {
	choices = make([]map[string]bool, schema.NumFields())
	taken := map[string]bool{}
	for i, f := range schema.Fields() {
		var own []column
		if own, choices[i], err = fieldColumns(i, f); err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		for _, c := range own {
			if taken[c.heading] {
				return nil, nil, fmt.Errorf("the heading %q is used twice: this is a bug in formetl", c.heading)
			}
			taken[c.heading] = true
		}
		columns = append(columns, own...)
	}
	if len(columns) == 0 {
		return nil, nil, fmt.Errorf("column %q is a list without choices, and there is no other: list its choices, or add the result's id", schema.Field(0).Name)
	}
	return columns, choices, nil
}

// fieldColumns are the columns of a field.
func fieldColumns(i int, f arrow.Field) ([]column, map[string]bool, error) {
	c := column{field: i, heading: f.Name, kind: f.Type}
	list, ok := f.Type.(*arrow.ListType)
	if !ok {
		return []column{c}, nil, nil
	}
	c.listAs, c.kind = asJoined, arrow.BinaryTypes.String
	if as, ok := f.Metadata.GetValue(metaListAs); ok {
		c.listAs = as
	}
	switch c.listAs {
	case asJoined, asJSON:
		return []column{c}, nil, nil
	case asColumns:
	default:
		return nil, nil, fmt.Errorf("no list is shown as %q: use %s, %s or %s", c.listAs, asJoined, asJSON, asColumns)
	}
	if list.Elem().ID() != arrow.STRING {
		return nil, nil, fmt.Errorf("a list of %s has no choices", list.Elem())
	}
	text, _ := f.Metadata.GetValue(metaChoices)
	var pairs [][2]string // value, heading
	if err := json.Unmarshal([]byte(text), &pairs); err != nil {
		return nil, nil, fmt.Errorf("its choices cannot be read: %w: this is a bug in formetl", err)
	}
	c.kind = arrow.FixedWidthTypes.Boolean
	choices := map[string]bool{}
	columns := make([]column, 0, len(pairs))
	for _, p := range pairs {
		choices[p[0]] = true
		c.choice, c.heading = p[0], p[1]
		columns = append(columns, c)
	}
	return columns, choices, nil
}

const (
	leastWidth, mostWidth = 8, 60
	// room is what a filter's button takes beside a heading.
	room = 3
)

// measure gives the columns widths by their headings and the queue's rows.
func (e *encoder) measure() {
	for i := range e.columns {
		e.columns[i].width = widest(e.columns[i].heading) + room
	}
	left := sampleRows
	for _, p := range e.queue.Peek(sampleRows) {
		values, err := e.values(p.Batch)
		if err != nil {
			return // writing them tells
		}
		for row := p.From; row < min(p.To, p.From+left); row++ {
			for i, v := range values {
				if cell, err := v(row); err == nil {
					e.columns[i].width = max(e.columns[i].width, widthOf(cell)+1)
				}
			}
		}
		left -= p.To - p.From
	}
	for i := range e.columns {
		e.columns[i].width = min(max(e.columns[i].width, leastWidth), mostWidth)
	}
}

// widthOf is about how wide a cell is shown.
func widthOf(cell any) int {
	switch v := cell.(type) {
	case nil:
		return 0
	case string:
		return widest(v)
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return len(time.DateOnly)
		}
		return len(time.DateTime)
	case float64:
		return min(len(fmt.Sprint(v)), maxDigits)
	}
	return len(fmt.Sprint(cell))
}

// widest is the length of a text's longest line.
func widest(s string) int {
	most := 0
	for line := range strings.Lines(s) {
		most = max(most, utf8.RuneCountInString(strings.TrimRight(line, "\r\n")))
		if most >= mostWidth {
			break
		}
	}
	return most
}

// check refuses a list with a value that no column is for: the file would
// lose it. Nothing was chosen by a null or an empty text.
func check(choices map[string]bool, a *array.List) error {
	texts := a.ListValues().(*array.String)
	for row := range a.Len() {
		if a.IsNull(row) {
			continue
		}
		start, end := a.ValueOffsets(row)
		for i := int(start); i < int(end); i++ {
			if !texts.IsNull(i) && texts.Value(i) != "" && !choices[texts.Value(i)] {
				return fmt.Errorf("no choice covers a value of row %d of a batch: this is a bug in formetl", row)
			}
		}
	}
	return nil
}
