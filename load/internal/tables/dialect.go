package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

// OwnPrefix begins the names of formetl's own tables.
const OwnPrefix = "_formetl_"

// Table is a table by its names.
type Table struct{ Schema, Name string }

// Quote quotes a name for SQL.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// String returns the table as SQL names it.
func (t Table) String() string { return Quote(t.Schema) + "." + Quote(t.Name) }

// Own returns one of formetl's tables in the schema, as SQL names it.
func (t Table) Own(name string) string { return Quote(t.Schema) + "." + Quote(OwnPrefix+name) }

// Shown returns the table's names for people.
func (t Table) Shown() string { return t.Schema + "." + t.Name }

// Dialect is what differs from one database to the next.
type Dialect struct {
	Name    string // of the format in manifests
	Product string // for people
	Types   Types
	// MaxName and MaxColumns bound a name in bytes, and the columns of a table. 0 is no bound.
	MaxName, MaxColumns int
	Reserved            []string // names that no column may have
	// Columns is the query for the names and types of a table's columns, in their order. Its
	// parameters are the names of schema and table.
	Columns string
	// NoTable tells whether a statement failed because a table or its schema is missing.
	NoTable func(error) bool
}

// Types are the names of types, as the database prints them.
type Types struct {
	Integer, Float, Boolean, Date, Timestamp, Text string
	Decimal                                        string // a format for precision and scale
}

// of returns the type of a column.
func (n Types) of(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.Int64Type:
		return n.Integer
	case *arrow.Float64Type:
		return n.Float
	case *arrow.BooleanType:
		return n.Boolean
	case *arrow.Date32Type:
		return n.Date
	case *arrow.TimestampType:
		return n.Timestamp
	case *arrow.Decimal128Type:
		return fmt.Sprintf(n.Decimal, t.Precision, t.Scale)
	case *arrow.ListType:
		return n.of(t.Elem()) + "[]"
	}
	return n.Text
}

// ParseTable reads the names of a table from its address below that of the database. A
// table's name may hold dots, a schema's may not.
func (d *Dialect) ParseTable(text string) (Table, error) {
	schema, name, ok := strings.Cut(text, ".")
	t := Table{schema, name}
	problem := ""
	switch {
	case !ok || schema == "" || name == "":
		problem = "needs the name of a schema and a name of its own"
	case d.MaxName > 0 && (len(schema) > d.MaxName || len(name) > d.MaxName):
		problem = fmt.Sprintf("has a name of more than %d bytes, and %s cuts off the rest", d.MaxName, d.Product)
	case strings.HasPrefix(name, OwnPrefix):
		problem = "has a name that is kept for formetl's own tables"
	case strings.ContainsRune(text, 0):
		problem = "has a name with a NUL character"
	}
	if problem != "" {
		return t, &load.TableError{Table: text, Problem: problem, Hint: "write another table: in the definition, such as forms.feedback"}
	}
	return t, nil
}

// Queries does statements on one connection to a database. A value of a row is nil for null,
// and a text or bytes otherwise. A parameter is a text, a number, nil, bytes, or a list of
// texts, which the statement casts to text[] first.
type Queries interface {
	// Query does one statement and returns its rows.
	Query(ctx context.Context, sql string, args ...any) ([][][]byte, error)
	// QueryBytes is Query for rows of texts and bytes. Bytes come as they are.
	QueryBytes(ctx context.Context, sql string, args ...any) ([][][]byte, error)
	// Exec does one statement and returns how many rows it changed.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	// Script does several statements without parameters.
	Script(ctx context.Context, sql string) error
}

// Session is a connection in use for one table.
type Session struct {
	Queries
	Dialect *Dialect
	Table   Table
}

// Atomically calls do within a transaction. rollback ends it without its effects.
func (s *Session) Atomically(ctx context.Context, do func() error, rollback func()) error {
	if err := s.Script(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := do(); err != nil {
		rollback()
		return err
	}
	return s.Script(ctx, "COMMIT")
}
