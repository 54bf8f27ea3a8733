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
	"github.com/parquet-go/parquet-go"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/parquetout"
)

func TestConformance(t *testing.T) { loadtest.Encoder(t, parquetout.Format(), read) }

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
	mem := checked(t)
	text := strings.Repeat("0123456789abcdef", 1<<12)
	batch := loadtest.Build(mem, loadtest.Columns("s", arrow.BinaryTypes.String), 2500, func(b array.Builder, _, row int) {
		b.(*array.StringBuilder).Append(fmt.Sprint(row, text))
	})
	defer batch.Release()
	f := footer(t, write(t, load.EncodeOptions{}, batch))
	if len(f.RowGroups) != 5 || f.NumRows != 2500 {
		t.Fatalf("%d row groups of %d rows", len(f.RowGroups), f.NumRows)
	}
	if size := f.RowGroup(0).TotalByteSize(); size < 30<<20 || size > 36<<20 {
		t.Errorf("the first holds %d bytes", size)
	}
}

// The dictionary follows the values, not the column's name or place.
func TestDictionaryBySample(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("status", arrow.BinaryTypes.String, "id", arrow.PrimitiveTypes.Int64, "choice", arrow.BinaryTypes.String,
		"n", arrow.PrimitiveTypes.Int64, "b", arrow.FixedWidthTypes.Boolean, "none", arrow.BinaryTypes.String,
		"tags", loadtest.ListOf(arrow.BinaryTypes.String), "wide", &arrow.Decimal128Type{Precision: 30, Scale: 0})
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
		}
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	for i, want := range []bool{false, false, true, true, false, false, true, false} {
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

// A sample that ends by bytes ends at the same row however the rows come.
func TestSampleByBytes(t *testing.T) {
	mem := checked(t)
	text := strings.Repeat("x", 64<<10)
	batch := loadtest.Build(mem, loadtest.Columns("s", arrow.BinaryTypes.String), 400, func(b array.Builder, _, row int) {
		// Repeats until the sample's 16 MiB are full, then unique.
		b.(*array.StringBuilder).Append(fmt.Sprint(max(row, 260), text))
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
	pageIndex(t, data)
}

// pageIndex holds the file's page index to the values of its columns.
func pageIndex(t *testing.T, data []byte) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.ColumnIndexes()) != 4 || len(f.OffsetIndexes()) != 4 {
		t.Fatalf("%d column indexes, %d offset indexes", len(f.ColumnIndexes()), len(f.OffsetIndexes()))
	}
	wide := f.ColumnIndexes()[0]
	if got := fmt.Sprintf("%x %x %v", wide.MinValues, wide.MaxValues, wide.NullCounts); got != "[ffffffffffffffffffffc4] [0000000000000000000027] [1]" {
		t.Errorf("the index of the wide decimal is %s", got)
	}
}

// Wide decimals that are null for whole pages: each page keeps its own bounds.
func TestPagesOfNulls(t *testing.T) {
	mem := checked(t)
	schema := loadtest.Columns("d", &arrow.Decimal128Type{Precision: 25, Scale: 0})
	batch := loadtest.Build(mem, schema, 120_000, func(b array.Builder, _, row int) {
		if row < 100_000 && row > 10 {
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
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.ColumnIndexes() {
		for i, null := range x.NullPages {
			if null != (len(x.MinValues[i]) == 0) {
				t.Errorf("page %d: null is %v with bounds %x", i, null, x.MinValues[i])
			}
		}
	}
}

// The page index holds at most 16 bytes of a text, and bounds that are not wrong.
// The statistics of the column hold texts whole.
func TestBoundsOfTexts(t *testing.T) {
	mem := checked(t)
	// 64 texts fill a page. No valid text begins with 0xff, so the last are not valid.
	texts := [][2]string{
		{strings.Repeat("k", 5_000), strings.Repeat("k", 16)},
		{strings.Repeat("k", 15) + strings.Repeat("\xff", 5_000), strings.Repeat("k", 15) + "\xff"},
		{strings.Repeat("\xff", 5_000), strings.Repeat("\xff", 16)},
	}
	above := []string{strings.Repeat("k", 15) + "l", strings.Repeat("k", 14) + "l\x00", strings.Repeat("\xff", 16)}
	batch := loadtest.Build(mem, loadtest.Columns("s", arrow.BinaryTypes.String), 64*len(texts)+1, func(b array.Builder, _, row int) {
		switch {
		case row == 64*len(texts):
			b.AppendNull()
		default:
			b.(*array.StringBuilder).Append(fmt.Sprintf("%s%03d", texts[row/64][0], row))
		}
	})
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	index := f.ColumnIndexes()[0]
	for i, text := range texts {
		if least, greatest := string(index.MinValues[i]), string(index.MaxValues[i]); least != text[1] || greatest != above[i] {
			t.Errorf("page %d lies from %q to %q", i, least, greatest)
		}
	}
	if !slices.Equal(index.NullPages, []bool{false, false, false, true}) || index.BoundaryOrder.String() != "ASCENDING" {
		t.Errorf("null pages: %v, order: %s", index.NullPages, index.BoundaryOrder)
	}
	stats, err := chunk(t, data, 0).Statistics()
	if err != nil || len(stats.EncodeMin()) != 5_003 || stats.NullCount() != 1 {
		t.Errorf("the statistics are of %d bytes with %d nulls, %v", len(stats.EncodeMin()), stats.NullCount(), err)
	}
}

func TestCompression(t *testing.T) {
	batch := loadtest.Realistic(checked(t), 500, 1)
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

// A page of less than a kilobyte is stored as it is, because to compress it gains nothing.
func TestSmallPages(t *testing.T) {
	for _, c := range []struct {
		rows  int
		packs bool
	}{{100, false}, {127, false}, {129, true}, {5000, true}} {
		batch := loadtest.Build(checked(t), loadtest.Columns("n", arrow.PrimitiveTypes.Int64), c.rows, func(b array.Builder, _, row int) {
			b.(*array.Int64Builder).Append(int64(row)) // too many values for a dictionary
		})
		data := write(t, load.EncodeOptions{}, batch)
		batch.Release()
		if n := chunk(t, data, 0); (n.TotalCompressedSize() < n.TotalUncompressedSize()) != c.packs {
			t.Errorf("%d rows: %d bytes of %d", c.rows, n.TotalCompressedSize(), n.TotalUncompressedSize())
		}
	}
}

// Negative zero and what is not a number survive, with a dictionary too.
func TestFloats(t *testing.T) {
	mem := checked(t)
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1}
	batch := loadtest.Build(mem, loadtest.Columns("f", arrow.PrimitiveTypes.Float64), 600, func(b array.Builder, _, row int) {
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
