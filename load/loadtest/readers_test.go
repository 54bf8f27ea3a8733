package loadtest_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/load/parquetout"
)

// These tests read what the encoders write with DuckDB. They stand in one package because
// DuckDB's library takes seconds to link.

// writeFile encodes the batch into a file and returns its path, quoted for SQL.
func writeFile(t *testing.T, format load.Format, o load.EncodeOptions, codec string, batch arrow.RecordBatch) string {
	t.Helper()
	var out bytes.Buffer
	z, err := load.Compress(&out, codec)
	if err != nil {
		t.Fatal(err)
	}
	e, err := format.New(z, batch.Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file"+format.Extension+load.CompressionExtension(codec))
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return quote(path)
}

// quote makes a string literal of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// query returns the rows of a query in the form of loadtest.Text.
func query(t *testing.T, db *sql.DB, schema *arrow.Schema, text string) [][]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		values, row := make([]any, len(names)), make([]string, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		for i := range values {
			row[i] = cell(schema.Field(i).Type, *values[i].(*any))
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	for i, f := range schema.Fields() {
		if names[i] != f.Name {
			t.Errorf("column %d is named %q, not %q", i, names[i], f.Name)
		}
	}
	return out
}

// cell turns a value of the driver into the form of loadtest.Cell.
func cell(t arrow.DataType, v any) string {
	switch v := v.(type) {
	case nil:
		return loadtest.Null
	case float64:
		return loadtest.FloatText(v)
	case time.Time:
		if t.ID() == arrow.DATE32 {
			return v.Format(time.DateOnly)
		}
		return loadtest.TimeText(v)
	case duckdb.Decimal:
		return decimal128.FromBigInt(v.Value).ToString(int32(v.Scale))
	case *big.Int:
		return v.String()
	case []any:
		elements := make([]string, len(v))
		for i, e := range v {
			elements[i] = cell(t.(*arrow.ListType).Elem(), e)
		}
		return loadtest.ListText(elements)
	}
	return fmt.Sprint(v)
}

// duckType is the type that DuckDB is told to read a column as.
func duckType(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StringType:
		return "VARCHAR"
	case *arrow.Int64Type:
		return "BIGINT"
	case *arrow.Float64Type:
		return "DOUBLE"
	case *arrow.BooleanType:
		return "BOOLEAN"
	case *arrow.Date32Type:
		return "DATE"
	case *arrow.TimestampType:
		return "TIMESTAMPTZ"
	case *arrow.Decimal128Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case *arrow.ListType:
		return duckType(t.Elem()) + "[]"
	}
	panic(t)
}

// hostile is a batch of the strings that break readers, in every position.
func hostile(mem memory.Allocator) arrow.RecordBatch {
	text := loadtest.HostileStrings()
	schema := loadtest.Columns("first", arrow.BinaryTypes.String, "id", arrow.PrimitiveTypes.Int64,
		"list", loadtest.ListOf(arrow.BinaryTypes.String), "maybe", arrow.BinaryTypes.String, "last", arrow.BinaryTypes.String)
	return loadtest.Build(mem, schema, len(text), func(b array.Builder, column, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			if column == 3 && row%2 == 0 {
				b.AppendNull()
				return
			}
			b.Append(text[row])
		case *array.ListBuilder:
			if row%9 == 4 {
				b.AppendNull()
				return
			}
			b.Append(true)
			if row%9 != 5 {
				b.ValueBuilder().(*array.StringBuilder).AppendValues([]string{text[row], text[len(text)-1-row], ""}, nil)
			}
		}
	})
}

func compare(t *testing.T, batch arrow.RecordBatch, got [][]string) {
	t.Helper()
	if diff := loadtest.Differs(batch.Schema(), loadtest.Text(batch), got); diff != "" {
		t.Error(diff)
	}
}

// batches are what every reader reads.
func batches(mem memory.Allocator) map[string]arrow.RecordBatch {
	return map[string]arrow.RecordBatch{
		"hostile strings": hostile(mem),
		"all types":       loadtest.Random(mem, loadtest.AllTypes(), 500, 20),
		"no rows":         loadtest.Random(mem, loadtest.AllTypes(), 0, 22),
	}
}

// forEach runs a test for every batch.
func forEach(t *testing.T, test func(t *testing.T, batch arrow.RecordBatch)) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for name, batch := range batches(mem) {
		t.Run(name, func(t *testing.T) { test(t, batch) })
		batch.Release()
	}
}

func TestDuckDBReadsParquet(t *testing.T) {
	db := duckdb.Open(t, "UTC")
	for _, codec := range []string{"", "none", "snappy", "gzip"} {
		forEach(t, func(t *testing.T, batch arrow.RecordBatch) {
			file := writeFile(t, parquetout.Format(), load.EncodeOptions{Compression: codec}, "", batch)
			compare(t, batch, query(t, db, batch.Schema(), "SELECT * FROM read_parquet("+file+")"))
		})
	}
}

// columnsOf is the argument that names DuckDB's types.
func columnsOf(schema *arrow.Schema, of func(arrow.DataType) string) string {
	parts := make([]string, 0, schema.NumFields())
	for _, f := range schema.Fields() {
		parts = append(parts, quote(f.Name)+": "+quote(of(f.Type)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func TestDuckDBReadsJSON(t *testing.T) {
	db := duckdb.Open(t, "UTC")
	for _, codec := range []string{"", "gzip", "zstd"} {
		for _, format := range []load.Format{jsonout.NDJSON(), jsonout.JSON()} {
			forEach(t, func(t *testing.T, batch arrow.RecordBatch) {
				file := writeFile(t, format, load.EncodeOptions{Zone: loadtest.Chicago()}, codec, batch)
				shape := map[string]string{"ndjson": "newline_delimited", "json": "array"}[format.Name]
				compare(t, batch, query(t, db, batch.Schema(), "SELECT * FROM read_json("+file+
					", format='"+shape+"', columns="+columnsOf(batch.Schema(), duckType)+")"))
			})
		}
	}
}

// readCSV is the call that reads formetl's CSV equal, null and "" apart.
const readCSV = `read_csv(%s, header=true, delim=',', quote='"', escape='"', nullstr='', allow_quoted_nulls=false,
	auto_detect=false, strict_mode=true, columns=%s)`

func TestDuckDBReadsCSV(t *testing.T) {
	db := duckdb.Open(t, "UTC")
	for _, codec := range []string{"", "gzip", "zstd"} {
		forEach(t, func(t *testing.T, batch arrow.RecordBatch) {
			file := writeFile(t, csvout.Format(), load.EncodeOptions{Zone: loadtest.Chicago()}, codec, batch)
			compare(t, batch, query(t, db, batch.Schema(), selectCSV(batch.Schema(), file)))
		})
	}
}

// splitList is the expression that makes a list of a field again: a | that no
// \ stands before ends an element, \N is a null element, and other characters
// lose the \ before them.
const splitList = `CASE WHEN %[1]s = '' THEN [] ELSE list_transform(
	regexp_extract_all(%[1]s || '|', '((?:[^|\\]|\\.)*)\|', 1),
	lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END::%[2]s AS %[1]s`

// selectCSV reads a file of formetl's CSV with DuckDB, lists as lists.
func selectCSV(schema *arrow.Schema, file string) string {
	columns := make([]string, 0, schema.NumFields())
	for _, f := range schema.Fields() {
		name := `"` + strings.ReplaceAll(f.Name, `"`, `""`) + `"`
		if f.Type.ID() == arrow.LIST {
			name = fmt.Sprintf(splitList, name, duckType(f.Type))
		}
		columns = append(columns, name)
	}
	types := columnsOf(schema, func(t arrow.DataType) string {
		if t.ID() == arrow.LIST {
			return "VARCHAR"
		}
		return duckType(t)
	})
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + fmt.Sprintf(readCSV, file, types)
}
