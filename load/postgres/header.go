package postgres

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

// headerMark begins the bytes of rows. The rest of the line is a header in JSON.
const headerMark = "formetl rows "

// header describes the rows of a part: the columns of the table in their order.
type header struct {
	Columns []column `json:"columns"`
	ID      string   `json:"id"` // the column with the result's id
	// Place is the column with the place of a row among those of its result. It is "" where
	// each result has one row.
	Place string `json:"place,omitempty"`
}

// column is a column of the table.
type column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the server prints it
}

// encode returns the line of the header.
func (h header) encode() []byte {
	data, _ := json.Marshal(h) // encoding texts cannot fail
	return slices.Concat([]byte(headerMark), data, []byte{'\n'})
}

// decodeHeader reads a line of encode.
func decodeHeader(line []byte) (header, error) {
	var h header
	text, ok := bytes.CutPrefix(line, []byte(headerMark))
	if !ok || json.Unmarshal(text, &h) != nil || h.ID == "" || len(h.Columns) == 0 {
		return h, errors.New("the rows of a part have no header: this is a bug in formetl")
	}
	return h, nil
}

// names returns the names of the columns for SQL, each behind a prefix.
func (h header) names(prefix string) string {
	list := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		list[i] = prefix + quote(c.Name)
	}
	return strings.Join(list, ", ")
}

// define returns the column as CREATE TABLE and ADD COLUMN have it.
func (h header) define(c column) string {
	sql := quote(c.Name) + " " + c.Type
	if c.Name == h.ID && h.Place == "" {
		return sql + " PRIMARY KEY"
	}
	return sql
}

// Keys and values of a field's metadata. The packages that set them are not imported.
const (
	metaFrom     = "formetl.from"
	fromResultID = "result_id"
)

// headerOf describes the columns of a schema. A table needs a column with the result's id,
// because the ids say which rows a run replaces.
func headerOf(schema *arrow.Schema) (header, error) {
	var h header
	refuse := func(problem, hint string) (header, error) {
		return h, &load.TableError{Table: "that the definition names", Problem: problem, Hint: hint}
	}
	sources := make([]string, schema.NumFields())
	folded := map[string]bool{}
	for i, f := range schema.Fields() {
		sources[i], _ = f.Metadata.GetValue(metaFrom)
		if sources[i] == fromResultID && f.Type.ID() == arrow.INT64 && h.ID == "" {
			h.ID = f.Name
		}
		switch {
		case len(f.Name) > maxIdentifier:
			return refuse(fmt.Sprintf("has the column %q of more than 63 bytes, and PostgreSQL cuts off the rest", f.Name), "give the column a shorter name in the schema")
		case slices.Contains(systemColumns(), f.Name):
			return refuse(fmt.Sprintf("has the column %q, which is a name of PostgreSQL's own", f.Name), "give the column another name in the schema")
		case folded[f.Name]:
			return refuse(fmt.Sprintf("has the column %q twice", f.Name), "give each column a name of its own")
		}
		folded[f.Name] = true
		h.Columns = append(h.Columns, column{f.Name, sqlType(f.Type)})
	}
	if len(h.Columns) > maxColumns {
		return refuse(fmt.Sprintf("has %d columns, and PostgreSQL takes 1600", len(h.Columns)), "leave columns out of the schema (unknown: ignore)")
	}
	if h.ID == "" {
		return refuse("has no column with the result's id, by which a run finds the rows that it replaces", "add a column to the schema: {name: id, from: result_id, type: int64}")
	}
	if len(sources) == 3 && sources[1] == sources[2] && sources[1] != "" { // the elements of a list
		h.Place = h.Columns[1].Name
	}
	return h, nil
}

const maxColumns = 1600

// systemColumns are the names that no column may have.
func systemColumns() []string { return []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"} }

// sqlType returns the type of a column as the server prints it. load.CheckSchema has
// refused other types.
func sqlType(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.Int64Type:
		return "bigint"
	case *arrow.Float64Type:
		return "double precision"
	case *arrow.BooleanType:
		return "boolean"
	case *arrow.Date32Type:
		return "date"
	case *arrow.TimestampType:
		return "timestamp with time zone"
	case *arrow.Decimal128Type:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	case *arrow.ListType:
		return sqlType(t.Elem()) + "[]"
	}
	return "text"
}
