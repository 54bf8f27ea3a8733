package loadtest_test

import (
	"fmt"
	"strings"
	"testing"

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

// The short call of the README: everything as text, null and "" apart.
func TestDuckDBReadsCSVAsText(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	text := loadtest.HostileStrings()
	schema := loadtest.Columns("a", arrow.BinaryTypes.String, "b", arrow.BinaryTypes.String)
	batch := loadtest.Build(mem, schema, 2*len(text), func(b array.Builder, column, row int) {
		if column == 1 && row >= len(text) {
			b.AppendNull()
			return
		}
		b.(*array.StringBuilder).Append(text[row%len(text)])
	})
	defer batch.Release()
	file := writeFile(t, csvout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, duckdb.Open(t, "UTC"), schema,
		"SELECT * FROM read_csv("+file+", all_varchar=true, allow_quoted_nulls=false)"))
}

// A single column of CSV keeps its rows in DuckDB, and null and "" are one.
func TestDuckDBReadsASingleColumn(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("n", arrow.PrimitiveTypes.Int64)
	batch := loadtest.Random(mem, schema, 100, 3)
	defer batch.Release()
	file := writeFile(t, csvout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, duckdb.Open(t, "UTC"), schema, "SELECT * FROM read_csv("+file+", header=true)"))
}

func TestDuckDBReadsNames(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	var fields []arrow.Field
	for _, name := range loadtest.HostileNames() {
		// DuckDB's names differ in more than case.
		if name != "A" {
			fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
		}
	}
	batch := loadtest.Random(mem, arrow.NewSchema(fields, nil), 30, 5)
	defer batch.Release()
	db, schema := duckdb.Open(t, "UTC"), batch.Schema()
	columns := columnsOf(schema, duckType)
	file := writeFile(t, parquetout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_parquet("+file+")"))
	file = writeFile(t, jsonout.NDJSON(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_json("+file+", format='newline_delimited', columns="+columns+")"))
	file = writeFile(t, csvout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM "+fmt.Sprintf(readCSV, file, columns)))
}

// Readers skip what the statistics exclude: a filter finds every row whose
// value the plain rows have. Decimals of every width, negative and positive,
// over several row groups.
func TestDuckDBFiltersByStatistics(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	decimal := func(p int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: 2} }
	schema := loadtest.Columns("d9", decimal(9), "d18", decimal(18), "d25", decimal(25), "d38", decimal(38),
		"f", arrow.PrimitiveTypes.Float64, "day", arrow.FixedWidthTypes.Date32, "moment", loadtest.Timestamp(), "s", arrow.BinaryTypes.String)
	const rows = 150_000
	batch := loadtest.Build(mem, schema, rows, func(b array.Builder, _, row int) {
		n := int64(row - rows/2)
		switch b := b.(type) {
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(n))
		case *array.Float64Builder:
			b.Append(float64(n))
		case *array.Date32Builder:
			b.Append(arrow.Date32(n))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(n))
		case *array.StringBuilder:
			b.Append(fmt.Sprintf("%06d", row))
		}
	})
	defer batch.Release()
	file := writeFile(t, parquetout.Format(), load.EncodeOptions{}, "", batch)
	db := duckdb.Open(t, "UTC")
	count := loadtest.Columns("n", arrow.PrimitiveTypes.Int64)
	for where, want := range map[string]int{
		"d9 < -749": 100, "d18 < -749": 100, "d25 < -749": 100, "d38 < -749": 100,
		"d9 = -0.01": 1, "d18 = -0.01": 1, "d25 = -0.01": 1, "d38 = -0.01": 1,
		"d25 > 748.99": 100, "d38 > 748.99": 100, "d25 = 0": 1, "d38 = 0": 1,
		"f < -74900": 100, "day < DATE '1970-01-01'": rows / 2, "moment < '1970-01-01 00:00:00+00'": rows / 2,
		"s >= '149900'": 100, "s = '000000'": 1,
	} {
		got := query(t, db, count, "SELECT count(*) AS n FROM read_parquet("+file+") WHERE "+where)
		if got[0][0] != fmt.Sprint(want) {
			t.Errorf("WHERE %s finds %s rows, not %d", where, got[0][0], want)
		}
	}
}

// A column that looks like a few choices at first may have a dictionary of megabytes.
func TestReadersTakeLargeDictionaries(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("s", arrow.BinaryTypes.String, "l", loadtest.ListOf(arrow.BinaryTypes.String))
	pad := strings.Repeat("x", 150)
	batch := loadtest.Build(mem, schema, 24_000, func(b array.Builder, _, row int) {
		text := "choice"
		if row > 8500 {
			text = fmt.Sprint(row, pad)
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			appendText(b, row, text)
		case *array.ListBuilder:
			b.Append(true)
			appendText(b.ValueBuilder().(*array.StringBuilder), row, text)
		}
	})
	defer batch.Release()
	file := writeFile(t, parquetout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, duckdb.Open(t, "UTC"), schema, "SELECT * FROM read_parquet("+file+")"))
}

// appendText appends the text, or a null in every tenth row.
func appendText(b *array.StringBuilder, row int, text string) {
	if row%10 == 9 {
		b.AppendNull()
		return
	}
	b.Append(text)
}
