// Package lists reads from an Arrow schema how lists are written in tables:
// joined into one text, as JSON, or as a column for each choice. The formats
// for people (CSV, xlsx) share it. Begin reading with Of.
package lists

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
)

// The keys of a field's metadata that say how its lists are written. They must
// equal schemas.MetaListAs and schemas.MetaChoices, which load does not import.
const (
	metaListAs  = "formetl.list_as"
	metaChoices = "formetl.choices"
)

// The ways to write a list. The default is joined.
const (
	Joined  = "joined"
	JSON    = "json"
	Columns = "columns"
)

// Choice is a value of a list that has a column of its own.
type Choice struct{ Value, Heading string }

// Field is how a field is written: as one column, or as one column for each
// choice.
type Field struct {
	As       string   // "" where the field is no list
	Headings []string // the field's name, or the headings of its choices
	Choices  []Choice // set if the list has a column for each choice
}

// Of reads how the schema's fields are written. It is an error if two headings
// are equal or there is none.
func Of(schema *arrow.Schema) ([]Field, error) {
	fields := make([]Field, schema.NumFields())
	taken := map[string]bool{}
	for i, f := range schema.Fields() {
		var err error
		if fields[i], err = field(f); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		for _, h := range fields[i].Headings {
			if taken[h] {
				return nil, fmt.Errorf("the heading %q is used twice: this is a bug in formetl", h)
			}
			taken[h] = true
		}
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("column %q is a list without choices, and there is no other: list its choices, or add the result's id", schema.Field(0).Name)
	}
	return fields, nil
}

func field(f arrow.Field) (Field, error) {
	shown := Field{Headings: []string{f.Name}}
	list, ok := f.Type.(*arrow.ListType)
	if !ok {
		return shown, nil
	}
	shown.As = Joined
	if as, ok := f.Metadata.GetValue(metaListAs); ok {
		shown.As = as
	}
	switch shown.As {
	case Joined, JSON:
		return shown, nil
	case Columns:
	default:
		return shown, fmt.Errorf("no list is shown as %q: use %s, %s or %s", shown.As, Joined, JSON, Columns)
	}
	if list.Elem().ID() != arrow.STRING {
		return shown, fmt.Errorf("a list of %s has no choices", list.Elem())
	}
	text, _ := f.Metadata.GetValue(metaChoices)
	var pairs [][2]string
	if err := json.Unmarshal([]byte(text), &pairs); err != nil {
		return shown, fmt.Errorf("its choices cannot be read: %w: this is a bug in formetl", err)
	}
	shown.Headings = nil
	for _, p := range pairs {
		shown.Headings = append(shown.Headings, p[1])
		shown.Choices = append(shown.Choices, Choice{Value: p[0], Heading: p[1]})
	}
	return shown, nil
}

// AppendJoined appends an element of a joined list, with a \ before each | and \.
func AppendJoined(dst []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, `|\`)
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), '\\', s[i])
		s = s[i+1:]
	}
}

// Join returns the appender of a column of lists that are written as one
// text: elements with | between them, and \N for one that is null. timestamp is
// that of cells.Text.
func Join(a *array.List, timestamp func(dst []byte, us int64) []byte) cells.Appender {
	var element cells.Appender
	if text, ok := a.ListValues().(*array.String); ok {
		element = func(dst []byte, i int) []byte { return AppendJoined(dst, text.Value(i)) }
	} else {
		element = cells.Text(a.ListValues(), timestamp)
	}
	return func(dst []byte, row int) []byte { return cells.AppendList(dst, a, row, '|', `\N`, element) }
}
