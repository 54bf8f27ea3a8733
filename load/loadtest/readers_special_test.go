package loadtest_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
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
	compare(t, batch, query(t, openDuckDB(t), schema,
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
	compare(t, batch, query(t, openDuckDB(t), schema, "SELECT * FROM read_csv("+file+", header=true)"))
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
	db, schema := openDuckDB(t), batch.Schema()
	columns := columnsOf(schema, duckType)
	file := writeFile(t, parquetout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_parquet("+file+")"))
	file = writeFile(t, jsonout.NDJSON(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_json("+file+", format='newline_delimited', columns="+columns+")"))
	file = writeFile(t, csvout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM "+fmt.Sprintf(readCSV, file, columns)))
}

func TestDuckDBReadsLongStrings(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "text", arrow.BinaryTypes.String)
	long := strings.Repeat("0123456789\"\n,ü€", 70_000)
	batch := loadtest.Build(mem, schema, 4, func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			b.Append(long)
		}
	})
	defer batch.Release()
	db := openDuckDB(t)
	file := writeFile(t, parquetout.Format(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_parquet("+file+")"))
	file = writeFile(t, jsonout.JSON(), load.EncodeOptions{}, "", batch)
	compare(t, batch, query(t, db, schema, "SELECT * FROM read_json("+file+", format='array')"))
	file = writeFile(t, csvout.Format(), load.EncodeOptions{}, "", batch)
	// A row of more than 2 MB needs max_line_size.
	compare(t, batch, query(t, db, schema, "SELECT * FROM "+fmt.Sprintf(readCSV, file, columnsOf(schema, duckType)+", max_line_size=10000000")))
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
	db := openDuckDB(t)
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

// memoryFile is a file as xitongsys/parquet-go takes it.
type memoryFile struct{ *bytes.Reader }

func (f memoryFile) Write([]byte) (int, error)                 { return 0, io.ErrClosedPipe }
func (f memoryFile) Close() error                              { return nil }
func (f memoryFile) Create(string) (source.ParquetFile, error) { return nil, io.ErrClosedPipe }
func (f memoryFile) Open(string) (source.ParquetFile, error) {
	_, err := f.Seek(0, io.SeekStart)
	return memoryFile{bytes.NewReader(f.bytes())}, err
}

func (f memoryFile) bytes() []byte {
	b := make([]byte, f.Size())
	_, _ = f.ReadAt(b, 0)
	return b
}

func TestXitongsysReadsParquet(t *testing.T) {
	for _, codec := range []string{"", "snappy", "gzip", "none"} {
		forEach(t, func(t *testing.T, batch arrow.RecordBatch) {
			path := writeFile(t, parquetout.Format(), load.EncodeOptions{Compression: codec}, "", batch)
			data, err := os.ReadFile(strings.Trim(path, "'"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, batch, readXitongsys(t, data, batch.Schema(), int(batch.NumRows())))
		})
	}
}

func readXitongsys(t *testing.T, data []byte, schema *arrow.Schema, rows int) [][]string {
	t.Helper()
	r, err := reader.NewParquetColumnReader(memoryFile{bytes.NewReader(data)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.ReadStop()
	if r.GetNumRows() != int64(rows) {
		t.Fatalf("%d rows, not %d", r.GetNumRows(), rows)
	}
	out := make([][]string, rows)
	if rows == 0 {
		return out
	}
	for i, f := range schema.Fields() {
		values, repeated, defined, err := r.ReadColumnByIndex(int64(i), int64(rows))
		if err != nil {
			t.Fatal(err)
		}
		for row, text := range assemble(f.Type, values, repeated, defined) {
			out[row] = append(out[row], text)
		}
	}
	return out
}

// assemble makes rows of a column's values and levels; every column is
// nullable.
func assemble(t arrow.DataType, values []any, repeated, defined []int32) []string {
	var rows []string
	list, isList := t.(*arrow.ListType)
	if !isList {
		for _, v := range values {
			rows = append(rows, xitongsysCell(t, v))
		}
		return rows
	}
	var elements []string
	flush := func(at int) {
		row := loadtest.Null
		if defined[at] > 0 {
			row = loadtest.ListText(elements)
		}
		rows, elements = append(rows, row), nil
	}
	for i, v := range values {
		if i > 0 && repeated[i] == 0 {
			flush(i - 1)
		}
		if defined[i] >= 2 {
			elements = append(elements, xitongsysCell(list.Elem(), v))
		}
	}
	flush(len(values) - 1)
	return rows
}

// xitongsysCell turns a value of the reader into the form of loadtest.Cell.
func xitongsysCell(t arrow.DataType, v any) string {
	switch v := v.(type) {
	case nil:
		return loadtest.Null
	case float64:
		return loadtest.FloatText(v)
	case int32:
		return xitongsysCell(t, int64(v))
	case int64:
		switch t := t.(type) {
		case *arrow.Date32Type:
			return arrow.Date32(v).ToTime().Format(time.DateOnly)
		case *arrow.TimestampType:
			return loadtest.TimeText(time.UnixMicro(v))
		case *arrow.Decimal128Type:
			return decimal128.FromI64(v).ToString(t.Scale)
		}
		return fmt.Sprint(v)
	case string:
		if d, ok := t.(*arrow.Decimal128Type); ok {
			return wideDecimal(v).ToString(d.Scale)
		}
		return v
	}
	return fmt.Sprint(v)
}

// wideDecimal reads two's complement, the highest byte first.
func wideDecimal(s string) decimal128.Num {
	high, low := int64(0), uint64(0)
	if s[0]&0x80 != 0 {
		high, low = -1, math.MaxUint64
	}
	for i := range len(s) {
		high = high<<8 | int64(low>>56)
		low = low<<8 | uint64(s[i])
	}
	return decimal128.New(high, low)
}

// A column that looks like a few choices at first and then outgrows its
// dictionary has pages of two encodings in one chunk: both readers take them.
func TestReadersTakeMixedEncodings(t *testing.T) {
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
	compare(t, batch, query(t, openDuckDB(t), schema, "SELECT * FROM read_parquet("+file+")"))
	data, err := os.ReadFile(strings.Trim(file, "'"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, batch, readXitongsys(t, data, schema, int(batch.NumRows())))
}

// appendText appends the text, or a null in every tenth row.
func appendText(b *array.StringBuilder, row int, text string) {
	if row%10 == 9 {
		b.AppendNull()
		return
	}
	b.Append(text)
}
