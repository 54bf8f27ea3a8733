package cells

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The keys of a field's metadata that say how its lists are written. They must
// equal schemas.MetaListAs and schemas.MetaChoices, which load does not import.
const (
	metaListAs  = "formetl.list_as"
	metaChoices = "formetl.choices"
)

// The ways to write a list in a table. The default is joined.
const (
	ListJoined  = "joined"
	ListJSON    = "json"
	ListColumns = "columns"
)

// Field says how a field of the schema is written: as one column, or as one
// column for each choice.
type Field struct {
	As       string   // the way to write a list; "" where the field is no list
	Headings []string // the field's name, or the headings of its choices
	// choices maps each value of a list that has a column to the index of its heading.
	choices map[string]int
}

// Fields returns, for each field of the schema, how the field is written. It returns an error
// if two headings are equal or if the schema gives no heading at all.
func Fields(schema *arrow.Schema) ([]Field, error) {
	fields := make([]Field, schema.NumFields())
	taken := map[string]bool{}
	for i, f := range schema.Fields() {
		var err error
		if fields[i], err = field(f); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		for _, h := range fields[i].Headings {
			if taken[h] {
				return nil, fmt.Errorf("the heading %q is used twice; this is a bug in formetl", h)
			}
			taken[h] = true
		}
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("column %q has list_as: columns but no choices, and there is no other column, so that there is nothing to write; list its choices in the schema, or add a column from result_id", schema.Field(0).Name)
	}
	return fields, nil
}

func field(f arrow.Field) (Field, error) {
	shown := Field{Headings: []string{f.Name}}
	list, ok := f.Type.(*arrow.ListType)
	if !ok {
		return shown, nil
	}
	shown.As = ListJoined
	if as, ok := f.Metadata.GetValue(metaListAs); ok {
		shown.As = as
	}
	switch shown.As {
	case ListJoined, ListJSON:
		return shown, nil
	case ListColumns:
	default:
		return shown, fmt.Errorf("unknown list_as %q; use %s, %s or %s", shown.As, ListJoined, ListJSON, ListColumns)
	}
	if list.Elem().ID() != arrow.STRING {
		return shown, fmt.Errorf("a list of %s has no choices", list.Elem())
	}
	text, _ := f.Metadata.GetValue(metaChoices)
	var pairs [][2]string
	if err := json.Unmarshal([]byte(text), &pairs); err != nil {
		return shown, fmt.Errorf("its choices cannot be read: %w; this is a bug in formetl", err)
	}
	shown.Headings, shown.choices = nil, make(map[string]int, len(pairs))
	for n, p := range pairs {
		shown.Headings = append(shown.Headings, p[1])
		shown.choices[p[0]] = n
	}
	return shown, nil
}

// Chosen returns a function that returns, for each element of a row's list, the index of the
// heading of its choice. The index is -1 for a null or an empty text, unless that text is a
// listed choice. It is an error if another value has no column, because a file would lose the
// value. f.As must be ListColumns.
func (f Field) Chosen(a *array.List) (func(row int) []int, error) {
	if a.Len() == 0 {
		return nil, nil
	}
	texts := a.ListValues().(*array.String)
	first, _ := a.ValueOffsets(0)
	_, last := a.ValueOffsets(a.Len() - 1)
	numbers := make([]int, last-first)
	for row := range a.Len() {
		if a.IsNull(row) {
			continue
		}
		start, end := a.ValueOffsets(row)
		for i := start; i < end; i++ {
			value := texts.Value(int(i))
			n, known := f.choices[value]
			switch {
			case known && texts.IsValid(int(i)):
				numbers[i-first] = n
			case value == "" || texts.IsNull(int(i)):
				numbers[i-first] = -1
			default:
				return nil, fmt.Errorf("a value of row %d of a batch is not one of the choices; this is a bug in formetl", row)
			}
		}
	}
	return func(row int) []int {
		start, end := a.ValueOffsets(row)
		return numbers[start-first : end-first]
	}, nil
}

// Text returns an appender for a list that is written as one text. timestamp appends an
// instant, as for the function Text. A list that is written as JSON uses the zone instead.
func (f Field) Text(a *array.List, zone *time.Location, timestamp func(dst []byte, us int64) []byte) Appender {
	if f.As == ListJSON {
		return JSON(a, zone)
	}
	var element Appender
	if texts, ok := a.ListValues().(*array.String); ok {
		element = func(dst []byte, i int) []byte { return AppendJoined(dst, texts.Value(i)) }
	} else {
		element = Text(a.ListValues(), timestamp)
	}
	return func(dst []byte, row int) []byte { return AppendList(dst, a, row, '|', `\N`, element) }
}

// AppendJoined appends s as an element of a joined list, with a \ before each | and \.
func AppendJoined(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		if s[i] == '|' || s[i] == '\\' {
			dst = append(append(dst, s[start:i]...), '\\')
			start = i
		}
	}
	return append(dst, s[start:]...)
}
