package readback

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cell is a value of a row as text, or a list of such. The zero Cell is null.
//
// Texts of typed values are those of NDJSON: 5, 1.50, true, 2026-01-31, and
// timestamps as RFC 3339 with the zone's offset.
type Cell struct {
	kind kind
	text string
	list []Cell
}

type kind uint8

const (
	null kind = iota
	text
	list
)

// Text is a cell that holds a value.
func Text(s string) Cell { return Cell{kind: text, text: s} }

// List is a cell that holds several values, or none.
func List(cells ...Cell) Cell { return Cell{kind: list, list: cells} }

// IsNull tells whether the cell holds nothing.
func (c Cell) IsNull() bool { return c.kind == null }

// String is the cell as people read it, and equal for equal cells alone.
func (c Cell) String() string {
	switch c.kind {
	case text:
		return strconv.Quote(c.text)
	case list:
		elements := make([]string, len(c.list))
		for i, e := range c.list {
			elements[i] = e.String()
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	return "null"
}

// Value is the text of a cell, "" for null and for a list.
func (c Cell) Value() string { return c.text }

// Row is a row by its columns. Those that are null are left out.
type Row map[string]Cell

// Column is what a manifest says of a column.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as in a schema file: int64, list<string>
	From string `json:"from"` // result_id, meta:ID or item:ID
}

// Layout says how cells that are not text are to be understood.
type Layout struct {
	Zone    *time.Location // of the account
	Columns []Column
}

// has tells whether there is a column of that name.
func (l Layout) has(name string) bool {
	return slices.ContainsFunc(l.Columns, func(c Column) bool { return c.Name == name })
}

// stamp is an instant as the text formats write it.
func (l Layout) stamp(at time.Time) string {
	return at.In(l.Zone).Format("2006-01-02T15:04:05.999999Z07:00")
}

// joined reads a list as CSV shows it: elements joined by |, with \
// before a | or \ inside them, \N for null.
func joined(s string) Cell {
	if s == "" {
		return List()
	}
	cells, element, isNull := []Cell{}, strings.Builder{}, false
	end := func() {
		c := Text(element.String())
		if isNull {
			c = Cell{}
		}
		cells, isNull = append(cells, c), false
		element.Reset()
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '|':
			end()
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == 'N':
			isNull = true
			i++
		case s[i] == '\\' && i+1 < len(s):
			i++
			element.WriteByte(s[i])
		default:
			element.WriteByte(s[i])
		}
	}
	end()
	return List(cells...)
}
