package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

// HeaderMark begins the bytes of rows. The rest of the line is a header in JSON.
const HeaderMark = "formetl rows "

// Header describes the rows of a part: the columns of the table in their order.
type Header struct {
	Columns []Column `json:"columns"`
	ID      string   `json:"id"` // the column with the result's id
	// Place is the column with the place of a row among those of its result. It is "" where
	// each result has one row.
	Place string `json:"place,omitempty"`
}

// Column is a column of the table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the server prints it
}

// Encode returns the line of the header.
func (h Header) Encode() []byte {
	data, _ := json.Marshal(h) // encoding texts cannot fail
	return slices.Concat([]byte(HeaderMark), data, []byte{'\n'})
}

// DecodeHeader reads a line of Encode.
func DecodeHeader(line []byte) (Header, error) {
	var h Header
	text, ok := bytes.CutPrefix(line, []byte(HeaderMark))
	if !ok || json.Unmarshal(text, &h) != nil || h.ID == "" || len(h.Columns) == 0 {
		return h, errors.New("the rows of a part have no header: this is a bug in formetl")
	}
	return h, nil
}

// Names returns the names of the columns for SQL, each behind a prefix.
func (h Header) Names(prefix string) string {
	list := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		list[i] = prefix + Quote(c.Name)
	}
	return strings.Join(list, ", ")
}

// index returns the column among others that has a name, -1 for none.
func index(columns []Column, name string) int {
	return slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
}

// define returns the column as SQL defines it. The ids are the key where each result has one
// row.
func (h Header) define(c Column) string {
	sql := Quote(c.Name) + " " + c.Type
	if c.Name == h.ID && h.Place == "" {
		return sql + " PRIMARY KEY"
	}
	return sql
}

// Keys and values of a field's metadata. The packages that set them are not imported.
const (
	MetaFrom     = "formetl.from"
	FromResultID = "result_id"
)

// HeaderOf describes the columns of a schema. A table needs a column with the result's id,
// because the ids say which rows a run replaces.
func (d *Dialect) HeaderOf(schema *arrow.Schema) (Header, error) {
	var h Header
	refuse := func(problem, hint string) (Header, error) {
		return h, &load.TableError{Table: "that the definition names", Problem: problem, Hint: hint}
	}
	sources := make([]string, schema.NumFields())
	seen := map[string]bool{}
	for i, f := range schema.Fields() {
		sources[i], _ = f.Metadata.GetValue(MetaFrom)
		if sources[i] == FromResultID && f.Type.ID() == arrow.INT64 && h.ID == "" {
			h.ID = f.Name
		}
		switch {
		case d.MaxName > 0 && len(f.Name) > d.MaxName:
			return refuse(fmt.Sprintf("has the column %q of more than %d bytes, and %s cuts off the rest", f.Name, d.MaxName, d.Product), "give the column a shorter name in the schema")
		case slices.Contains(d.Reserved, f.Name):
			return refuse(fmt.Sprintf("has the column %q, which is a name of %s's own", f.Name, d.Product), "give the column another name in the schema")
		case seen[f.Name]:
			return refuse(fmt.Sprintf("has the column %q twice", f.Name), "give each column a name of its own")
		}
		seen[f.Name] = true
		h.Columns = append(h.Columns, Column{f.Name, d.Types.of(f.Type)})
	}
	if d.MaxColumns > 0 && len(h.Columns) > d.MaxColumns {
		return refuse(fmt.Sprintf("has %d columns, and %s takes %d", len(h.Columns), d.Product, d.MaxColumns), "leave columns out of the schema (unknown: ignore)")
	}
	if h.ID == "" {
		return refuse("has no column with the result's id, by which a run finds the rows that it replaces", "add a column to the schema: {name: id, from: result_id, type: int64}")
	}
	if len(sources) == 3 && sources[1] == sources[2] && sources[1] != "" { // the elements of a list
		h.Place = h.Columns[1].Name
	}
	return h, nil
}
