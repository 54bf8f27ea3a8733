package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/formetl/formetl/load"
)

// typeOf returns the PostgreSQL type of a column, as the server prints it.
func typeOf(t arrow.DataType) string {
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
		return typeOf(t.Elem()) + "[]"
	}
	return "text"
}

// errStopped ends the reading of rows that no load needs any more.
var errStopped = errors.New("no more rows are needed")

// copyRows copies the rows of a load into a table. An error of reading the rows is a
// *readError.
func copyRows(ctx context.Context, c *pgx.Conn, into pgx.Identifier, r load.TableRows) error {
	var failed error
	next, stop := iter.Pull(func(yield func(arrow.RecordBatch) bool) {
		failed = r.Each(ctx, func(b arrow.RecordBatch) error {
			if !yield(b) {
				return errStopped
			}
			return nil
		})
	})
	defer stop()
	columns := make([]string, r.Schema.NumFields())
	for i, f := range r.Schema.Fields() {
		columns[i] = f.Name
	}
	var cells []func(row int) any
	row, rows := 0, 0
	values := make([]any, len(columns))
	_, err := c.CopyFrom(ctx, into, columns, pgx.CopyFromFunc(func() ([]any, error) {
		for row == rows {
			b, ok := next()
			if !ok {
				return nil, failed
			}
			row, rows, cells = 0, int(b.NumRows()), cells[:0]
			for _, column := range b.Columns() {
				cells = append(cells, cellsOf(column))
			}
		}
		for i, cell := range cells {
			values[i] = cell(row)
		}
		row++
		return values, nil
	}))
	if failed != nil && !errors.Is(failed, errStopped) {
		return &readError{failed}
	}
	return err
}

// readError is an error of reading the rows that are to be loaded, not of the database.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// cellsOf returns a function that gives the values of a column as the driver takes them.
func cellsOf(column arrow.Array) func(row int) any {
	value := valuesOf(column)
	return func(row int) any {
		if column.IsNull(row) {
			return nil
		}
		return value(row)
	}
}

// textOf returns a text as the server takes it: without NUL characters, and in valid UTF-8.
func textOf(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func valuesOf(column arrow.Array) func(row int) any {
	switch a := column.(type) {
	case *array.Int64:
		return func(row int) any { return a.Value(row) }
	case *array.Float64:
		return func(row int) any { return a.Value(row) }
	case *array.Boolean:
		return func(row int) any { return a.Value(row) }
	case *array.String:
		return func(row int) any { return textOf(a.Value(row)) }
	case *array.Date32:
		return func(row int) any { return a.Value(row).ToTime() }
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return func(row int) any { return a.Value(row).ToTime(unit) }
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(row int) any {
			return pgtype.Numeric{Int: a.Value(row).BigInt(), Exp: -scale, Valid: true}
		}
	case *array.List:
		element := cellsOf(a.ListValues())
		return func(row int) any {
			from, to := a.ValueOffsets(row)
			list := make(pgtype.FlatArray[any], 0, to-from)
			for i := from; i < to; i++ {
				list = append(list, element(int(i)))
			}
			return list
		}
	}
	return func(int) any {
		return fmt.Errorf("a column has the type %s; this is a bug in formetl", column.DataType())
	}
}
