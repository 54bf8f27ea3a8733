package parquetout_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/parquetout"
)

func TestConformance(t *testing.T) { loadtest.Encoder(t, parquetout.Format(), read, loadtest.Limits{}) }

// write returns the file of the batches.
func write(t testing.TB, o load.EncodeOptions, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := parquetout.New(&out, batches[0].Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := e.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// footer returns the metadata of a file as arrow-go reads it.
func footer(t *testing.T, data []byte) *metadata.FileMetaData {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r.MetaData()
}

// chunk returns the metadata of a column in the first row group.
func chunk(t *testing.T, data []byte, column int) *metadata.ColumnChunkMetaData {
	t.Helper()
	c, err := footer(t, data).RowGroup(0).ColumnChunk(column)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func checked(t *testing.T) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func TestFooter(t *testing.T) {
	batch := loadtest.Random(checked(t), loadtest.AllTypes(), 10, 1)
	defer batch.Release()
	pairs := []load.KeyValue{{Key: "z", Value: "1"}, {Key: "a", Value: "ü\n"}, {Key: "m", Value: ""}}
	f := footer(t, write(t, load.EncodeOptions{Metadata: pairs}, batch))
	if got := f.GetCreatedBy(); got != "formetl version 1" {
		t.Errorf("created by %q", got)
	}
	md := f.KeyValueMetadata()
	if !slices.Equal(md.Keys(), []string{"z", "a", "m"}) || !slices.Equal(md.Values(), []string{"1", "ü\n", ""}) {
		t.Errorf("the metadata is %q %q", md.Keys(), md.Values())
	}
}

func TestRowGroups(t *testing.T) {
	mem := checked(t)
	ids := loadtest.Random(mem, loadtest.Columns("n", arrow.PrimitiveTypes.Int64), 70_000, 1)
	defer ids.Release()
	f := footer(t, write(t, load.EncodeOptions{}, ids, ids))
	rows := make([]int64, 0, len(f.RowGroups))
	for g := range f.RowGroups {
		rows = append(rows, f.RowGroup(g).NumRows())
	}
	if want := []int64{65_536, 65_536, 8_928}; !slices.Equal(rows, want) {
		t.Errorf("row groups of %d rows, not %d", rows, want)
	}
}

// Long values end a row group by bytes: memory stays bounded.
func TestRowGroupsByBytes(t *testing.T) {
	needs.Slow(t)
	mem := checked(t)
	text := strings.Repeat("0123456789abcdef", 1<<12)
	batch := loadtest.Build(mem, loadtest.Columns("s", arrow.BinaryTypes.String), 2500, func(b array.Builder, _, row int) {
		b.(*array.StringBuilder).Append(fmt.Sprint(row, text))
	})
	defer batch.Release()
	f := footer(t, write(t, load.EncodeOptions{}, batch))
	if len(f.RowGroups) != 10 || f.NumRows != 2500 {
		t.Fatalf("%d row groups of %d rows", len(f.RowGroups), f.NumRows)
	}
	if size := f.RowGroup(0).TotalByteSize(); size < 15<<20 || size > 18<<20 {
		t.Errorf("the first holds %d bytes", size)
	}
}

// The dictionary follows the values, not the column's name or place.
func TestDictionaryBySample(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("status", arrow.BinaryTypes.String, "id", arrow.PrimitiveTypes.Int64, "choice", arrow.BinaryTypes.String,
		"n", arrow.PrimitiveTypes.Int64, "b", arrow.FixedWidthTypes.Boolean, "none", arrow.BinaryTypes.String,
		"tags", loadtest.ListOf(arrow.BinaryTypes.String), "wide", &arrow.Decimal128Type{Precision: 30, Scale: 0},
		"day", arrow.FixedWidthTypes.Date32)
	batch := loadtest.Build(mem, schema, 10_000, func(b array.Builder, column, row int) {
		switch b := b.(type) {
		case *array.StringBuilder:
			switch column {
			case 0:
				b.Append(fmt.Sprint("unique ", row))
			case 2:
				b.Append([]string{"Very satisfied", "Neutral"}[row%2])
			default:
				b.AppendNull()
			}
		case *array.Int64Builder:
			b.Append(int64([]int{0, row, 0, row % 5}[column]))
		case *array.BooleanBuilder:
			b.Append(row%2 == 0)
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.StringBuilder).Append([]string{"red", "green"}[row%2])
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(1))
		case *array.Date32Builder:
			b.Append(arrow.Date32(20_000 + row%5))
		}
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	for i, want := range []bool{false, false, true, true, false, false, true, true, true} {
		if got := chunk(t, data, i).HasDictionaryPage(); got != want {
			t.Errorf("column %q: a dictionary is %v, not %v", schema.Field(i).Name, got, want)
		}
	}
}

// The sample lies all over the first 4096 rows, and finds what repeats seldom.
func TestSampleIsSpread(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("late", arrow.PrimitiveTypes.Int64, "eighths", arrow.PrimitiveTypes.Int64,
		"many", arrow.PrimitiveTypes.Int64, "pairs", arrow.PrimitiveTypes.Int64)
	batch := loadtest.Build(mem, schema, 4096, func(b array.Builder, column, row int) {
		b.(*array.Int64Builder).Append(int64([]int{max(row, 1024), row / 8 * (row % 8), row % 250, row / 2}[column]))
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	for i, want := range []bool{false, false, true, false} {
		if got := chunk(t, data, i).HasDictionaryPage(); got != want {
			t.Errorf("column %q: a dictionary is %v, not %v", schema.Field(i).Name, got, want)
		}
	}
}

// A part of a few rows has no dictionary, because many such parts would cost too much.
func TestFewRowsWithoutDictionaries(t *testing.T) {
	mem := checked(t)
	for n, want := range map[int]bool{999: false, 1000: true} {
		batch := loadtest.Build(mem, loadtest.Columns("n", arrow.PrimitiveTypes.Int64), n, func(b array.Builder, _, row int) {
			b.(*array.Int64Builder).Append(int64(row % 2))
		})
		defer batch.Release()
		if got := chunk(t, write(t, load.EncodeOptions{}, batch), 0).HasDictionaryPage(); got != want {
			t.Errorf("%d rows: a dictionary is %v, not %v", n, got, want)
		}
	}
}

// A sample that ends by bytes ends at the same row however the rows come.
func TestSampleByBytes(t *testing.T) {
	mem := checked(t)
	text := strings.Repeat("x", 64<<10)
	batch := loadtest.Build(mem, loadtest.Columns("s", arrow.BinaryTypes.String), 400, func(b array.Builder, _, row int) {
		// Repeats until the sample's 8 MiB are full, then unique.
		b.(*array.StringBuilder).Append(fmt.Sprint(max(row, 130), text))
	})
	defer batch.Release()
	whole := write(t, load.EncodeOptions{}, batch)
	parts := make([]arrow.RecordBatch, 0, batch.NumRows())
	for i := range batch.NumRows() {
		parts = append(parts, batch.NewSlice(i, i+1))
		defer parts[i].Release()
	}
	if !bytes.Equal(whole, write(t, load.EncodeOptions{}, parts...)) {
		t.Error("one batch and 400 give other bytes")
	}
	if !chunk(t, whole, 0).HasDictionaryPage() {
		t.Error("rows after the sample decided on the dictionary")
	}
}

func TestStatistics(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("d", &arrow.Decimal128Type{Precision: 25, Scale: 0}, "e", &arrow.Decimal128Type{Precision: 38, Scale: 0},
		"n", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String)
	batch := loadtest.Build(mem, schema, 100, func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Decimal128Builder:
			if row == 50 {
				b.AppendNull()
				return
			}
			b.Append(decimal128.FromI64(int64(row - 60)))
		case *array.Int64Builder:
			b.Append(int64(row - 60))
		case *array.StringBuilder:
			b.Append(fmt.Sprintf("%03d", row))
		}
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	for i, want := range []struct{ least, greatest string }{
		{strings.Repeat("ff", 10) + "c4", strings.Repeat("00", 10) + "27"},
		{strings.Repeat("ff", 15) + "c4", strings.Repeat("00", 15) + "27"},
		{"c4ffffffffffffff", "2700000000000000"},
		{"303030", "303939"},
	} {
		stats, err := chunk(t, data, i).Statistics()
		if err != nil || stats == nil {
			t.Fatalf("column %d: %v, %v", i, stats, err)
		}
		if got := fmt.Sprintf("%x %x", stats.EncodeMin(), stats.EncodeMax()); got != want.least+" "+want.greatest {
			t.Errorf("column %q: %s, not %s", schema.Field(i).Name, got, want)
		}
	}
	wide := columnIndex(t, data, 0)
	if got := fmt.Sprintf("%x %x %v", wide.GetMinValues(), wide.GetMaxValues(), wide.GetNullCounts()); got != "[ffffffffffffffffffffc4] [0000000000000000000027] [1]" {
		t.Errorf("the index of the wide decimal is %s", got)
	}
}

// columnIndex returns the bounds of the pages of the first column in a row group.
func columnIndex(t *testing.T, data []byte, rowGroup int) metadata.ColumnIndex {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	group, err := r.GetPageIndexReader().RowGroup(rowGroup)
	if err != nil {
		t.Fatal(err)
	}
	offsets, err := group.GetOffsetIndex(0)
	if err != nil || offsets == nil {
		t.Fatalf("the pages' offsets are %v, %v", offsets, err)
	}
	index, err := group.GetColumnIndex(0)
	if err != nil || index == nil {
		t.Fatalf("the pages' bounds are %v, %v", index, err)
	}
	return index
}

// Wide decimals that are null for a whole row group: each page keeps its own bounds.
func TestPagesOfNulls(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("d", &arrow.Decimal128Type{Precision: 25, Scale: 0})
	batch := loadtest.Build(mem, schema, 160_000, func(b array.Builder, _, row int) {
		if row < 150_000 && row > 10 {
			b.AppendNull()
			return
		}
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(-row)))
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	rows, err := read(data, schema)
	if err != nil {
		t.Fatal(err)
	}
	if diff := loadtest.Differs(schema, loadtest.Text(batch), rows); diff != "" {
		t.Error(diff)
	}
	for group, want := range []bool{false, true, false} {
		index := columnIndex(t, data, group)
		for i, null := range index.GetNullPages() {
			if null != want || null != (len(index.GetMinValues()[i]) == 0) {
				t.Errorf("row group %d, page %d: null is %v with bounds %x", group, i, null, index.GetMinValues()[i])
			}
		}
	}
}

// Texts of more than 4 KiB are in no statistics, so that no reader relies on a part of them.
func TestLongTextsHaveNoBounds(t *testing.T) {
	for length, bounds := range map[int]bool{4096: true, 4097: false} {
		batch := loadtest.Build(checked(t), loadtest.Columns("s", arrow.BinaryTypes.String), 10, func(b array.Builder, _, _ int) {
			b.(*array.StringBuilder).Append(strings.Repeat("k", length))
		})
		stats, err := chunk(t, write(t, load.EncodeOptions{}, batch), 0).Statistics()
		batch.Release()
		if err != nil || stats == nil || stats.HasMinMax() != bounds || stats.NullCount() != 0 {
			t.Errorf("of texts of %d bytes the statistics are %v, %v", length, stats, err)
		}
	}
}

func TestCompression(t *testing.T) {
	batch := loadtest.Random(checked(t), loadtest.AllTypes(), 500, 1)
	defer batch.Release()
	for name, codec := range map[string]compress.Compression{
		"": compress.Codecs.Zstd, "zstd": compress.Codecs.Zstd, "none": compress.Codecs.Uncompressed,
		"snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip,
	} {
		data := write(t, load.EncodeOptions{Compression: name}, batch)
		if got := chunk(t, data, 4).Compression(); got != codec {
			t.Errorf("%q: the codec is %s", name, got)
		}
	}
	_, err := parquetout.New(io.Discard, batch.Schema(), load.EncodeOptions{Compression: "brotli"})
	if err == nil || !strings.Contains(err.Error(), `"brotli"`) {
		t.Errorf("the error is %v", err)
	}
}

// A dictionary that outgrows its sample keeps the column, so that equal rows give equal
// bytes: Arrow lists a column's encodings in random order.
func TestDictionaryOutgrowsItsSample(t *testing.T) {
	pad := strings.Repeat("x", 150)
	batch := loadtest.Build(checked(t), loadtest.Columns("s", arrow.BinaryTypes.String), 24_000, func(b array.Builder, _, row int) {
		text := "choice"
		if row > 8500 {
			text = fmt.Sprint(row, pad)
		}
		b.(*array.StringBuilder).Append(text)
	})
	defer batch.Release()
	first := write(t, load.EncodeOptions{}, batch)
	for range 5 {
		if !bytes.Equal(first, write(t, load.EncodeOptions{}, batch)) {
			t.Fatal("equal rows gave other bytes")
		}
	}
	if !chunk(t, first, 0).HasDictionaryPage() {
		t.Error("the column has no dictionary")
	}
}

// Negative zero and what is not a number survive, with a dictionary too.
func TestFloats(t *testing.T) {
	mem := checked(t)
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1}
	batch := loadtest.Build(mem, loadtest.Columns("f", arrow.PrimitiveTypes.Float64), 6000, func(b array.Builder, _, row int) {
		b.(*array.Float64Builder).Append(special[row%len(special)])
	})
	defer batch.Release()
	rows, err := read(write(t, load.EncodeOptions{}, batch), batch.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if diff := loadtest.Differs(batch.Schema(), loadtest.Text(batch), rows); diff != "" {
		t.Error(diff)
	}
}

// An encoder that is given up releases its rows.
func TestDiscard(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	batch := loadtest.Random(mem, loadtest.AllTypes(), 10, 1)
	e, err := parquetout.New(io.Discard, batch.Schema(), load.EncodeOptions{})
	if err == nil {
		err = e.Write(batch)
	}
	if err != nil {
		t.Fatal(err)
	}
	batch.Release()
	load.Discard(e)
	mem.AssertSize(t, 0)
}
